"""The files of a comparison: what its finished cells say, gathered and written down."""

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from pointset.comparison.cells import Cell, Failure, load_predictions
from pointset.comparison.comparing import Comparison, cell_folder
from pointset.comparison.experiment import Experiment
from pointset.comparison.statistics import Pair, compare_pairs
from pointset.evaluation.costs import Cost, measure_costs
from pointset.runs.atomic import read_json, write_atomically, write_json, write_text
from pointset.runs.provenance import command, machine, origin
from pointset.zoo.models import create_model

FILES = ("report.html", "report.md", "table.md", "results.csv", "results.json")


def gather(experiment: Experiment, out: Path, outcomes: Sequence[Cell | Failure]) -> Comparison:
    """Make a comparison of what became of the cells; models that were never timed are timed now."""
    places = {label: place for place, label in enumerate(experiment.labels)}
    cells = sorted(
        (outcome for outcome in outcomes if isinstance(outcome, Cell)),
        key=lambda c: (experiment.points.index(c.points), places[c.model], experiment.seeds.index(c.seed)),
    )
    classes = read_json(out / f"sets-n{experiment.points[0]}.json")["test_sets"]["classes"]
    return Comparison(
        experiment,
        cells,
        pairs={points: _pairs(experiment, out, cells, points, classes) for points in experiment.points},
        costs={points: _costs(experiment, out, cells, points, len(classes)) for points in experiment.points},
        failures=[outcome for outcome in outcomes if isinstance(outcome, Failure)],
        folder=out,
        classes=classes,
    )


def _pairs(experiment: Experiment, out: Path, cells: Sequence[Cell], points: int, classes: Sequence[str]) -> list[Pair]:
    entries = {entry.label: entry for entry in experiment.models}
    right: dict[str, dict[int, np.ndarray]] = defaultdict(dict)
    for cell in cells:
        if cell.points == points:
            folder = cell_folder(out, entries[cell.model], points, cell.seed)
            right[cell.model][cell.seed] = load_predictions(folder, list(classes)).right
    return compare_pairs(right)


def _costs(experiment: Experiment, out: Path, cells: Sequence[Cell], points: int, classes: int) -> dict[str, Cost]:
    """Costs of the models that could be trained, from the file of an earlier run or measured side by side."""
    trained = {cell.model for cell in cells if cell.points == points}
    entries = [entry for entry in experiment.models if entry.label in trained]
    file = out / f"costs-n{points}.json"
    found = {label: Cost(**cost) for label, cost in read_json(file)["models"].items()} if file.exists() else {}
    if not trained <= set(found):
        models = [
            create_model(entry.name, classes=classes, **entry.options(experiment.model).as_dict()) for entry in entries
        ]
        batch_size, threads = experiment.recipe.batch_size, experiment.threads
        costs = measure_costs(models, points, batch_size=batch_size, threads=threads)
        found = {entry.label: cost for entry, cost in zip(entries, costs, strict=True)}
        write_json(file, {"models": {label: asdict(cost) for label, cost in found.items()}, "machine": machine()})
    return {entry.label: found[entry.label] for entry in entries}


def save(comparison: Comparison, folder: Path) -> None:
    """Write `FILES` into the folder, and robustness.csv where a cell was tested on changed sets."""
    from pointset.comparison.report import write_report

    cells = [asdict(cell) for cell in comparison.cells]
    write_atomically(folder / "results.csv", lambda path: _write_rows(list(Cell.__dataclass_fields__), cells, path))
    if changed := changed_sets(comparison):
        write_atomically(folder / "robustness.csv", lambda path: _write_rows(list(changed[0]), changed, path))
    write_text(folder / "table.md", f"{comparison.table('github')}\n\n{comparison.caption()}\n")
    write_json(folder / "results.json", as_dict(comparison))
    write_report(comparison, folder)


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Everything there is to know about a comparison, as plain data."""
    return {
        "rows": [{**asdict(row), "against_best": row.against_best} for row in comparison.rows],
        "cells": [asdict(cell) for cell in comparison.cells],
        "failures": [asdict(failure) for failure in comparison.failures],
        "pairs": {
            points: [{**asdict(pair), "distinguishable": pair.distinguishable} for pair in pairs]
            for points, pairs in comparison.pairs.items()
        },
        "configuration": comparison.experiment.as_dict(),
        "origins": origins(comparison),
        **provenance(),
    }


def provenance() -> Mapping[str, Any]:
    """What the files of a comparison are written by; its cells may be older, see `origins`."""
    return {**origin(), "command": command()}


def origins(comparison: Comparison) -> list[dict[str, Any]]:
    """What the cells were trained by: versions, machine, commit, each combination once, and how many cells it has."""
    found: list[dict[str, Any]] = []
    for cell in comparison.cells:
        run = read_json(comparison.run_folder(cell) / "run.json")
        own = {name: run.get(name) for name in ("versions", "machine", "commit")}
        same = next((one for one in found if own.items() <= one.items()), None)
        if same is None:
            found.append({**own, "cells": 1})
        else:
            same["cells"] += 1
    return found


def changed_sets(comparison: Comparison) -> list[dict[str, Any]]:
    """The error of every cell on each changed test set that it was tested on.

    `test` is a corruption and `level` its severity, 0 for the clean sets; or `test` is "points", `level` how many.
    """
    rows = []
    for cell in comparison.cells:
        file = comparison.run_folder(cell) / "robustness.json"
        if file.exists():
            found = read_json(file)
            errors = [("clean", 0, found["clean_error"])]
            errors += [(name, int(level), error) for name, by in found["errors"].items() for level, error in by.items()]
            errors += [("points", int(size), 1.0 - accuracy) for size, accuracy in found["by_size"].items()]
            place = {"model": cell.model, "points": cell.points, "seed": cell.seed}
            rows += [{**place, "test": test, "level": level, "error": error} for test, level, error in errors]
    return rows


def _write_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=columns)
        writer.writeheader()
        writer.writerows(rows)
