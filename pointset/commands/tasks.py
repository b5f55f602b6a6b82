"""`pointset task`: a set problem of the papers, its models beside their published figures."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.grids import chosen_rows, print_estimate, print_result
from pointset.commands.options import Json
from pointset.commands.printing import print_rows

if TYPE_CHECKING:
    from pointset.runs.workers import Workers
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
    """Run a set problem: its shipped experiment, or a file of your own, with the published figures beside ours.

    A run that was cut off goes on when the same command is given again.

    Args:
        name: max-regression, clustering, counting or anomaly; or an experiment (TOML) on one of them, such as those in
            scripts/experiments/tasks.
        models: rows of its table to run; all when not given.
        seeds: one run per model and seed; those of the experiment when not given.
        steps: of training; those of the experiment when not given.
        data: a folder of images, for counting (Omniglot) and anomaly (CelebA); embedded digits when not given.
        out: folder for the runs, table.md, curves.png, results.csv and results.json; runs/NAME when
            not given.
        workers: runs at once; one per core, divided by the threads, when not given. Does not change the figures.
        backend: processes on this machine (loky), or a dask or ray cluster that sees the same folders.
        scheduler: the cluster's address, such as tcp://host:8786.
        threads: threads of each run; those of the experiment when not given.
        as_json: print JSON.
    """
    from pointset.runs.workers import Workers
    from pointset.tasks.experiment import shipped_experiment

    file = Path(name) if name.endswith(".toml") else shipped_experiment(name)
    experiment = task_experiment(file, models, seeds, steps, data, threads)
    out = out or Path("runs") / file.stem
    run_or_look(experiment, out, Workers(workers, backend, scheduler), dry_run, status, as_json)


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
    return replace(experiment, **changes, **chosen_rows(experiment, models))


def run_or_look(
    experiment: "TaskExperiment", out: Path, workers: "Workers", dry_run: bool, status: bool, as_json: bool
) -> None:
    """Run an experiment, or say where it stands, or how long it will take."""
    if status:
        _print_status(experiment, out, as_json)
    elif dry_run:
        from pointset.tasks.progress import estimate

        print_estimate(estimate(experiment, out), experiment.threads, workers, as_json)
    else:
        from pointset.tasks.comparison import run_task_experiment
        from pointset.tasks.results import FILES

        print_result(run_task_experiment(experiment, out, workers), out, FILES, as_json)


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
