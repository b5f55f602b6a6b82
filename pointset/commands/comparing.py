"""`pointset compare`: many models, one protocol, one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from pointset.commands import quick
from pointset.commands.grids import changed, run_or_look
from pointset.commands.options import DataFlags, Json, ModelFlags, RecipeFlags
from pointset.configuration import Checked
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment

    QuickData = DataOptions
    QuickModel = ModelOptions
    QuickRecipe = Recipe
else:
    QuickData, QuickModel, QuickRecipe = quick.QuickData, quick.QuickModel, quick.QuickRecipe


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
    dry_run: Annotated[bool, Parameter(help="Print the runs and an estimate of time, and run nothing.")] = False,
    status: Annotated[bool, Parameter(help="Print where every run stands, and run nothing.")] = False,
    data_options: Annotated[QuickData, DataFlags] = quick.DATA,
    model_options: Annotated[QuickModel, ModelFlags] = quick.MODEL,
    recipe: Annotated[QuickRecipe, RecipeFlags] = quick.RECIPE,
    as_json: Json = False,
) -> None:
    """Train and test several models with several seeds under one protocol: one table, and a report.

    Without FILE this is the main job: DeepSets against Set Transformers on the embedded shapes10, in minutes.
    A comparison that was cut off goes on when the same command is given again.

    Args:
        file: an experiment (TOML), such as those in scripts/experiments, on point sets or on a set problem; it says all
            that decides the results, and of the flags below only --models, --data, --seeds and --threads may change it;
            others are refused.
        models: names from `pointset zoo`; of a file, the rows to run.
        data: a card's name, or a folder; shapes10 when not given.
        seeds: one run per model, size and seed; 0 1 2 when not given.
        out: folder for the runs, report.html, report.md, results.csv, results.json and table.md; runs/compare or
            runs/FILE when not given.
        workers: runs at once; one per core, divided by the threads, when not given. Does not change the results.
        backend: processes on this machine (loky), or a dask or ray cluster that sees the same folders.
        scheduler: the cluster's address, such as tcp://host:8786.
        threads: threads of each run; 1 when not given.
        as_json: print JSON.
    """
    from pointset.runs.workers import Workers
    from pointset.tasks.experiments import read_experiment

    out, spread = out or Path("runs") / (file.stem if file else "compare"), Workers(workers, backend, scheduler)
    if file is None:
        experiment = _main_job(models, data_options, model_options, recipe)
        experiment = changed(experiment, None, data=data, seeds=seeds, threads=threads)
    else:
        _check_flags(file, data_options, model_options, recipe)
        experiment = changed(read_experiment(file), models, data=data, seeds=seeds, threads=threads)
    run_or_look(experiment, out, spread, dry_run, status, as_json)


def _main_job(models: tuple[str, ...] | None, sets: DataOptions, model: ModelOptions, recipe: Recipe) -> "Experiment":
    """quick.toml with what the flags change of it."""
    from pointset.comparison.experiment import Entry
    from pointset.tasks.experiments import read_experiment

    changes: dict[str, Any] = {  # as the plain classes, which other processes know
        "sets": DataOptions.from_dict(sets.as_dict()),
        "points": (sets.points,),
        "model": ModelOptions.from_dict(model.as_dict()),
        "recipe": Recipe.from_dict(recipe.as_dict()),
    }
    if models is not None:
        changes["models"] = tuple(Entry(name) for name in models)
    return read_experiment(quick.FILE, **changes)


def _check_flags(file: Path, sets: DataOptions, model: ModelOptions, recipe: Recipe) -> None:
    """Raise a PointsetError for a flag on something that the file decides."""
    groups: dict[str, tuple[Checked, Checked]] = {
        "its sets": (sets, quick.DATA),
        "its model": (model, quick.MODEL),
        "its recipe": (recipe, quick.RECIPE),
    }
    for group, (given, usual) in groups.items():
        if given is not usual:
            normal = usual.as_dict()
            # A flag that repeats a default cannot be told from those that were not given.
            what = next((name for name, value in given.as_dict().items() if value != normal.get(name)), group)
            raise PointsetError(f"{file} decides {what}: change it there, in a copy of the file, or leave it out")
