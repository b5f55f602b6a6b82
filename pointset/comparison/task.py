"""The interface of a task, which the classes of `pointset.tasks` implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from torch import nn

from pointset.comparison.metric import Metric, Row, Size
from pointset.comparison.tables import Table
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Fitted
from pointset.training.recipe import Recipe
from pointset.viz.writing import as_svg
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """Properties of a task that a comparison needs, as data."""

    name: str
    """Name in the file of an experiment, such as "max-regression"."""
    title: str
    """Name of the data, with which captions begin."""
    metrics: Sequence[Metric]
    """All metrics; the first one ranks the rows."""
    sets: str
    """What the test sets are called, such as "shapes"."""
    options: Mapping[str, Any]
    """The options that affect the results, except sizes, as plain data."""
    grid: Mapping[str, Any] = field(default_factory=dict)
    """The other options, as plain data."""
    sizes: Sequence[Size] = (None,)
    """The set sizes at which models are trained and tested."""
    most: int | None = None
    """Number of elements of the largest set, of a task whose sets vary in size."""
    block: int | None = None
    """Training steps per line of the history, of a task that counts steps; None if lines are epochs."""
    rows: Sequence[str] = ()
    """Default models of an experiment."""
    model: ModelOptions = ModelOptions()
    """Default model options of an experiment."""
    baselines: Collection[str] = ()
    """Names of models other than networks: their costs are seconds and parameters, and a report compares networks with
    them."""

    @property
    def unit(self) -> str:
        """Unit of the length of a training."""
        return "steps" if self.block else "epochs"

    def length(self, lines: int, recipe: Recipe) -> int:
        """Length of a training, in `unit`, after this number of lines of its history."""
        return min(recipe.steps or 0, lines * self.block) if self.block else lines


@dataclass(frozen=True)
class Trial(ABC):
    """One run of a task, whose sets are opened once, when they are first used."""

    task: Task
    model: str
    options: ModelOptions
    size: Size
    seed: int
    folder: Path
    """Folder of the run."""

    @abstractmethod
    def train(self, recipe: Recipe) -> Fitted:
        """Train the model in the folder of the run; a finished training is loaded."""

    @abstractmethod
    def test(self, model: nn.Module, recipe: Recipe) -> tuple[dict[str, float], int]:
        """Save what further tables need, and return the metrics by name and the number of test sets."""

    @property
    def is_tested(self) -> bool:
        """True if what further tables need is there."""
        return True

    @abstractmethod
    def scores(self, metrics: Mapping[str, float]) -> np.ndarray:
        """Return the values that pairs are compared by: bool [sets], True if correct, or the first metric [1]."""

    def tables(self, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return rows of further CSV files, by file name; each row starts with `columns`."""
        return {}


@dataclass(frozen=True)
class Results:
    """The results of one set size; iterating gives the labels of the rows."""

    points: Size
    metrics: Sequence[Metric]
    """The metrics that all runs have."""
    recipe: Recipe
    """Recipe of all runs."""
    parts: Mapping[str, tuple[str, str]]
    """Encoder and pooling of every row of the experiment, by label; a whole model has no pooling."""
    rows: Mapping[str, Row]
    """The rows with a finished run, by label."""
    folders: Mapping[str, Mapping[int, Path]]
    """Folders of the finished runs, by label and seed, in the experiment's order."""

    @property
    def metric(self) -> Metric:
        """The first metric, which ranks the rows."""
        return self.metrics[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, label: str) -> Path:
        """Return the folder of the first seed of a row."""
        return next(iter(self.folders[label].values()))

    def best(self, count: int) -> list[str]:
        """Return the labels of the best rows, best first."""
        merits = {label: self.metric.merit(row.metrics[self.metric.name].mean) for label, row in self.rows.items()}
        return sorted(self, key=lambda label: -merits[label])[:count]

    def shown(self, count: int) -> list[str]:
        """Return the labels of the best rows, in the order of the experiment."""
        best = self.best(count)
        return [label for label in self if label in best]

    def curves(self, label: str, name: str) -> list[list[float]]:
        """Return a column of the training histories, for each seed that has it, cut to the shortest history."""
        histories = filter(None, (RunFolder(folder).history_if_any() for folder in self.folders[label].values()))
        columns = [[row[name] for row in history if name in row] for history in histories]
        shortest = min(map(len, columns), default=0)
        return [column[:shortest] for column in columns] if shortest else []


@dataclass
class Section:
    """A heading, a text, and a chart or a table."""

    title: str
    text: str
    chart: Figure | None = None
    name: str = ""
    """Stem of the file name of the chart."""
    table: Table = field(default_factory=list)

    @cached_property
    def svg(self) -> str:
        """The chart as SVG."""
        assert self.chart is not None
        return as_svg(self.chart, self.name)


class Task(Protocol):
    """What is learned and how it is evaluated: a frozen dataclass whose fields are the options.

    A task is pickled to other processes. All randomness comes from the seeds that are passed in.
    """

    @property
    def facts(self) -> TaskFacts:
        """What is known without its data."""

    def recipe(self, **changes: Any) -> Recipe:
        """Return the task's usual recipe with changes; an unknown or unused field raises a PointsetError."""

    def for_seeds(self, seeds: Sequence[int], recipe: Recipe) -> Self:
        """Return the task for these seeds; a PointsetError if every run with this recipe would fail."""

    def zoo_name(self, model: str) -> str:
        """Return the name in the zoo from which a model is made; an unknown model raises a PointsetError."""

    def used_options(self, model: str) -> set[str]:
        """Fields of `ModelOptions` that a model is built from."""

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """Prepare the sets of a size, and describe them; a PointsetError if they cannot be used with the recipe."""

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return an untrained model, called as `model(X [B, n, d], mask [B, n] or None)`."""

    def trial(self, model: str, options: ModelOptions, size: Size, seed: int, folder: Path) -> Trial:
        """One run."""

    def metrics(self, folder: Path) -> Sequence[Metric]:
        """Return all metrics, with what is shown of them for finished runs, given the folder of one."""

    def sections(self, results: Results) -> Iterator[Section]:
        """Yield the sections of the report for one size, beyond pairs and costs."""
