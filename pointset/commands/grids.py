"""What `pointset compare` and `pointset task` do alike with a grid of runs: rows, results and estimates."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointset.commands.printing import in_hours, print_json, print_rows
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from pointset.comparison.comparing import Comparison
    from pointset.comparison.experiment import Experiment
    from pointset.comparison.progress import Estimate
    from pointset.runs.workers import Workers
    from pointset.tasks.comparison import TaskComparison
    from pointset.tasks.experiment import TaskExperiment
    from pointset.tasks.progress import TaskEstimate


def chosen_rows(experiment: "Experiment | TaskExperiment", labels: tuple[str, ...] | None) -> dict[str, Any]:
    """The fields that keep the rows which are asked for, in the experiment's order; none to change for all rows.

    Raises:
        PointsetError: one is no row of the experiment.
    """
    if labels is None:
        return {}
    if unknown := set(labels) - set(experiment.labels):
        known = ", ".join(experiment.labels)
        raise PointsetError(f"{sorted(unknown)[0]!r} is no row of the experiment: choose from {known}")
    kept = tuple(entry for entry in experiment.models if entry.label in labels)
    return {"models": kept, "published": {k: v for k, v in experiment.published.items() if k in labels}}


def print_result(result: "Comparison | TaskComparison", out: Path, files: Sequence[str], as_json: bool) -> None:
    """Print the table and where it is.

    Raises:
        PointsetError: some runs failed; they are named.
    """
    if as_json:
        print((out / "results.json").read_text(encoding="utf-8"))
    else:
        print(result.caption())
        print(result.table(brief=True))
        print(f"saved in {out}: {', '.join(files)}")
    if result.failures:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in result.failures)
        total = len(result.failures) + len(result.cells)
        raise PointsetError(f"{len(result.failures)} of {total} runs failed ({reasons}): the same command tries again")


def print_estimate(
    found: "Sequence[Estimate] | Sequence[TaskEstimate]", threads: int, workers: "Workers", as_json: bool
) -> None:
    """Print what is left to do, and how long it will take."""
    seconds = sum(one.seconds for one in found)
    count = workers.at_once(sum(one.cells for one in found), threads)
    # Not before its longest cell has ended.
    together = max([seconds / count, *(one.seconds / one.cells for one in found)])
    if as_json:
        print_json({"cells": [asdict(one) for one in found], "seconds": seconds, "workers": count})
        return
    print_rows([_in_words(asdict(one)) for one in found])
    print(f"{in_hours(seconds)} of training, about {in_hours(together)} with {count} at once; tests extra")


def _in_words(left: dict[str, Any]) -> dict[str, Any]:
    """One row of an estimate; a task has no size of set."""
    row = {"model": left["model"], "points": left.get("points"), "cells left": left["cells"]}
    row |= {"ms a step": f"{1000 * left['step_seconds']:.1f}", "time": in_hours(left["seconds"])}
    return {name: value for name, value in row.items() if value is not None}
