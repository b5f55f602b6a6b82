"""Runs comparisons of classifiers given as arguments, and reads experiments from files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pointset.comparison import files
from pointset.comparison.comparing import run_experiment
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.gathering import Comparison
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, quoted
from pointset.inputs import check_kind, takes
from pointset.runs.workers import Workers
from pointset.tasks.classification.task import Classification
from pointset.tasks.registry import task_from_file
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


def compare(
    models: Sequence[str | Mapping[str, Any] | Entry],
    data: str | Path = "shapes10",
    *,
    seeds: Sequence[int] = (0, 1, 2),
    points: Sequence[int] = (),
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    recipe: Recipe | None = None,
    out: str | Path = "runs/compare",
    workers: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    threads: int = 1,
    progress: bool = True,
    report: bool = True,
) -> Comparison:
    """Train and test each classifier with each set size and seed under one protocol.

    The seed determines weights, order, subsets, augmentation and dropout; test sets are the same for all runs. Metrics
    are computed on all test shapes after the last epoch (after the best validation epoch if the recipe stops early).

    Args:
        models: names from the zoo, or mappings with a name and options for this model ({"name": "isab16-pma",
            "seeds": "pooled"}).
        data: the name of a dataset card, or a folder.
        seeds: one run for each model, size and seed.
        points: set sizes; default: that of `data_options`.
        data_options: options of the sets; default: `DataOptions()`.
        model_options: options shared by all models; default: `ModelOptions()`.
        recipe: the training, the same for all models; default: `Recipe()`.
        out: folder for the runs and the results; finished runs in it are not repeated.
        workers: number of runs in parallel; default: the number of cores divided by the threads.
        backend: "loky" (processes on this machine), "dask" or "ray" (a cluster that can access the same folders).
        scheduler: the address of the cluster.
        threads: torch threads of each run; they can change results by rounding, so they are part of the protocol.
        progress: show a progress bar and a line per run on a terminal, or a progress line every half minute elsewhere.
        report: also write report.html and report.md.

    Returns:
        The finished runs, with tables and statistics.

    Raises:
        PointsetError: a model or dataset is unknown, `out` contains a comparison under another protocol, or no run
            could be finished.

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
            "pointset.run_experiment(pointset.read_experiment(file), out)"
        )
    check_kind("models", models, Iterable)
    check_kind("seeds", seeds, Iterable)
    data_options = data_options or DataOptions()
    experiment = Experiment(
        task=Classification(data=str(data), points=tuple(points) or (data_options.points,), sets=data_options),
        models=tuple(Entry.of(model) for model in models),
        seeds=tuple(seeds),
        threads=threads,
        model=model_options or ModelOptions(),
        recipe=recipe or Recipe(),
    )
    return run_experiment(experiment, out, Workers(workers, backend, scheduler), progress=progress, report=report)


@takes(path=str | Path)
def read_experiment(path: str | Path, **changes: Any) -> Experiment:
    r"""Read an experiment from a TOML file; see `pointset.comparison.experiment` for its format.

    Args:
        path: path of the file.
        changes: fields of `Experiment`, or options of its task, that replace those of the file.

    Returns:
        The experiment, for `run_experiment`.

    Raises:
        PointsetError: the file is missing, is not TOML, or has an unknown or wrong entry; the message names the file.

    Example:
        >>> lines = ['models = ["rff-max", "isab16-pma"]', "seeds = [0, 1]", "[recipe]", "epochs = 5"]
        >>> written = Path("mine.toml").write_text("\n".join(lines))
        >>> experiment = pointset.read_experiment("mine.toml", seeds=(0,))
        >>> experiment.labels, experiment.seeds, experiment.recipe.epochs
        (['rff-max', 'isab16-pma'], (0,), 5)
    """
    found = files.read_experiment(path, task_from_file)
    return found.changed(**changes) if changes else found
