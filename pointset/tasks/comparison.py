"""Several models and seeds on one set problem, one protocol: one table.

Every cell (model, seed) is a run in its own folder, so a comparison that was cut off goes on where it stopped, to the
same numbers. The workers change no figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from pointset.comparison.experiment import Entry
from pointset.errors import PointsetError
from pointset.runs.claims import check_claim, claim
from pointset.runs.jobs import run_jobs, watched
from pointset.runs.workers import Workers
from pointset.tasks.experiment import TaskExperiment
from pointset.tasks.jobs import TaskCell, TaskFailure, TaskJob
from pointset.tasks.pairs import SeedPair, compare_rows
from pointset.tasks.tables import TaskRow, make_rows, make_table
from pointset.tasks.task import describe
from pointset.training.checkpoints import RunFolder


@dataclass(frozen=True)
class TaskComparison:
    """The cells of an experiment on a task, and what follows from them."""

    experiment: TaskExperiment
    cells: list[TaskCell]
    """Of models, within seeds, in the experiment's order."""
    failures: Sequence[TaskFailure]
    folder: Path
    """Where the runs are."""

    @property
    def pairs(self) -> list[SeedPair]:
        """Every two rows compared by the first metric."""
        metric = self.experiment.problem.metrics[0].name
        labels = [label for label in self.experiment.labels if any(cell.model == label for cell in self.cells)]
        return compare_rows(
            {label: {cell.seed: cell.figures[metric] for cell in self.cells if cell.model == label} for label in labels}
        )

    @property
    def rows(self) -> list[TaskRow]:
        """One row per model, in the order in which they were given."""
        return make_rows(self.experiment, self.cells, self.pairs)

    def table(self, style: str = "simple", brief: bool = False) -> str:
        """The table as text in one of tabulate's formats ("simple", "github", ...); `brief` to fit a terminal."""
        return make_table(self.rows, self.experiment.problem.metrics, style, brief)

    def caption(self) -> str:
        """What the table's figures are, in a few sentences."""
        experiment, recipe = self.experiment, self.experiment.recipe
        seeds = len(experiment.seeds)
        spread = ", mean ± standard deviation over seeds" if seeds > 1 else ""
        rounded = "" if recipe.precision == "float32" else f", {recipe.precision}"
        return (
            f"{experiment.problem.title}, {seeds} seed{'s' * (seeds > 1)}, {recipe.steps:,} steps of "
            f"{recipe.batch_size} sets{rounded}, width {experiment.model.dim}, form {experiment.model.form}; "
            f"last step{spread}"
        )

    def model(self, label: str, seed: int) -> nn.Module:
        """The trained model of a finished cell, in evaluation mode."""
        job = self._job(label, seed)
        return job.train(self.experiment.problem, job.folder, job.recipe).model

    def history(self, label: str, seed: int) -> list[dict[str, Any]]:
        """What a finished cell left after each block of steps: its loss, and the figures that are watched."""
        return RunFolder(self._job(label, seed).folder).history()

    def _job(self, label: str, seed: int) -> TaskJob:
        entry = next((entry for entry in self.experiment.models if entry.label == label), None)
        if entry is None or not any((cell.model, cell.seed) == (label, seed) for cell in self.cells):
            raise PointsetError(f"there is no finished cell {label}, seed {seed}: see the cells of this comparison")
        return make_job(self.experiment, self.folder, entry, seed)


def run_task_experiment(
    experiment: TaskExperiment, out: str | Path, workers: Workers | None = None, *, progress: bool = True
) -> TaskComparison:
    """Run what is not finished of an experiment, and write its table.

    Args:
        experiment: what to run.
        out: folder for the runs and the results; what is finished there is not done again.
        workers: where the work is done.
        progress: show a bar and a line per cell, where the output is a terminal.

    Raises:
        PointsetError: `out` holds a comparison under another protocol, or no cell at all could be finished.
    """
    from pointset.tasks.results import save
    from pointset.training.distributed import world_size

    if world_size() > 1:
        raise PointsetError("a comparison spreads its runs by itself: start it without torchrun or accelerate launch")
    out = Path(out)
    protocol = _protocol(experiment)
    claim(out / "protocol.json", protocol, list(protocol), "comparison")
    jobs = make_jobs(experiment, out)
    outcomes = list(watched(run_jobs(jobs, workers or Workers()), len(jobs), progress))
    failures = [outcome for outcome in outcomes if isinstance(outcome, TaskFailure)]
    if len(failures) == len(outcomes):
        raise PointsetError(f"no run was finished; {failures[0].name}: {failures[0].reason}")
    places = {label: place for place, label in enumerate(experiment.labels)}
    cells = sorted(
        (outcome for outcome in outcomes if isinstance(outcome, TaskCell)),
        key=lambda cell: (places[cell.model], experiment.seeds.index(cell.seed)),
    )
    comparison = TaskComparison(experiment, cells, failures, out)
    save(comparison, out)
    return comparison


def check_folder(experiment: TaskExperiment, out: Path) -> None:
    """Raise a PointsetError for a folder that is for something else; nothing is written."""
    protocol = _protocol(experiment)
    check_claim(out / "protocol.json", protocol, list(protocol), "comparison")


def _protocol(experiment: TaskExperiment) -> dict[str, Any]:
    return {**experiment.protocol(), "data": describe(experiment.problem)}


def make_jobs(experiment: TaskExperiment, out: Path) -> list[TaskJob]:
    """The grid: seeds outermost, so that a table with every row is there early."""
    return [make_job(experiment, out, entry, seed) for seed in experiment.seeds for entry in experiment.models]


def make_job(experiment: TaskExperiment, out: Path, entry: Entry, seed: int) -> TaskJob:
    """One cell; its folder does not depend on what else is compared."""
    return TaskJob(
        label=entry.label,
        row=entry.name,
        seed=seed,
        task=experiment.task,
        task_options=experiment.options,
        model_options=entry.options(experiment.model),
        recipe=experiment.recipe,
        threads=experiment.threads,
        folder=out / "cells" / f"{entry.slug}-seed{seed}",
    )
