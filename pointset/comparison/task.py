"""The interface of a task: sets and sizes, models, training, test, metrics and sections of the report."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.comparison.metric import Metric, Size
from pointset.training.loop import Fitted
from pointset.training.recipe import Recipe
from pointset.zoo.names import used_options
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from pointset.comparison.report.sections import Section
    from pointset.comparison.results import Results
    from pointset.comparison.runs import Run


class Task(ABC):
    """What is learned and how it is evaluated. Subclasses are frozen dataclasses whose fields are the options.

    A task is pickled to other processes. All randomness comes from the seeds that are passed in.
    """

    name: ClassVar[str]
    """Name in the file of an experiment, such as "max-regression"."""
    rows: ClassVar[Sequence[str]] = ()
    """Default models of an experiment."""
    unit: ClassVar[str]
    """Unit of the length of a training: "epochs" or "steps"."""
    sets_are: ClassVar[str]
    """Column of results.csv with the number of test sets, such as "shapes"."""
    baselines: ClassVar[Collection[str]] = ()
    """Names of models other than networks: their costs are seconds and parameters, and a report compares networks with
    them."""
    most: ClassVar[int]
    """Number of elements of the largest set, of a task whose sets vary in size."""
    usual_model: ClassVar[ModelOptions] = ModelOptions()
    """Default model options of an experiment."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Name of the data, with which captions begin."""

    @property
    @abstractmethod
    def measured(self) -> Sequence[Metric]:
        """All metrics; the first one ranks the rows."""

    def shown_metrics(self, folder: Path) -> Sequence[Metric]:
        """The metrics as tables show them, given the folder of a finished run."""
        return self.measured

    @property
    def sizes(self) -> Sequence[Size]:
        """The set sizes at which models are trained and tested."""
        return (None,)

    @classmethod
    def from_file(cls, options: Mapping[str, Any]) -> Self:
        """Make a task from options as written in a file."""
        return cls(**options)

    def options(self) -> dict[str, Any]:
        """The options that affect the results, except sizes, as plain data."""
        return asdict(self)  # type: ignore[call-overload]

    def as_dict(self) -> dict[str, Any]:
        """All options, as plain data."""
        return {"options": self.options()}

    @abstractmethod
    def recipe(self, **changes: Any) -> Recipe:
        """The task's usual recipe with changes; an unknown or unused field raises a PointsetError."""

    @abstractmethod
    def check(self, seeds: Sequence[int], recipe: Recipe) -> None:
        """Raise a PointsetError if every run with these seeds and this recipe would fail."""

    def with_seeds(self, seeds: Sequence[int]) -> Self:
        """The task for an experiment with only these seeds."""
        return self

    @abstractmethod
    def zoo_name(self, model: str) -> str:
        """The name in the zoo from which a model is made; an unknown model raises a PointsetError."""

    def used_options(self, model: str) -> set[str]:
        """Fields of `ModelOptions` that a model is built from."""
        return used_options(self.zoo_name(model))

    @abstractmethod
    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Prepare the sets of a size, and describe them as plain data, to which the comparison's folder is then bound.

        A PointsetError is raised if the data is missing, or cannot be used with the recipe.
        """

    @abstractmethod
    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """An untrained model, called as `model(X [B, n, d], mask [B, n] or None)`."""

    @abstractmethod
    def train(self, run: Run, recipe: Recipe, folder: Path | None) -> Fitted:
        """Train the model of a run, in a folder or without one; a finished training in the folder is loaded."""

    @abstractmethod
    def steps_per_epoch(self, size: Size, recipe: Recipe) -> int:
        """Training steps per line of the history."""

    def done(self, epochs: int, recipe: Recipe) -> int:
        """Length of the training, in `unit`, after this number of lines of the history."""
        return epochs

    @abstractmethod
    def test(self, run: Run, model: nn.Module) -> tuple[dict[str, float], int]:
        """The metrics of a trained model by name, and the number of test sets."""

    def is_tested(self, run: Run) -> bool:
        """True if `test_further` has nothing left to do for a run."""
        return True

    def test_further(self, run: Run, model: nn.Module) -> None:  # noqa: B027 - most tasks have no further tests
        """Run further tests, such as robustness, and save their results in the run's folder."""

    def scores(self, run: Run) -> np.ndarray:
        """Values by which pairs are compared: bool [sets], True where a run is right, or the first metric alone [1]."""
        return np.array([run.metrics[self.measured[0].name]])

    @abstractmethod
    def length(self, recipe: Recipe) -> str:
        """The length of a training, for the caption."""

    @abstractmethod
    def taken(self, recipe: Recipe) -> str:
        """The test sets, and the epoch at which metrics are taken, for the caption."""

    def next_commands(self, runs: Sequence[Run]) -> list[str]:
        """Commands to suggest for finished runs; there is at least one."""
        return []

    def chance(self, folder: Path) -> Mapping[str, float]:
        """Values of the first metric without a model, such as {"chance": 0.1}, on the test sets of a finished run."""
        return {}

    @abstractmethod
    def sections(self, results: Results) -> Iterator[Section]:
        """The sections of the report for one size, beyond pairs and costs."""

    def tables(self, folder: Path, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Rows of further CSV files, by file name, from the folder of one run; each row starts with `columns`."""
        return {}
