"""A task: what is learned and how it is evaluated, as data and functions. `pointset.tasks` makes tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True)
class Results:
    """The results at one set size. Iteration yields the labels of the models."""

    points: Size
    metrics: Sequence[Metric]
    """The metrics that all runs have; the first one ranks the models."""
    recipe: Recipe
    """Recipe of all runs."""
    parts: Mapping[str, tuple[str, str]]
    """Encoder and pooling of every model of the experiment, by label. The pooling is empty for models without these
    parts."""
    rows: Mapping[str, Row]
    """The rows of models with a finished run, by label."""
    folders: Mapping[str, Mapping[int, Path]]
    """Folders of the finished runs, by label and seed, in the experiment's order."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def first(self, label: str) -> Path:
        """Return the folder of a model's run with the first seed."""
        return next(iter(self.folders[label].values()))

    def best(self, count: int | None = None) -> list[str]:
        """Return the labels of the `count` best models, the best one first; without `count`, of all models."""
        metric = self.metrics[0]
        return sorted(self, key=lambda label: -metric.merit(self.rows[label].metrics[metric.name].mean))[:count]

    def curves(self, label: str, name: str) -> list[list[float]]:
        """Return one column of a model's training histories that have this column, cut to the shortest length."""
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


@dataclass(frozen=True)
class Trial:
    """The arguments with which a task trains and tests one run."""

    model: str
    options: ModelOptions
    size: Size
    seed: int
    recipe: Recipe
    folder: Path
    """Folder of the run."""


def _always(trial: Trial) -> bool:
    return True


def _no_tables(folder: Path, columns: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is learned and how it is evaluated.

    A task is pickled to other processes, so its functions are module-level functions, or methods of objects that can be
    pickled. All random numbers depend on seeds alone.
    """

    name: str
    """Name in the file of an experiment, such as "max-regression"."""
    title: str
    """Name of the data, with which captions begin."""
    sets: str = "sets"
    """Noun for the test sets, such as "shapes"."""
    metrics: Sequence[Metric]
    """All metrics; the first one ranks the models."""
    rows: Sequence[str] = ()
    """Default models of an experiment."""
    model: ModelOptions = ModelOptions()
    """Default model options of an experiment."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options that the task was made with, as plain data."""
    grid: Collection[str] = ()
    """Options that may differ between calls in one folder, because they only add runs or tests."""
    sizes: Sequence[Size] = (None,)
    """The set sizes at which models are trained and tested."""
    largest: int = 1
    """Number of elements of the largest set, if sets vary in size."""
    block: int | None = None
    """Training steps per line of the history; None if lines are epochs."""
    baselines: Collection[str] = ()
    """Models that are not networks. Of their costs, only training time and parameters are measured. Reports compare
    networks with these models."""

    make: Callable[..., Task] | None = None
    """Return the task with other options; None for a task without options."""
    recipe: Callable[..., Recipe]
    """Return the default recipe with changed fields. An unknown or unused field raises a PointsetError."""
    zoo_name: Callable[[str], str]
    """Return the zoo's name of a model. An unknown model raises a PointsetError."""
    used_options: Callable[[str], set[str]]
    """Return the fields of `ModelOptions` that a model is built from."""
    build: Callable[[str, ModelOptions, int, Size], nn.Module]
    """Build an untrained model from name, options, seed and set size. The model is called as `model(X [B, n, d], mask
    or None)`."""
    prepare: Callable[[Size, Recipe, bool], dict[str, Any]]
    """Prepare and describe the sets of a size. The last argument shows a progress bar. An unsuitable recipe raises a
    PointsetError."""
    train: Callable[[Trial], Fitted]
    """Train a model in the folder of its run. A finished training is loaded instead."""
    test: Callable[[Trial, nn.Module], tuple[dict[str, float], int]]
    """Test a model, save what tables need in the run's folder, and return metrics by name and the number of test
    sets."""
    is_tested: Callable[[Trial], bool] = _always
    """Return True if the run's folder has all that tables need."""
    scores: Callable[[Path], np.ndarray] | None = None
    """Return from a run's folder which test sets are predicted correctly, as bool [sets]. If `scores` is None, models
    are compared by the first metric."""
    tables: Callable[[Path, Mapping[str, Any]], dict[str, list[dict[str, Any]]]] = _no_tables
    """Return rows of further CSV files, by file name, from a run's folder and the columns that identify the run."""
    sections: Callable[[Results], Iterator[Section]]
    """Yield the sections of the report that only this task has, for one size."""
    notes: Callable[[], Sequence[str]] = tuple
    """Return sentences about the data for a command to print, for example about leakage."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and (self.name, self.options) == (other.name, other.options)

    def __repr__(self) -> str:
        return f"Task {self.name}: {self.title}"

    @property
    def unit(self) -> str:
        """Unit of the length of a training: "steps" or "epochs"."""
        return "steps" if self.block else "epochs"

    def length(self, lines: int, recipe: Recipe) -> int:
        """Return the length of a training, in `unit`, after this number of lines of its history."""
        return min(recipe.steps or 0, lines * self.block) if self.block else lines

    def changed(self, **options: Any) -> Task:
        """Return the task with other values of some options. The sets that this task has loaded are not kept."""
        return self.make(**{**self.options, **options}) if self.make else self
