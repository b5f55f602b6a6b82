"""`pointset judge`: a verdict on predictions of any classifiers."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import pointset
from pointset.commands.flags import out_file
from pointset.commands.terminal import Result
from pointset.comparison.tables import Spreads
from pointset.errors import PointsetError
from pointset.runs.atomic import write_for_user

if TYPE_CHECKING:
    from pointset.comparison.verdict import Verdict

PICTURES = (".svg", ".png", ".pdf")
TEXTS = (".md", ".tex")


def judge(
    files: list[Path],
    /,
    *,
    columns: tuple[str, ...] = (),
    level: float = 0.05,
    deterministic: tuple[str, ...] = (),
    output: Annotated[tuple[Path, ...], out_file("a verdict", *TEXTS, *PICTURES)] = (),
    spread: Spreads = "both",
) -> Result:
    """Judge predictions of any classifiers: which models differ for new seeds and new items?

    Every file has one row for each item, with the columns item, label and prediction, and model and seed if the file
    has several. Files that `pointset classify -o` and `pointset evaluate -o` write can be used as they are, and the
    folder of a comparison.

    Example: `pointset judge svm.csv network-seed0.csv network-seed1.csv --columns item=uid label=truth -o verdict.md`

    Args:
        files: Predictions (*.csv), a folder of runs, or a folder of `pointset compare`.
            Without a column model, the name of the file is the model, and "-seed3" at its end the seed.
        columns: Columns that are named otherwise, as item=COLUMN label=COLUMN prediction=COLUMN model=COLUMN
            seed=COLUMN.
        level: Probability of any error in a table of equally good models.
        deterministic: Models whose training has no seed, such as a support vector machine.
        output: Files for the verdict: Markdown (*.md), LaTeX (*.tex), or all pairs as a picture (*.svg, *.png, *.pdf).
        spread: What the LaTeX table of models shows beside the mean.
    """
    if wrong := next((word for word in columns if "=" not in word), None):
        raise PointsetError(f"--columns must be pairs such as item=uid, got {wrong!r}")
    named = dict(word.split("=", 1) for word in columns)
    verdict = pointset.judge(files, named, level=level, deterministic=deterministic)
    for path in output:
        _write(verdict, path, spread)
    return Result(verdict.as_dict(), *str(verdict).splitlines())


def _write(verdict: "Verdict", path: Path, spread: Spreads) -> None:
    suffix = path.suffix.lower()
    if suffix in PICTURES:
        from pointset.comparison.report.charts import draw_matrix  # imports matplotlib

        if (figure := draw_matrix(verdict)) is None:
            raise PointsetError(
                f"{path} would show pairs of models, and there is one model: give predictions of another"
            )
        pointset.viz.save(figure, path)
        return
    text = verdict.as_markdown() if suffix == ".md" else verdict.as_latex(spread)
    write_for_user(path, partial(Path.write_text, data=text, encoding="utf-8"))
