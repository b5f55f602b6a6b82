"""`pointset compare`: many models, one protocol, one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pointset.commands import quick
from pointset.commands.grids import changed, run_or_look
from pointset.commands.options import (
    RUN,
    DataFlags,
    Given,
    Json,
    ModelFlags,
    RecipeFlags,
    Running,
    RunningFlags,
    given_fields,
    model_flag,
    recipe_flag,
)
from pointset.configuration import Checked
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from pointset.comparison.experiment import Experiment


def compare(
    file: Path | None = None,
    /,
    *,
    models: tuple[str, ...] | None = None,
    data: str | None = None,
    seeds: tuple[int, ...] | None = None,
    out: Path | None = None,
    running: Annotated[Running, RunningFlags] = RUN,
    data_options: Annotated[quick.QuickData, DataFlags] = quick.DATA,
    model_options: Annotated[quick.QuickModel, ModelFlags] = quick.MODEL,
    recipe: Annotated[quick.QuickRecipe, RecipeFlags] = quick.RECIPE,
    as_json: Json = False,
    given: Given,
) -> None:
    """Train and test several models with several seeds under one protocol: one table, and a report.

    Without FILE, it compares DeepSets with Set Transformers on the embedded shapes10, in minutes; with --data, support
    vector machines on classical features and on embeddings, networks, and one that starts from trained weights, with a
    recipe for folders of one's own.
    If interrupted, run the same command again to continue.

    Example: `pointset compare --data path/to/parts --models rff-max isab16-pma --points 256 --out runs/parts`

    Args:
        file: An experiment file (TOML), such as those in scripts/experiments, on point sets or on a set problem. It
            sets everything that affects the results; the flags --models, --data, --seeds and --threads can change that,
            and no others.
        models: Names from `pointset zoo`; with FILE, the rows to run.
        data: Name of a card, or a folder; default: shapes10.
        seeds: Seeds, one run per model, size and seed; default: 0 1 2.
        out: Folder for the runs, report.html, report.md, results.csv, results.json and table.md; default: runs/compare
            or runs/FILE.
        as_json: Print JSON.
    """
    from pointset.tasks.experiments import read_experiment

    out = out or Path("runs") / (file.stem if file else "compare")
    if file is None:
        experiment = _main_job(models, data, data_options, model_options, recipe, given)
        title = None if models is None and data is None else ""  # the file's speaks of its models and data
        experiment = changed(experiment, None, data=data, seeds=seeds, threads=running.threads, title=title)
    else:
        _check_flags(file, data_options, model_options, recipe)
        experiment = changed(read_experiment(file), models, data=data, seeds=seeds, threads=running.threads)
    run_or_look(experiment, out, running, as_json)


def _main_job(
    models: tuple[str, ...] | None,
    data: str | None,
    sets: DataOptions,
    model: ModelOptions,
    recipe: Recipe,
    given: frozenset[str],
) -> "Experiment":
    """The experiment of quick.toml, or on other data of own.toml, changed by the flags."""
    from pointset.comparison.experiment import Entry
    from pointset.tasks.experiments import read_experiment
    from pointset.tasks.shipped import shipped_experiment

    changes: dict[str, Any] = {} if models is None else {"models": tuple(Entry(name) for name in models)}
    if data in (None, quick.NAME):
        sets, model, recipe = quick.plain(data, sets, model, recipe)
        return read_experiment(quick.FILE, **changes, sets=sets, points=(sets.points,), model=model, recipe=recipe)
    own = read_experiment(shipped_experiment("own"))
    points = sets.points if "points" in given else own.task.points[0]  # type: ignore[attr-defined]
    changed_sets = own.task.sets.as_dict() | given_fields(sets, given) | {"points": points}  # type: ignore[attr-defined]
    sizes = [min(size, points) for size in own.recipe.points or ()]
    changed_recipe = own.recipe.as_dict() | {"points": sizes} | given_fields(recipe, given, recipe_flag)
    return own.changed(
        **changes,
        sets=DataOptions.from_dict(changed_sets),
        points=(points,),
        model=ModelOptions.from_dict(own.model.as_dict() | given_fields(model, given, model_flag)),
        recipe=Recipe.from_dict(changed_recipe),
    )


def _check_flags(file: Path, sets: DataOptions, model: ModelOptions, recipe: Recipe) -> None:
    """Raise a PointsetError for a flag whose value the file sets."""
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
            raise PointsetError(f"{file} sets {what}: leave the flag out, or change the value in a copy of the file")
