"""Several models, sizes of set and seeds, one data set, one protocol: one table.

Every cell (model, size, seed) is a run in its own folder, so a comparison that was cut off goes on where it stopped.
Every cell trains with the same number of threads whatever the number of workers, so the workers change no figure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pointset.comparison.cells import Cell, Failure, Job, load_predictions
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.statistics import Pair
from pointset.comparison.tables import Row, make_rows, make_table
from pointset.data.dataset import load_sets
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation
from pointset.evaluation.costs import Cost
from pointset.runs.claims import check_claim, claim
from pointset.runs.jobs import run_jobs, watched
from pointset.runs.workers import Workers
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions
from pointset.zoo.own import carried


@dataclass(frozen=True)
class Comparison:
    """The cells of an experiment, and what follows from them."""

    experiment: Experiment
    cells: list[Cell]
    """Of models, within sizes, within seeds, in the experiment's order."""
    pairs: Mapping[int, list[Pair]]
    """By size: every two models compared."""
    costs: Mapping[int, Mapping[str, Cost]]
    """By size and label."""
    failures: Sequence[Failure] = ()
    folder: Path | None = None
    """Where the runs are."""
    classes: Sequence[str] = ()

    @property
    def rows(self) -> list[Row]:
        """One row per size and model, in the order in which they were given."""
        return make_rows(self.experiment, self.cells, self.pairs, self.costs)

    def table(self, style: str = "simple", brief: bool = False) -> str:
        """The table as text in one of tabulate's formats ("simple", "github", ...); `brief` to fit a terminal."""
        return make_table(self.rows, style, brief, metrics=self.experiment.metrics)

    def caption(self) -> str:
        """What the table's figures are, in a few sentences."""
        experiment, recipe = self.experiment, self.experiment.recipe
        epoch = "last epoch" if recipe.patience is None else "best validation epoch"
        length = f"{recipe.steps} steps" if recipe.steps else f"{recipe.epochs} epoch{'s' * (recipe.epochs > 1)}"
        seeds, sizes = len(experiment.seeds), " / ".join(map(str, experiment.points))
        spread = ", mean ± standard deviation over seeds" if seeds > 1 else ""
        rounded = "" if recipe.precision == "float32" else f", {recipe.precision}"
        return (
            f"{Path(experiment.data).name}, {sizes} points, {seeds} seed{'s' * (seeds > 1)}, {length}{rounded}, width "
            f"{experiment.model.dim}, form {experiment.model.form}; every test shape, {epoch}{spread}"
        )

    def evaluation(self, cell: Cell) -> Evaluation:
        """The predictions behind a cell."""
        return load_predictions(self.run_folder(cell), list(self.classes))

    def run_folder(self, cell: Cell) -> Path:
        """Where the run of a cell is kept."""
        if self.folder is None:
            raise PointsetError("this comparison has no folder to read predictions from")
        entry = next(entry for entry in self.experiment.models if entry.label == cell.model)
        return cell_folder(self.folder, entry, cell.points, cell.seed)


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
) -> Comparison:
    """Train and test every model at every size with every seed under one protocol.

    The seed sets weights, order, subsets, augmentation and dropout; test sets are the same for all. The figures are
    those of the last epoch on every test shape (of the best validation epoch when the recipe stops early).

    Args:
        models: names from the zoo, or tables with a name and options of its own ({"name": "isab16-pma",
            "seeds": "pooled"}).
        data: a card's name or a folder.
        seeds: one run per model, size and seed.
        points: sizes of set; that of `data_options` when not given.
        data_options: the sets; `DataOptions()` when not given.
        model_options: widths and forms, the same for all; `ModelOptions()` when not given.
        recipe: the training, the same for all; `Recipe()` when not given.
        out: folder for the runs and the results; what is finished there is not done again.
        workers: cells that run at once; by default one per core, divided by the threads.
        backend: "loky" (processes on this machine), "dask" or "ray" (a cluster that sees the same folders).
        scheduler: the cluster's address.
        threads: torch threads of each cell; they can change results by rounding, so they are part of the protocol.
        progress: show a bar and a line per cell, where the output is a terminal.

    Raises:
        PointsetError: a model or data set is unknown, `out` holds a comparison under another protocol, or no cell at
            all could be finished.
    """
    if isinstance(models, str | Path):
        raise PointsetError(
            f"models={str(models)!r} is one text: give a list of names; a file is run by "
            "pointset.run_experiment(pointset.read_experiment(file), out)"
        )
    data_options = data_options or DataOptions()
    experiment = Experiment(
        models=tuple(Entry.of(model) for model in models),
        data=str(data),
        points=tuple(points) or (data_options.points,),
        seeds=tuple(seeds),
        threads=threads,
        sets=data_options,
        model=model_options or ModelOptions(),
        recipe=recipe or Recipe(),
    )
    return run_experiment(experiment, out, Workers(workers, backend, scheduler), progress=progress)


