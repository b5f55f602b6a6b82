"""What the engine asks of a task: sets and sizes, models, a training, a test, metrics, sections of a report."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import nn

from pointset.comparison.evidence import Evidence
from pointset.comparison.metric import Metric
from pointset.comparison.run_spec import RunSpec, Size
from pointset.comparison.section import Section
from pointset.training.loop import Fitted
from pointset.training.recipe import Recipe
from pointset.zoo.names import used_options
from pointset.zoo.options import ModelOptions


class Task(ABC):
    """What is learned and how it is judged: its subclasses are frozen dataclasses whose fields are its options.

    A task travels to other processes. Everything random comes from the seeds that are handed in.
    """

    name: ClassVar[str]
    """As in the file of an experiment, such as "max-regression"."""
    rows: ClassVar[Sequence[str]] = ()
    """The models of an experiment that names none."""
    pooled: ClassVar[bool] = False
    """Whether one error over seeds is taken from all rows together; see `pointset.comparison.statistics`."""
    unit: ClassVar[str]
    """What a training is counted in: "epochs" or "steps"."""
    sets_are: ClassVar[str]
    """What test sets are called in results.csv, such as "shapes"."""
    usual_model: ClassVar[ModelOptions] = ModelOptions()
    """Of an experiment that says nothing of its models."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was compared on, as a caption begins."""

    @property
    @abstractmethod
    def measured(self) -> Sequence[Metric]:
        """All metrics; the first one ranks the rows."""

    @property
    def sizes(self) -> Sequence[Size]:
        """One for each size of set that models are trained and tested at."""
        return (None,)

    @classmethod
    def from_file(cls, options: Mapping[str, Any]) -> Self:
        """From the options as they stand in a file."""
        return cls(**options)

    def options(self) -> dict[str, Any]:
        """The options that decide the results, as plain data; sizes are not among them."""
        return asdict(self)  # type: ignore[call-overload]

    def as_dict(self) -> dict[str, Any]:
        """All options, as plain data."""
        return {"options": self.options()}

    @abstractmethod
    def recipe(self, **changes: Any) -> Recipe:
        """The usual training with changes.

        Raises:
            PointsetError: a change is of a field that is unknown, or that the task does not use.
        """

    @abstractmethod
    def check(self, seeds: Sequence[int], recipe: Recipe) -> None:
        """Raise a PointsetError for options or a recipe with which every run would fail."""

    def with_seeds(self, seeds: Sequence[int]) -> Self:
        """The task of an experiment that keeps to these seeds."""
        return self

    @abstractmethod
    def zoo_name(self, model: str) -> str:
        """The zoo's name of what a model is made from.

        Raises:
            PointsetError: no model has this name.
        """

    def used_options(self, model: str) -> set[str]:
        """Fields of `ModelOptions` that a model is built from."""
        return used_options(self.zoo_name(model))

    @abstractmethod
    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Make the sets of a size ready, and describe them as plain data: a comparison's folder belongs to them.

        Raises:
            PointsetError: they are not there, or the recipe cannot be trained on them.
        """

    @abstractmethod
    def build(self, model: str, options: ModelOptions, seed: int, size: Size) -> nn.Module:
        """An untrained model, called as `model(X [B, n, d], mask [B, n] or None)`."""

    @abstractmethod
    def elements(self, size: Size) -> int:
        """Elements n of the sets that the costs of a model are measured with."""

    @abstractmethod
    def train(self, run: RunSpec, recipe: Recipe, folder: Path | None) -> Fitted:
        """Train the model of a run, in a folder or without one; what is finished in the folder is loaded."""

    def takes_over(self, run: RunSpec) -> bool:
        """Whether `train` finds the finished training of another size and needs none of its own."""
        return False

    @abstractmethod
    def steps_per_epoch(self, size: Size, recipe: Recipe) -> int:
        """Training steps to a line of the history."""

    def done(self, epochs: int, recipe: Recipe) -> int:
        """How much of the training, in `unit`, so many lines of the history are."""
        return epochs

    @abstractmethod
    def test(self, run: RunSpec, model: nn.Module) -> tuple[dict[str, float], int]:
        """The metrics of a trained model by name, and on how many sets they were taken."""

    def is_tested(self, run: RunSpec) -> bool:
        """Whether `test_further` has nothing left to do for a run."""
        return True

    def test_further(self, run: RunSpec, model: nn.Module) -> None:  # noqa: B027 - most tasks have no further tests
        """Do what is asked for beyond the metrics, and leave it in the run's folder."""

    def scores(self, folder: Path, metrics: Mapping[str, float]) -> np.ndarray:
        """What pairs are compared by: bool [sets], the sets that a run got right, or [1], the first metric alone."""
        return np.array([metrics[self.measured[0].name]])

    @abstractmethod
    def length(self, recipe: Recipe) -> str:
        """How long a training is, for the caption."""

    @abstractmethod
    def taken(self, recipe: Recipe) -> str:
        """When the metrics are taken, and on what, for the caption."""

    def next_commands(self, runs: Sequence[tuple[RunSpec, Mapping[str, float]]]) -> list[str]:
        """Commands that look further at finished runs, of which the metrics are given; there is at least one."""
        return []

    def baselines(self, folder: Path) -> Mapping[str, float]:
        """What the first metric is without a model, such as {"chance": 0.1}, on the test sets of a finished run."""
        return {}

    @abstractmethod
    def sections(self, evidence: Evidence) -> Iterator[Section]:
        """What a report shows of one size beyond pairs and costs."""

    def tables(self, folder: Path, place: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Rows of further CSV files, by file name, that the folder of one run adds; `place` begins each row."""
        return {}
