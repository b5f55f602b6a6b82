"""The function `compare`, and experiments read from TOML files such as this one.

    title = "DeepSets against Set Transformers"
    task = "classification"             # the default; or max-regression, clustering, counting, anomaly
    seeds = [0, 1, 2]                   # `seeds = 3` is the seed 3 alone, not three seeds
    models = ["rff-max", { name = "isab16-pma", pool_seeds = "mean" }]   # names, or tables with a name and options

    data = "modelnet40-hdf5"            # options of the task
    points = [100, 1000]

    [model]                             # fields of ModelOptions, for all models
    [recipe]                            # fields of Recipe
    [published.rff-max]                 # published values, as [mean, standard deviation, number of runs], by set size
    100 = [0.7951, 0.0166, 5]           # or by metric, for a task without set sizes

TOML has no null, so "none" means None for fields that can be None, as in `clip_norm = "none"`.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

from msgspec import Meta

from pointset.arguments import suggests
from pointset.comparison.comparing import run_experiment
from pointset.comparison.experiment import Entry, Experiment, TomlTable, as_tuple, unknown_key
from pointset.comparison.results import Comparison
from pointset.comparison.runs import EXPERIMENT
from pointset.comparison.task import Task
from pointset.configuration import Cores, check
from pointset.data.options import DataOptions
from pointset.errors import REPEATED, PointsetError, described, one_line, quoted
from pointset.runs import records
from pointset.runs.files import MOST_SETTINGS, read_file
from pointset.runs.workers import Workers
from pointset.tasks.bundled import Options, bundled_experiment
from pointset.tasks.classification import Classification
from pointset.tasks.clustering import Clustering
from pointset.tasks.digits import Anomaly, Counting
from pointset.tasks.max_regression import MaxRegression
from pointset.training.recipe import Recipe
from pointset.zoo.names import load_files
from pointset.zoo.options import ModelOptions

SHAPES10: Final = "shapes10"
"""The dataset included in the package, the default of `compare`."""
TASKS: Mapping[str, Any] = {
    "classification": Classification,
    "max-regression": MaxRegression,
    "clustering": Clustering,
    "counting": Counting,
    "anomaly": Anomaly,
}
KEYS: Mapping[str, Any] = {
    "title": str,
    "task": str,
    "models": Annotated[list[Any], Meta(description="a list of names, or of tables with a name")],
    "seeds": Annotated[int | list[int], Meta(description="whole numbers")],
    "threads": Cores,
    "model": TomlTable,
    "recipe": TomlTable,
    "published": Annotated[dict[str, dict[str, Any]], Meta(description="a table for each model")],
}
"""Keys of an experiment's file that all tasks share, and their types. Other keys are options of the task."""


