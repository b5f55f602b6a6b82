"""One row, one seed of a set problem: trained and tested in a folder of its own (see `pointset.runs.jobs`)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pointset.runs.atomic import read_json, write_json
from pointset.runs.jobs import FolderJob
from pointset.tasks.learning import DrawnSets, describe_run, take_figures
from pointset.tasks.registry import create_task
from pointset.tasks.task import Task
from pointset.training.loop import Fitted, fit_objective
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


@dataclass(frozen=True)
class TaskPlace:
    """Where in the grid something stands."""

    model: str
    """The label of its row."""
    seed: int

    @property
    def name(self) -> str:
        """Which cell this is, in words."""
        return f"{self.model}, seed {self.seed}"


@dataclass(frozen=True)
class TaskCell(TaskPlace):
    """One trained and tested model."""

    figures: Mapping[str, float]
    """By metric, on the task's test sets."""
    parameters: int
    seconds: float
    """Training time, drawing the sets included."""
    steps: int

    @property
    def summary(self) -> str:
        """Its figures."""
        return ", ".join(f"{name} {value:.4g}" for name, value in self.figures.items())


@dataclass(frozen=True)
class TaskFailure(TaskPlace):
    """A cell that could not be finished."""

    reason: str

    @property
    def summary(self) -> str:
        """Why."""
        return f"failed: {self.reason}"


@dataclass(frozen=True)
class TaskJob(FolderJob["TaskCell | TaskFailure"]):
    """What makes a cell."""

    label: str
    row: str
    """The model, as the task knows it."""
    seed: int
    task: str
    task_options: Mapping[str, Any]
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    folder: Path

    def train(self, task: Task, run: Path | None, recipe: Recipe) -> Fitted:
        """Train the model in a folder, or without one; a run that is finished there is loaded."""
        model = task.model(self.row, self.model_options, self.seed)
        objective = DrawnSets(task, recipe.batch_size, self.seed)
        description = partial(describe_run, task, self.task_options, self.row, self.model_options, recipe, self.seed)
        return fit_objective(model, objective, recipe, description, seed=self.seed, run=run, progress=False)

    def perform(self) -> TaskCell:
        """Train and test the model; of what is there, nothing is done again."""
        task = create_task(self.task, **self.task_options)
        fitted = self.train(task, self.folder, self.recipe)
        if not self.result.exists():
            assert self.recipe.steps is not None, "the experiment sees to it"
            cell = TaskCell(
                model=self.label,
                seed=self.seed,
                figures=take_figures(task, fitted.model, task.test_sets()),
                parameters=sum(parameter.numel() for parameter in fitted.model.parameters()),
                seconds=round(fitted.seconds, 3),
                steps=self.recipe.steps,
            )
            write_json(self.result, asdict(cell))
        return self.read()

    def read(self) -> TaskCell:
        """The cell that is there."""
        return TaskCell(**read_json(self.result))

    def as_failure(self, reason: str) -> TaskFailure:
        """The outcome of a job that failed."""
        return TaskFailure(self.label, self.seed, reason)
