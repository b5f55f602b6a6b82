"""What a report is made of: the results of one set size, and sections with charts and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pointset.comparison.metric import Metric, Row, Size
from pointset.comparison.tables import Table
from pointset.training.checkpoints import RunFolder
from pointset.training.recipe import Recipe
from pointset.viz.writing import as_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Results:
    """The results of one set size; iterating gives the labels of the rows."""

    points: Size
    metrics: Sequence[Metric]
    """The metrics that all runs have; the first one ranks the rows."""
    recipe: Recipe
    """Recipe of all runs."""
    parts: Mapping[str, tuple[str, str]]
    """Encoder and pooling of every row of the experiment, by label; a whole model has no pooling."""
    rows: Mapping[str, Row]
    """The rows with a finished run, by label."""
    folders: Mapping[str, Mapping[int, Path]]
    """Folders of the finished runs, by label and seed, in the experiment's order."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def first(self, label: str) -> Path:
        """Return the folder of the first seed of a row."""
        return next(iter(self.folders[label].values()))

    def best(self, count: int | None = None) -> list[str]:
        """Return the labels of the best rows, best first; default: of all rows."""
        metric = self.metrics[0]
        return sorted(self, key=lambda label: -metric.merit(self.rows[label].metrics[metric.name].mean))[:count]

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