@suggests
def compare(
    models: Sequence[str | Mapping[str, Any] | Entry] | None = None,
    data: str | Path = "shapes10",
    *,
    seeds: Sequence[int] = (0, 1, 2),
    points: int | Sequence[int] = (),
    data_options: DataOptions | Mapping[str, Any] | None = None,
    model_options: ModelOptions | Mapping[str, Any] | None = None,
    recipe: Recipe | Mapping[str, Any] | None = None,
    out: str | Path = "runs/compare",
    workers: int | None = None,
    scheduler: str | None = None,
    threads: int = 1,
    progress: bool = True,
    report: bool = True,
) -> Comparison:
    """Train and test classifiers with the same settings, by default those of `pointset compare`.

    The seed determines weights, shape order, subsets, augmentation and dropout. All runs have the same test sets.
    Metrics are computed on all test shapes after the last epoch (after the best validation epoch if the recipe has
    `patience`).

    Args:
        models: names from the zoo, or mappings with a name and options for this model ({"name": "isab16-pma",
            "pool_seeds": "mean"}); default: the models of `pointset compare` on this data.
        data: the name of a dataset card, or a folder.
        seeds: seeds of the runs. There is one run for each model, set size and seed.
        points: one set size, or several; default: the size in `data_options`.
        data_options: options of the sets: an object, or a mapping of changes to the defaults ({"normalize": "none"}).
        model_options: options shared by all models: an object, or a mapping of changes to the defaults ({"dim": 32}).
        recipe: training recipe of all models: an object, or a mapping of changes to the defaults ({"epochs": 15}).
        out: folder for the runs and the results; finished runs in this folder are not repeated.
        workers: number of runs in parallel; default: the number of cores divided by the threads.
        scheduler: the address of a dask cluster that can access the same folders; default: this machine.
        threads: number of torch threads of each run. It is part of the protocol, as it can change rounding errors.
        progress: show a progress bar.
        report: also write report.html and figures/.

    Returns:
        The finished runs, with tables and statistics.

    Raises:
        PointsetError: if a model or dataset is unknown; if `out` has a comparison with another protocol (settings of
            all runs); if no run could be finished.

    Example:
        >>> for number, (cloud, label) in enumerate(zip(X, y, strict=True)):
        ...     Path("toys", label).mkdir(parents=True, exist_ok=True)
        ...     np.save(f"toys/{label}/{number}.npy", cloud)
        >>> protocol = {
        ...     "seeds": [0],
        ...     "data_options": pointset.DataOptions(points=16),
        ...     "model_options": pointset.ModelOptions(dim=16),
        ...     "recipe": pointset.Recipe(epochs=1),
        ...     "workers": 1,
        ... }
        >>> comparison = pointset.compare(["rff-max", "rff-mean"], "toys", **protocol, progress=False, report=False)
        >>> sorted(row.model for row in comparison.rows)
        ['rff-max', 'rff-mean']
        >>> (comparison.folder / "table.md").exists()
        True
    """
    if isinstance(models, str | Path):
        raise PointsetError(
            f"models must be a list of names, got {quoted(str(models))}; to run a file, use "
            "pointset.comparison.run_experiment(pointset.tasks.read_experiment(file), out)"
        )
    if not isinstance(data, str | Path):
        remedy = "save clouds as files, such as class/1.npy, because runs are in other processes"
        raise PointsetError(f"data must be the name of a dataset or a folder, got {described(data)}: {remedy}")
    if not isinstance(seeds, Iterable):
        raise PointsetError(f"seeds must be a list of seeds, got {quoted(seeds)}: three seeds are (0, 1, 2)")
    for name, value, kind in (
        ("data_options", data_options, DataOptions),
        ("model_options", model_options, ModelOptions),
        ("recipe", recipe, Recipe),
    ):
        if not isinstance(value, Mapping | None):
            check(name, value, kind)
    experiment = default_experiment(
        str(data),
        models,
        points=tuple(points) if isinstance(points, Iterable) else (points,),
        sets=data_options or {},
        model=model_options or {},
        recipe=recipe or {},
        seeds=tuple(seeds),
        threads=threads,
    )
    return run_experiment(experiment, out, Workers(workers, scheduler), progress=progress, report=report)


def default_experiment(
    data: str = SHAPES10,
    models: Sequence[str | Mapping[str, Any] | Entry] | None = None,
    *,
    points: Sequence[int] = (),
    sets: DataOptions | Mapping[str, Any] = MappingProxyType({}),
    model: ModelOptions | Mapping[str, Any] = MappingProxyType({}),
    recipe: Recipe | Mapping[str, Any] = MappingProxyType({}),
    **changes: Any,
) -> Experiment:
    """Return the experiment of command and function `compare`: from quick.toml for shapes10, otherwise from own.toml.

    `sets`, `model` and `recipe` are complete options, or mappings of changes to those of the file. `changes` are fields
    of `Experiment`.
    """
    usual = read_content(bundled_experiment("quick" if data == SHAPES10 else "own"))
    given: dict[str, Any] = {"sets": sets, "model": model, "recipe": recipe}
    whole = {name: value for name, value in given.items() if not isinstance(value, Mapping)}
    base = Options(
        DataOptions.from_dict({**usual.get("sets", {}), "points": usual["points"][0]}),
        ModelOptions.from_dict(usual["model"]),
        Recipe.from_dict(usual["recipe"]),
    )._replace(**whole)
    partly = {name: {} if name in whole else dict(value) for name, value in given.items()}
    if points and "sets" not in whole:
        partly["sets"]["points"] = max(points)
    options = base.changed(**partly)._replace(**whole)
    title = usual["title"] if data == SHAPES10 and models is None else ""
    return Experiment.of(
        Classification(data=data, points=tuple(points) or (options.sets.points,), sets=options.sets).task,
        usual["models"] if models is None else models,
        model=options.model,
        recipe=options.recipe,
        **{"title": title, "seeds": tuple(usual["seeds"]), **changes},
    )


