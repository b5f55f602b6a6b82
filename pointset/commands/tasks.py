"""`pointset task`: a set problem of the papers, its models beside their published figures."""

import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.options import Json
from pointset.commands.printing import in_hours, print_json, print_rows
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from pointset.processes import Workers
    from pointset.tasks.experiment import TaskExperiment


def task(
    name: str,
    /,
    *,
    models: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] | None = None,
    steps: int | None = None,
    data: str | None = None,
    out: Path | None = None,
    workers: int | None = None,
    backend: Literal["loky", "dask", "ray"] = "loky",
    scheduler: str | None = None,
    threads: int | None = None,
    dry_run: Annotated[bool, Parameter(help="Print the cells and an estimate of time, and run nothing.")] = False,
    status: Annotated[bool, Parameter(help="Print where every cell stands, and run nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Run a set problem: its shipped experiment, with the published figures beside ours.

    A run that was cut off goes on when the same command is given again.

    Args:
        name: max-regression, clustering, counting or anomaly.
        models: rows of its table to run; all when not given.
        seeds: one run per model and seed; those of the experiment when not given.
        steps: of training; those of the experiment when not given.
        data: a folder of images, for counting (Omniglot) and anomaly (CelebA); embedded digits when not given.
        out: folder for the runs, table.md, results.csv and results.json; runs/NAME when not given.
        workers: runs at once; one per core, divided by the threads, when not given. Does not change the figures.
        backend: processes on this machine (loky), or a dask or ray cluster that sees the same folders.
        scheduler: the cluster's address, such as tcp://host:8786.
        threads: threads of each run; those of the experiment when not given.
        as_json: print JSON.
    """
    from pointset.processes import Workers
    from pointset.tasks.experiment import shipped_experiment

    experiment = task_experiment(shipped_experiment(name), models, seeds, steps, data, threads)
    run_or_look(experiment, out or Path("runs") / name, Workers(workers, backend, scheduler), dry_run, status, as_json)


def task_experiment(
    file: Path,
    models: tuple[str, ...] | None,
    seeds: tuple[int, ...] | None,
    steps: int | None,
    data: str | None,
    threads: int | None,
) -> "TaskExperiment":
    """A file's experiment with what the flags change."""
    from pointset.tasks.experiment import read_task_experiment

    changes: dict[str, Any] = {"seeds": seeds, "threads": threads}
    changes = {name: value for name, value in changes.items() if value is not None}
    experiment = read_task_experiment(file)
    if steps is not None:
        changes["recipe"] = replace(experiment.recipe, steps=steps)
    if data is not None:
        changes["options"] = {**experiment.options, "data": data}
    return replace(experiment, **changes, **_chosen(experiment, models))


def _chosen(experiment: "TaskExperiment", labels: tuple[str, ...] | None) -> dict[str, Any]:
    """The rows that are asked for, in the experiment's order."""
    if labels is None:
        return {}
    if unknown := set(labels) - set(experiment.labels):
        known = ", ".join(experiment.labels)
        raise PointsetError(f"{sorted(unknown)[0]!r} is no row of the experiment: choose from {known}")
    kept = tuple(entry for entry in experiment.models if entry.label in labels)
    return {"models": kept, "published": {k: v for k, v in experiment.published.items() if k in labels}}


def run_or_look(
    experiment: "TaskExperiment", out: Path, workers: "Workers", dry_run: bool, status: bool, as_json: bool
) -> None:
    """Run an experiment, or say where it stands, or how long it will take."""
    if status:
        _print_status(experiment, out, as_json)
    elif dry_run:
        _print_estimate(experiment, out, workers.count, as_json)
    else:
        _run(experiment, out, workers, as_json)


def _run(experiment: "TaskExperiment", out: Path, workers: "Workers", as_json: bool) -> None:
    from pointset.tasks.comparison import run_task_experiment

    result = run_task_experiment(experiment, out, workers)
    if as_json:
        print((out / "results.json").read_text(encoding="utf-8"))
    else:
        print(result.caption())
        print(result.table(brief=True))
        print(f"saved in {out}: table.md, results.csv, results.json")
    if result.failures:
        reasons = "; ".join(f"{one.name}: {one.reason}" for one in result.failures)
        total = len(result.failures) + len(result.cells)
        raise PointsetError(f"{len(result.failures)} of {total} runs failed ({reasons}): the same command tries again")


def _print_status(experiment: "TaskExperiment", out: Path, as_json: bool) -> None:
    from pointset.tasks.progress import status

    rows = []
    for one in status(experiment, out):
        row = asdict(one)
        if not as_json:
            figures = row.pop("figures") or {}
            row |= {metric.name: figures.get(metric.name, "") for metric in experiment.problem.metrics}
        rows.append(row)
    print_rows(rows, as_json)


def _print_estimate(experiment: "TaskExperiment", out: Path, workers: int | None, as_json: bool) -> None:
    from pointset.tasks.progress import estimate

    found = estimate(experiment, out)
    seconds = sum(one.seconds for one in found)
    count = workers or max(1, (os.cpu_count() or 1) // experiment.threads)
    if as_json:
        print_json({"cells": [asdict(one) for one in found], "seconds": seconds, "workers": count})
        return
    print_rows(
        [
            {
                "model": one.model,
                "cells left": one.cells,
                "ms a step": f"{1000 * one.step_seconds:.1f}",
                "time": in_hours(one.seconds),
            }
            for one in found
        ]
    )
    print(f"{in_hours(seconds)} of training, about {in_hours(seconds / count)} with {count} at once; tests extra")
