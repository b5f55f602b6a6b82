"""`pointset compare`: many models, one protocol, one table."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pointset.commands.grids import changed, run_or_look
from pointset.commands.options import (
    QUICK,
    DataFlags,
    Given,
    Json,
    ModelFlags,
    Options,
    RecipeFlags,
    Running,
    RunningFlags,
    given_fields,
)
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.tasks.shipped import shipped_experiment
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
    running: Annotated[Running, RunningFlags] = Running(),
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),
    recipe: Annotated[Recipe, RecipeFlags] = Recipe(),
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
    flags = Options(data_options, model_options, recipe)
    if file is not None:
        _require_no_flags(file, flags, given)
        experiment = changed(read_experiment(file), models, data=data, seeds=seeds, threads=running.threads)
    else:
        experiment = _with_flags(data, models, flags, given)
        title = None if models is None and data is None else ""  # the file's speaks of its models and data
        experiment = changed(experiment, None, data=data, seeds=seeds, threads=running.threads, title=title)
    run_or_look(experiment, out, running, as_json)


def _with_flags(
    data: str | None, models: tuple[str, ...] | None, flags: Options, given: frozenset[str]
) -> "Experiment":
    """The experiment of quick.toml, or on other data of own.toml, changed by the flags."""
    from pointset.comparison.experiment import Entry
    from pointset.tasks.classification.task import Classification
    from pointset.tasks.experiments import read_experiment

    experiment = read_experiment(shipped_experiment("quick" if data in (None, QUICK["data"]) else "own"))
    task = experiment.task
    assert isinstance(task, Classification)
    usual = Options(task.sets_of(task.points[0]), experiment.model, experiment.recipe)
    sets, model, recipe = usual.changed(flags, given)
    rows = experiment.models if models is None else tuple(Entry(name) for name in models)
    return experiment.changed(models=rows, sets=sets, points=(sets.points,), model=model, recipe=recipe)


def _require_no_flags(file: Path, flags: Options, given: frozenset[str]) -> None:
    """Raise a PointsetError for a flag whose value the file sets."""
    for options in flags:
        for name in given_fields(options, given):
            raise PointsetError(f"{file} sets {name}: leave the flag out, or change the value in a copy of the file")
