"""`pointset judge`: a verdict on predictions of any classifiers."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from pointset.commands.options import Json
from pointset.commands.terminal import print_json
from pointset.errors import PointsetError

WORSE = 3
"""Exit code if a model is distinguishably worse than the baseline."""
WRITERS = {".html": "as_html", ".htm": "as_html", ".md": "as_markdown", ".tex": "as_latex"}


def judge(
    files: list[Path],
    *,
    columns: tuple[str, ...] = (),
    output: Annotated[tuple[Path, ...], Parameter(name=["--output", "-o"])] = (),
    fail_if_worse: str | None = None,
    as_json: Json = False,
) -> None:
    """Judge predictions of any classifiers: which models differ for new seeds and new items, and what would settle it.

    Every file has one row for each item, with the columns item, label and prediction, or one column of probabilities
    for each class in place of prediction, and model and seed if the file has several. Files that `pointset classify -o`
    and `pointset evaluate --predictions` write can be used as they are.

    Example: `pointset judge svm.csv network-seed0.csv network-seed1.csv --columns item=uid label=truth -o verdict.html`

    Args:
        files: Predictions (*.csv, *.parquet, *.npz, *.json). Without a column model, the name of the file is the model,
            and "-seed3" at its end the seed.
        columns: Columns that are named otherwise, as item=COLUMN label=COLUMN prediction=COLUMN model=COLUMN
            seed=COLUMN.
        output: Files for the verdict: a page (*.html), Markdown (*.md) or LaTeX (*.tex).
        fail_if_worse: A model; the exit code is 3 if another model is distinguishably worse.
        as_json: Print JSON.
    """
    from pointset.comparison.judge import judge as judge_files
    from pointset.runs.atomic import checked_suffix, write_for_user

    for path in output:
        checked_suffix(path, [*WRITERS], "a verdict")
    verdict = judge_files(files, _as_columns(columns))
    worse = verdict.worse_than(fail_if_worse) if fail_if_worse is not None else []
    for path in output:
        text: str = getattr(verdict, WRITERS[path.suffix.lower()])()
        write_for_user(path, partial(Path.write_text, data=text, encoding="utf-8"))
    if as_json:
        print_json(verdict.as_dict())
    else:
        print(verdict)
    if worse:
        print(f"pointset: distinguishably worse than {fail_if_worse}: {', '.join(worse)}", file=sys.stderr)
        sys.exit(WORSE)


def _as_columns(words: tuple[str, ...]) -> dict[str, str]:
    """The words item=uid as a mapping."""
    if wrong := next((word for word in words if "=" not in word), None):
        raise PointsetError(f"--columns must be pairs such as item=uid, got {wrong!r}")
    return dict(word.split("=", 1) for word in words)
