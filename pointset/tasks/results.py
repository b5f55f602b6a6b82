"""The files of a comparison on a set problem."""

import csv
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pointset.comparison.results import provenance
from pointset.runs.atomic import write_atomically, write_json, write_text
from pointset.tasks.comparison import TaskComparison
from pointset.tasks.jobs import TaskCell

FILES = ("table.md", "curves.png", "results.csv", "results.json")


def save(comparison: TaskComparison, folder: Path) -> None:
    """Write `FILES` into the folder."""
    # Imported here, because it imports matplotlib.
    from pointset.tasks.curves import draw_curves

    metrics = [metric.name for metric in comparison.experiment.problem.metrics]
    curves = draw_curves(comparison)
    write_atomically(folder / "curves.png", lambda path: curves.savefig(path, dpi=200, format="png"))
    write_atomically(folder / "results.csv", lambda path: _write_csv(comparison.cells, metrics, path))
    write_text(folder / "table.md", f"{comparison.table('github')}\n\n{comparison.caption()}\n")
    write_json(folder / "results.json", as_dict(comparison))


def as_dict(comparison: TaskComparison) -> dict[str, Any]:
    """Everything there is to know about a comparison, as plain data."""
    metrics = comparison.experiment.problem.metrics
    return {
        "rows": [
            {
                **asdict(row),
                "against_best": row.against_best(metrics[0].digits),
                "verdicts": {metric.name: row.figures[metric.name].verdict(metric.digits) for metric in metrics},
            }
            for row in comparison.rows
        ],
        "cells": [asdict(cell) for cell in comparison.cells],
        "failures": [asdict(failure) for failure in comparison.failures],
        "pairs": [{**asdict(pair), "distinguishable": pair.distinguishable} for pair in comparison.pairs],
        "configuration": comparison.experiment.as_dict(),
        **provenance(),
    }


def _write_csv(cells: Sequence[TaskCell], metrics: Sequence[str], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "seed", *metrics, "parameters", "seconds", "steps"])
        for cell in cells:
            figures = [cell.figures[name] for name in metrics]
            writer.writerow([cell.model, cell.seed, *figures, cell.parameters, cell.seconds, cell.steps])