def read_experiment(path: str | Path, **changes: Any) -> Experiment:
    r"""Read an experiment from a TOML file; see `pointset.tasks.experiments` for its format.

    Args:
        path: path of the file, or of a comparison's folder.
        changes: fields of `Experiment`, or options of the task, that replace those of the file.

    Returns:
        The experiment, for `run_experiment`.

    Raises:
        PointsetError: if the file is missing or not TOML; if an entry is unknown or wrong. The message names the file.

    Example:
        >>> lines = ['models = ["rff-max", "isab16-pma"]', "seeds = [0, 1]", "[recipe]", "epochs = 5"]
        >>> written = Path("mine.toml").write_text("\n".join(lines))
        >>> experiment = pointset.tasks.read_experiment("mine.toml", seeds=(0,))
        >>> experiment.labels, experiment.seeds, experiment.recipe.epochs
        (['rff-max', 'isab16-pma'], (0,), 5)
    """
    if saved := (Path(path) / EXPERIMENT).exists():
        load_files()
        content = records.read_json(Path(path) / EXPERIMENT, "give the options again", dict[str, Any])
    else:
        content = read_content(path)
    try:
        experiment = experiment_from(content, whole=saved)
    except PointsetError as error:
        raise PointsetError(f"{path}: {error}") from error
    return experiment.changed(**changes) if changes else experiment


def read_content(path: str | Path) -> dict[str, Any]:
    """Return the content of an experiment's file, without checks."""
    try:
        content = tomllib.loads(read_file(Path(path), MOST_SETTINGS).decode("utf-8-sig"))
    except FileNotFoundError:
        raise PointsetError(f"the experiment {path} does not exist: give a TOML file") from None
    except (OSError, ValueError, RecursionError) as error:  # ValueError: wrong UTF-8 or wrong syntax
        raise PointsetError(f"{path} is not a TOML file: {one_line(error, REPEATED)}") from error
    load_files()  # not in `try`: errors in files of user-defined parts are not errors of this file
    return content


def experiment_from(content: Mapping[str, Any], whole: bool = False) -> Experiment:
    """Return the experiment that a file's content describes. `whole` is True for files saved by comparisons."""
    for key in KEYS.keys() & content.keys():
        check(key, content[key], KEYS[key])
    task = make_task(content.get("task", "classification"), **{key: content[key] for key in content if key not in KEYS})
    fields = {key: content[key] for key in ("title", "threads", "models", "published") if key in content}
    if "seeds" in content:
        fields["seeds"] = as_tuple(content["seeds"])
    if "model" in content:
        fields["model"] = ModelOptions.from_dict(content["model"])
    if "recipe" in content:  # a saved recipe has all fields
        recipe = content["recipe"]
        fields["recipe"] = Recipe.from_dict(recipe) if whole else task.recipe(**recipe)
    experiment = Experiment.of(task, **fields)
    robust = set(task.options.get("robustness_seeds", ()))
    if not whole and (unknown := robust - set(experiment.seeds)):
        seeds = list(experiment.seeds)
        raise PointsetError(f"robustness_seeds must be among the seeds {seeds}, got {sorted(unknown)}")
    return experiment


def make_task(name: str, **options: Any) -> Task:
    """Make a task by its name.

    Args:
        name: "classification", "max-regression", "clustering", "counting" or "anomaly".
        options: fields of `Classification`; the other tasks have no options.

    Returns:
        The task, for `Experiment.of`.

    Raises:
        PointsetError: if the task or an option is unknown; if an option has a wrong value.
    """
    if name not in TASKS:
        raise PointsetError(f"no task is called {quoted(name)}: use {', '.join(TASKS)}")
    task: Task = TASKS[name]().task
    for option in options.keys() - task.options.keys():
        raise PointsetError(unknown_key(option, [*KEYS, *task.options]))
    return task.changed(**options)
