"""What a set problem is: sets that are drawn, a model for each row of its table, a loss and the figures reported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.zoo.options import ModelOptions


@dataclass(frozen=True)
class SetBatch:
    """Some sets and what is to be said of each."""

    X: Float[Tensor, "B n d"]
    """Elements, zeros where a set has fewer than n."""
    mask: Bool[Tensor, "B n"] | None = None
    """True at real elements; None when every set has n."""
    target: Mapping[str, Tensor] = field(default_factory=dict)
    """What the loss and the metrics need, by name; the first axis of each is B."""

    def to(self, device: torch.device) -> "SetBatch":
        """The same on a device."""
        if self.X.device == device:
            return self
        mask = None if self.mask is None else self.mask.to(device)
        return SetBatch(self.X.to(device), mask, {name: value.to(device) for name, value in self.target.items()})


@dataclass(frozen=True)
class Metric:
    """One figure of a finished run."""

    name: str
    """As a table's head has it."""
    higher_is_better: bool
    digits: int = 4
    """Behind the point, in tables."""


class Published(Protocol):
    """A figure that somebody reports; see `pointset.comparison.experiment.Published`."""

    mean: float
    deviation: float
    runs: int


class Task(Protocol):
    """A set problem. Everything random comes from the generators that are handed in.

    A class that is a dataclass takes its fields as options (`create_task(name, **options)`). It may have more, each
    found by its name: see `used_options`, `watched_sets` and `describe` below.
    """

    name: str
    """As on the command line, such as "max-regression"."""
    title: str
    metrics: Sequence[Metric]
    """The first one ranks the rows."""
    rows: Sequence[str]
    """Names of the models of its table, each an argument of `model`."""

    def model(self, row: str, options: ModelOptions, seed: int) -> nn.Module:
        """The model of a row, called as `model(X [B, n, d], mask [B, n] or None)`.

        Raises:
            PointsetError: the row is unknown (the known ones are given).
        """

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """A training batch of so many sets."""

    def test_sets(self) -> Sequence[SetBatch]:
        """The sets that figures are taken on: the same in every run."""

    def loss(self, output: Tensor, batch: SetBatch) -> Float[Tensor, ""]:
        """What training makes small, a mean over the sets."""

    def figures(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """A figure for each metric, by its name, of what a model said of some sets."""


def used_options(task: Task, row: str) -> set[str] | None:
    """Fields of `ModelOptions` that a row is built from, by `task.used_options(row)`; None if it does not say."""
    ask = getattr(task, "used_options", None)
    return None if ask is None else ask(row)


def watched_sets(task: Task) -> Sequence[SetBatch]:
    """Sets on which the figures are taken after every block of steps too, by `task.watched_sets()`: for curves."""
    ask = getattr(task, "watched_sets", None)
    return () if ask is None else ask()


def describe(task: Task) -> dict[str, Any]:
    """What the task's data is, as plain data, by `task.describe()`: a run's folder belongs to it."""
    ask = getattr(task, "describe", None)
    return {} if ask is None else ask()
