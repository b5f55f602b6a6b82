"""The files of a comparison: table.md, CSV and JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pointset.comparison.results import Comparison
from pointset.comparison.tables import Table
from pointset.runs import records
from pointset.runs.provenance import command, origin
from pointset.runs.spreadsheets import as_csv
from pointset.training.checkpoints import RunFolder

RESULT_FILES = ("report.html", "table.md", "results.csv", "results.json")


def save_tables(comparison: Comparison) -> None:
    """Write table.md, results.csv, results.json, and further CSV files of the task, into the comparison's folder."""
    facts, folder = comparison.experiment.task.facts, comparison.folder
    names = {metric.name for metric in comparison.metrics}
    tables: dict[str, Table] = {"results.csv": []}
    for run in comparison.runs:
        result = run.result
        columns = {name: value for name, value in run.place.items() if value is not None}
        metrics = {name: value for name, value in run.metrics.items() if name in names}
        costs = {"parameters": result.parameters, "seconds": result.seconds}
        tables["results.csv"].append(columns | metrics | costs | {facts.unit: result.length, facts.sets: result.tested})
        for name, rows in run.trial.tables(columns).items():
            tables.setdefault(name, []).extend(rows)
    for name, rows in tables.items():
        records.write_text(folder / name, as_csv(rows))
    below = "\n\n".join([comparison.caption(), *comparison.sentences()])
    records.write_text(folder / "table.md", f"{comparison.table('github')}\n\n{below}\n")
    records.write_json(folder / "results.json", as_dict(comparison))


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """The whole comparison as plain data: rows, pairs, runs, failures, configuration and origins."""
    return {
        "rows": [asdict(row) for row in comparison.rows],
        "pairs": {
            str(size or "all"): [{**asdict(pair), "distinguishable": pair.distinguishable} for pair in verdict.pairs]
            for size, verdict in comparison.verdicts.items()
        },
        "verdicts": {str(size or "all"): verdict.sentences() for size, verdict in comparison.verdicts.items()},
        "runs": [run.as_dict() | {"folder": run.folder.name} for run in comparison.runs],
        "failures": [{**run.place, "reason": run.reason} for run in comparison.failures],
        "configuration": comparison.experiment.as_dict(),
        "origins": origins(comparison),
        **origin(),
        "command": command(),
    }


def origins(comparison: Comparison) -> list[dict[str, Any]]:
    """The distinct combinations of versions, machine and commit that made the runs, each with its number of runs."""
    descriptions = [RunFolder(run.folder).description() for run in comparison.runs]
    origins = [{name: about.get(name) for name in ("versions", "machine", "commit")} for about in descriptions]
    distinct = [own for number, own in enumerate(origins) if own not in origins[:number]]
    return [{**own, "runs": origins.count(own)} for own in distinct]


def commit_of(origin: Mapping[str, Any]) -> str:
    """The commit of one of the `origins`, or its version if no commit is known."""
    return origin["commit"] or f"pointset {(origin['versions'] or {}).get('pointset', 'of an unrecorded version')}"


def machine_of(origin: Mapping[str, Any]) -> str:
    """The machine of one of the `origins`, as text."""
    if (machine := origin["machine"]) is None:
        return "an unrecorded machine"
    return f"{machine['system']}, {machine['cores']} cores, {machine['accelerator'] or 'no GPU'}"
