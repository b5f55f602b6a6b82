"""Write the result files of a comparison: table.md, CSV and JSON."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pointset.comparison.gathering import Comparison
from pointset.runs import digests
from pointset.runs.claims import read_description
from pointset.runs.provenance import command, origin

FILES = ("report.html", "report.md", "table.md", "results.csv", "results.json")


def save(comparison: Comparison) -> None:
    """Write table.md, results.csv, results.json, and further CSV files of the task, into the comparison's folder."""
    folder = comparison.folder
    for name, rows in {"results.csv": _results(comparison), **_task_tables(comparison)}.items():
        digests.write_text(folder / name, as_csv(rows))
    digests.write_text(folder / "table.md", table_file(comparison))
    digests.write_json(folder / "results.json", as_dict(comparison))


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison as plain data: rows, pairs, runs, failures, configuration and origins."""
    return {
        **rows_and_pairs(comparison),
        "runs": [asdict(run) for run in comparison.runs],
        "failures": [asdict(failure) for failure in comparison.failures],
        "configuration": comparison.experiment.as_dict(),
        "origins": origins(comparison),
        **origin(),
        "command": command(),
    }


def table_file(comparison: Comparison) -> str:
    """The content of table.md."""
    return f"{comparison.table('github')}\n\n{comparison.caption()}\n"


def rows_and_pairs(comparison: Comparison) -> dict[str, Any]:
    """The rows and pairs of a comparison as plain data."""
    first = comparison.experiment.task.measured[0]
    return {
        "rows": [{**asdict(row), "against_best": row.against_best(first)} for row in comparison.rows],
        "pairs": {
            str(size or "all"): [{**asdict(pair), "distinguishable": pair.distinguishable} for pair in pairs]
            for size, pairs in comparison.pairs.items()
        },
    }


def origins(comparison: Comparison) -> list[dict[str, Any]]:
    """The distinct combinations of versions, machine and commit that made the runs, each with its number of runs."""
    found: list[dict[str, Any]] = []
    for one in comparison.runs:
        about = read_description(comparison.run(one.model, one.seed, one.points).folder / "run.json", "run")
        own = {name: about.get(name) for name in ("versions", "machine", "commit")}
        same = next((other for other in found if own.items() <= other.items()), None)
        if same is None:
            found.append({**own, "runs": 1})
        else:
            same["runs"] += 1
    return found


def commit_of(origin: Mapping[str, Any]) -> str:
    """The commit of one of the `origins`, or its version if no commit is known."""
    return origin["commit"] or f"pointset {origin['versions']['pointset']}"


def machine_of(origin: Mapping[str, Any]) -> str:
    """The machine of one of the `origins`, as text."""
    if (machine := origin["machine"]) is None:
        return "an unrecorded machine"
    return f"{machine['system']}, {machine['cores']} cores, {machine['accelerator'] or 'no GPU'}"


def _results(comparison: Comparison) -> list[dict[str, Any]]:
    task = comparison.experiment.task
    return [
        {
            **_grid_columns(run),
            **run.metrics,
            "parameters": run.parameters,
            "seconds": run.seconds,
            task.unit: run.length,
            task.sets_are: run.tested,
        }
        for run in comparison.runs
    ]


def _task_tables(comparison: Comparison) -> dict[str, list[dict[str, Any]]]:
    """The rows of a task's further CSV files, by file name."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in comparison.runs:
        folder = comparison.run(run.model, run.seed, run.points).folder
        for name, rows in comparison.experiment.task.tables(folder, _grid_columns(run)).items():
            found.setdefault(name, []).extend(rows)
    return found


def _grid_columns(run: Any) -> dict[str, Any]:
    sets = {} if run.points is None else {"points": run.points}
    return {"model": run.model, **sets, "seed": run.seed}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with equal columns as CSV with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
