"""How many seconds of training each model of a comparison takes until its held-out shapes are right often enough.

python scripts/experiments/time_to.py runs/frontier runs/minutes_100   # comparisons with `validation` in their recipe
python scripts/experiments/time_to.py runs/frontier --at 75 80

The seconds are the processor's, of the epochs up to the first whose held-out accuracy is that high: data included;
start-up and evaluation not. Several seeds: their mean, or "never" where one of them does not get there.
"""

import json
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import cyclopts
from cyclopts import Parameter
from saved import run, study_table

from pointset.errors import PointsetError
from pointset.runs import records
from pointset.training.checkpoints import work_of

app = cyclopts.App(name="time_to.py", help=__doc__, result_action="return_value")


@app.default
def time_to(
    folders: Annotated[tuple[Path, ...], Parameter(help="Of comparisons, finished or not.")],
    /,
    *,
    at: Annotated[tuple[float, ...], Parameter(help="Accuracies in percent.", consume_multiple=True)] = (80, 85, 88),
) -> None:
    """Print a table with a line for each row of the comparisons."""
    found = {f"{folder.name}: {row}": runs for folder in folders for row, runs in histories(folder).items()}
    lines = []
    for row, runs in found.items():
        in_all = fmean(sum(map(work_of, history)) for history in runs)
        lines.append([row, *(seconds_to(runs, share / 100) for share in at), f"{in_all:,.0f}"])
    heads = ["seconds until", *(f"{share:g} %" for share in at), "the end"]
    print(study_table(lines, heads, form="pipe"))


History = list[dict[str, Any]]


def histories(folder: Path) -> dict[str, list[History]]:
    """The histories of a comparison's runs, by row: those of all its seeds.

    A training that was taken over from another size has no held-out accuracy at its own, and is left out.

    Raises:
        PointsetError: there are none, one is damaged, or nothing was held out.
    """
    found: dict[str, list[History]] = {}
    files = sorted(folder.glob("runs/*/history.jsonl"))
    if not files:
        raise PointsetError(f"{folder} has no runs: give the folder of a comparison")
    for file in files:
        lines = records.read_text(file, f"delete {file.parent} and run the same command again").splitlines()
        history = [json.loads(line) for line in lines]
        if all("validation_accuracy" in line for line in history):
            found.setdefault(file.parent.name.rpartition("-seed")[0], []).append(history)
    if not found:
        raise PointsetError(f"{folder} held no shapes out: set validation in its recipe, such as 0.05")
    return found


def seconds_to(runs: Sequence[History], share: float) -> str:
    """Mean seconds over seeds until the accuracy is this high; "never" if one does not get there."""
    times = []
    for history in runs:
        sums = [*accumulate(map(work_of, history))]
        accuracies = [line["validation_accuracy"] for line in history]
        times += [time for time, accuracy in zip(sums, accuracies, strict=True) if accuracy >= share][:1]
    return f"{fmean(times):,.0f}" if len(times) == len(runs) else "never"


if __name__ == "__main__":
    sys.exit(run(app))
