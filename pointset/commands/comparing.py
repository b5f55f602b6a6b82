"""`pointset compare`: many models, one protocol, one table."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands.grids import chosen_rows, print_estimate, print_result
from pointset.commands.options import DataFlags, Json, ModelFlags, RecipeFlags
from pointset.commands.printing import print_rows
from pointset.commands.tasks import run_or_look, task_experiment
from pointset.comparison.quick import QuickData, QuickModel, QuickRecipe
from pointset.errors import PointsetError

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment

MAIN_JOB = ("rff-mean", "rff-max", "rffp-max", "rff-pma", "sab-pma", "isab16-max", "isab16-pma")

DATA, MODEL, RECIPE = QuickData(), QuickModel(), QuickRecipe()
"""What `compare` gets when no flag of theirs is given: these very objects."""


def compare(
    file: Path | None = None,
    /,
    *,
    models: tuple[str, ...] | None = None,
    data: str | None = None,
    seeds: tuple[int, ...] | None = None,
    out: Path | None = None,
    workers: int | None = None,
    backend: Literal["loky", "dask", "ray"] = "loky",
    scheduler: str | None = None,
    threads: int | None = None,
    dry_run: Annotated[bool, Parameter(help="Print the cells and an estimate of time, and run nothing.")] = False,
    status: Annotated[bool, Parameter(help="Print where every cell stands, and run nothing.")] = False,
    data_options: Annotated[QuickData, DataFlags] = DATA,
    model_options: Annotated[QuickModel, ModelFlags] = MODEL,
    recipe: Annotated[QuickRecipe, RecipeFlags] = RECIPE,
    as_json: Json = False,
) -> None:
    """Train and test several models with several seeds under one protocol: one table, and a report.

    Without FILE this is the main job: DeepSets against Set Transformers on the embedded shapes10, in minutes.
    A comparison that was cut off goes on when the same command is given again.

    Args:
        file: an experiment (TOML), such as those in scripts/experiments, or one on a set problem; it says all that
            decides the figures, and of the flags below only --models, --data, --seeds and --threads may change it;
            others are refused.
        models: names from `pointset zoo`; of a file, the rows to run.
        data: a card's name, or a folder; shapes10 when not given.
        seeds: one run per model, size and seed; 0 1 2 when not given.
        out: folder for the runs, report.html, report.md, results.csv, results.json and table.md; runs/compare or
            runs/FILE when not given.
        workers: runs at once; one per core, divided by the threads, when not given. Does not change the figures.
        backend: processes on this machine (loky), or a dask or ray cluster that sees the same folders.
        scheduler: the cluster's address, such as tcp://host:8786.
        threads: threads of each run; 1 when not given.
        as_json: print JSON.
    """
    from pointset.runs.workers import Workers

    out, spread = out or Path("runs") / (file.stem if file else "compare"), Workers(workers, backend, scheduler)
    if file is not None and _is_task(file):
        _check_flags(file, data_options, model_options, recipe)
        found = task_experiment(file, models, seeds, None, data, threads)
        run_or_look(found, out, spread, dry_run, status, as_json)
        return
    experiment = _experiment(file, models, data, seeds, threads, data_options, model_options, recipe)
    if status:
        _print_status(experiment, out, as_json)
    elif dry_run:
        from pointset.comparison.progress import estimate

        print_estimate(estimate(experiment, out), experiment.threads, spread, as_json)
    else:
        from pointset.comparison.comparing import run_experiment
        from pointset.comparison.results import FILES

        print_result(run_experiment(experiment, out, spread), out, FILES, as_json)


def _is_task(file: Path) -> bool:
    """Whether a file is about a set problem, and not about data."""
    from pointset.comparison.experiment import read_toml

    return "task" in read_toml(file)


def _check_flags(file: Path, data_options: QuickData, model_options: QuickModel, recipe: QuickRecipe) -> None:
    """Raise a PointsetError for a flag on something that the file decides."""
    groups = {"its sets": (data_options, DATA), "its model": (model_options, MODEL), "its recipe": (recipe, RECIPE)}
    for group, (given, usual) in groups.items():
        if given is not usual:
            normal = usual.as_dict()
            # A flag that repeats a default cannot be told from those that were not given.
            what = next((name for name, value in given.as_dict().items() if value != normal[name]), group)
            raise PointsetError(f"{file} decides {what}: change it there, in a copy of the file, or leave it out")


def _experiment(
    file: Path | None,
    models: tuple[str, ...] | None,
    data: str | None,
    seeds: tuple[int, ...] | None,
    threads: int | None,
    data_options: QuickData,
    model_options: QuickModel,
    recipe: QuickRecipe,
) -> "Experiment":
    from pointset.comparison.experiment import Entry, Experiment, read_experiment

    changes: dict[str, Any] = {"data": data, "seeds": seeds, "threads": threads}
    changes = {name: value for name, value in changes.items() if value is not None}
    if file is None:
        chosen = tuple(Entry(name) for name in models or MAIN_JOB)
        options: dict[str, Any] = {"sets": data_options, "model": model_options, "recipe": recipe}
        return Experiment(models=chosen, points=(data_options.points,), **options, **changes)
    _check_flags(file, data_options, model_options, recipe)
    experiment = read_experiment(file)
    if seeds is not None:
        changes["robustness_seeds"] = tuple(seed for seed in experiment.robustness_seeds if seed in seeds)
    return replace(experiment, **changes, **chosen_rows(experiment, models))


def _print_status(experiment: "Experiment", out: Path, as_json: bool) -> None:
    from pointset.comparison.progress import status

    rows = []
    for one in status(experiment, out):
        row = asdict(one)
        if not as_json:
            row["accuracy"] = "" if one.accuracy is None else f"{one.accuracy:.1%}"
        rows.append(row)
    print_rows(rows, as_json)
