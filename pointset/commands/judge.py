"""`pointset judge` and `pointset audit`: a verdict on predictions of any classifiers; what an accuracy is made of."""

import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pointset
from pointset.commands.models import load_model
from pointset.commands.options import out_file
from pointset.commands.terminal import Result
from pointset.comparison.tables import Spreads
from pointset.errors import PointsetError, escaped
from pointset.runs.atomic import write_for_user

if TYPE_CHECKING:
    from pointset.comparison.audit import Step
    from pointset.comparison.verdict import Verdict

WORSE = 3
"""Exit code if a model is distinguishably worse than the baseline."""
PICTURES = (".svg", ".png", ".pdf")
PAGES = (".html", ".htm", ".md", ".tex")


def judge(
    files: list[Path],
    /,
    *,
    columns: tuple[str, ...] = (),
    level: float = 0.05,
    deterministic: tuple[str, ...] = (),
    output: Annotated[tuple[Path, ...], out_file("a verdict", *PAGES, *PICTURES)] = (),
    spread: Spreads = "both",
    fail_if_worse: str | None = None,
) -> Result:
    """Judge predictions of any classifiers: which models differ for new seeds and new items, and what would settle it.

    Every file has one row for each item, with the columns item, label and prediction, or one column of probabilities
    for each class in place of prediction, and model, seed and data (a data set) if the file has several. Files that
    `pointset classify -o` and `pointset evaluate -o` write can be used as they are, and the folder of a comparison.
    Several data sets get a verdict each, and one on their mean.

    Example: `pointset judge svm.csv network-seed0.csv network-seed1.csv --columns item=uid label=truth -o verdict.html`

    Args:
        files: Predictions (*.csv, *.parquet, *.npz, *.json), a folder of runs, or a folder of `pointset compare`.
            Without a column model, the name of the file is the model, and "-seed3" at its end the seed.
        columns: Columns that are named otherwise, as item=COLUMN label=COLUMN prediction=COLUMN model=COLUMN
            seed=COLUMN data=COLUMN.
        level: Probability of any error in a table of equally good models.
        deterministic: Models whose training has no seed, such as a support vector machine; an empty cell in the column
            seed says the same.
        output: Files for the verdict: a page (*.html), Markdown (*.md), LaTeX (*.tex), or all pairs as a picture
            (*.svg, *.png, *.pdf).
        spread: What the LaTeX table of models shows beside the mean.
        fail_if_worse: A model; the exit code is 3 if another model is distinguishably worse.
    """
    if wrong := next((word for word in columns if "=" not in word), None):
        raise PointsetError(f"--columns must be pairs such as item=uid, got {wrong!r}")
    named = dict(word.split("=", 1) for word in columns)
    verdict = pointset.judge(files, named, level=level, deterministic=deterministic)
    worse = verdict.worse_than(fail_if_worse) if fail_if_worse is not None else []
    for path in output:
        _write(verdict, path, spread)
    if worse:
        print(escaped(f"pointset: distinguishably worse than {fail_if_worse}: {', '.join(worse)}"), file=sys.stderr)
    return Result(verdict.as_dict(), *str(verdict).splitlines(), failure=SystemExit(WORSE) if worse else None)


def _write(verdict: "Verdict", path: Path, spread: Spreads) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        from pointset.comparison.report.matrix import draw_matrix  # imports matplotlib

        if (figure := draw_matrix(verdict)) is None:
            raise PointsetError(
                f"{path} would show pairs of models, and there is one model: give predictions of another"
            )
        pointset.viz.save(figure, path)
        return
    text = {".md": verdict.as_markdown, ".tex": lambda: verdict.as_latex(spread)}.get(suffix, verdict.as_html)()
    write_for_user(path, partial(Path.write_text, data=text, encoding="utf-8"))


def audit(
    runs: list[str],
    /,
    *,
    data: str | None = None,
    output: Annotated[Path | None, out_file("a picture", ".svg", ".png")] = None,
) -> Result:
    """Say what an accuracy is made of: farthest points, votes and the best seed, from the same weights.

    Published accuracies differ in these by more than most models do. Each step is measured on top of those before it,
    beside published figures on ModelNet40 and what is known to be in them.

    Example: `pointset audit runs/a-seed0 runs/a-seed1 runs/a-seed2 -o audit.svg`

    Args:
        runs: Folders of runs of one model with different seeds, or a trained model from `pointset zoo --pretrained`.
        data: Name of a card, or a folder; default: the dataset of the runs.
        output: A picture of the steps (*.svg or *.png).
    """
    from pointset.comparison.audit import audit as audit_models
    from pointset.comparison.audit import draw_steps, published_accuracies
    from pointset.data.loading import load_like

    trained = [load_model(run) for run in runs]
    descriptions = [one.data for one in trained]
    keys = ("classes", "points", "normalize", "features")
    if any(other.get(key) != descriptions[0].get(key) for other in descriptions for key in keys):
        raise PointsetError("the runs differ in their data: audit runs of one model that differ only in their seeds")
    sets = load_like(descriptions[0], "test", data)
    whole = load_like(descriptions[0], "test", data, points=int(sets.source_pool.sizes.min()))
    steps = audit_models([one.network for one in trained], sets, whole)
    published = published_accuracies()
    if output is not None:
        pointset.viz.save(draw_steps(steps), output)
    shown = ("name", "accuracy", "epoch", "points", "votes", "normals", "source")
    return Result(
        {"steps": [asdict(step) for step in steps], "published": published},
        [_row(step) for step in steps],
        "",
        [{key: _word(one[key]) for key in shown} for one in published],
    )


def _row(step: "Step") -> dict[str, Any]:
    interval = step.interval
    return {
        "step": step.name,
        "accuracy %": "" if step.accuracy is None else f"{100 * step.accuracy:.1f}",
        "gain": "" if step.gain is None else f"{100 * step.gain:+.1f}",
        "95 % interval": "" if interval is None else f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}",
        "note": step.note,
    }


def _word(value: Any) -> Any:
    return {True: "yes", False: "no", "": "not said"}.get(value, value) if isinstance(value, bool | str) else value