def run_experiment(
    experiment: Experiment, out: str | Path, workers: Workers | None = None, *, progress: bool = True
) -> Comparison:
    """Run what is not finished of an experiment; see `compare`."""
    from pointset.comparison.results import gather, save
    from pointset.training.distributed import world_size

    if world_size() > 1:
        raise PointsetError("a comparison spreads its runs by itself: start it without torchrun or accelerate launch")
    out, workers = Path(out), workers or Workers()
    _check_recipe(experiment.recipe, workers)
    claim_folder(experiment, out, progress)
    jobs = make_jobs(experiment, out)
    outcomes = list(watched(run_jobs(jobs, workers), len(jobs), progress))
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if len(failures) == len(outcomes):
        raise PointsetError(f"no run was finished; {failures[0].name}: {failures[0].reason}")
    comparison = gather(experiment, out, outcomes)
    save(comparison, out)
    return comparison


def _check_recipe(recipe: Recipe, workers: Workers) -> None:
    """Raise a PointsetError for what every cell would fail with, before the folder is claimed for it."""
    from pointset.data.augment import augmentation_from_names
    from pointset.training.loop import find_device

    augmentation_from_names(recipe.augment)
    if workers.backend == "loky":  # a cluster's machines may have other devices than this one
        find_device(recipe.device)


def check_folder(experiment: Experiment, out: Path) -> None:
    """Raise a PointsetError for a folder that is for something else; nothing is written or waited for."""
    protocol = experiment.protocol()
    check_claim(out / "protocol.json", protocol, list(protocol), "comparison")


def claim_folder(experiment: Experiment, out: Path, progress: bool = True) -> None:
    """Make the data ready and write down what the folder is for, or refuse a folder that is for something else."""
    check_folder(experiment, out)
    described = {}
    for points in experiment.points:
        # Builds pools that are missing once, before the workers start; data that is not there leaves no claim behind.
        sets = load_sets(experiment.data, experiment.sets_of(points), progress=progress)
        described[points] = {f"{one.split}_sets": one.describe() for one in sets}
    protocol = experiment.protocol()
    claim(out / "protocol.json", protocol, list(protocol), "comparison")
    for points, description in described.items():
        claim(out / f"sets-n{points}.json", description, list(description), "comparison")


def make_jobs(experiment: Experiment, out: Path) -> list[Job]:
    """The grid: seeds outermost, so that a table with every row is there early."""
    return [
        Job(
            label=entry.label,
            name=carried(entry.name),
            seed=seed,
            data=experiment.data,
            data_options=experiment.sets_of(points),
            model_options=entry.options(experiment.model),
            recipe=experiment.recipe,
            threads=experiment.threads,
            folder=cell_folder(out, entry, points, seed),
            robustness=seed in experiment.robustness_seeds,
        )
        for seed in experiment.seeds
        for points in experiment.points
        for entry in experiment.models
    ]


def cell_folder(out: Path, entry: Entry, points: int, seed: int) -> Path:
    """Where one cell is kept; it does not depend on what else is compared."""
    return out / "cells" / f"{entry.slug}-n{points}-seed{seed}"
