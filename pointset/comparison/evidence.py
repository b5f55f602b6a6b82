"""The finished runs of one set size, as data for the sections of a report; histories are read on demand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from pointset.comparison.metric import Metric
from pointset.comparison.rows import Row
from pointset.comparison.run_spec import Size
from pointset.training.checkpoints import RunFolder
from pointset.training.recipe import Recipe


@dataclass(frozen=True)
class Evidence:
    """The rows of one size and the folders of their runs; iterating gives the labels of the rows."""

    points: Size
    metric: Metric
    """The first metric, which ranks the rows."""
    recipe: Recipe
    """Recipe of all runs."""
    parts: Mapping[str, tuple[str, str]]
    """Encoder and pooling of every row of the experiment, by label; a whole model has no pooling."""
    rows: Mapping[str, Row]
    """The rows with a finished run, by label."""
    folders: Mapping[str, Mapping[int, Path]]
    """Folders of the finished runs, by label and seed, in the experiment's order."""
    baselines: Mapping[str, float]
    """Values of the metric without a model, by name; empty if the task has no baselines."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, label: str) -> Path:
        """The folder of the first seed of a row."""
        return next(iter(self.folders[label].values()))

    def best(self, count: int) -> list[str]:
        """The labels of the best rows, best first."""
        sign = -1 if self.metric.higher_is_better else 1
        return sorted(self, key=lambda label: sign * self.rows[label].metrics[self.metric.name].mean)[:count]

    def histories(self, label: str) -> list[list[dict[str, Any]]]:
        """The training histories of a row, one for each seed."""
        return [RunFolder(folder).history() for folder in self.folders[label].values()]

    def curves(self, label: str, name: str) -> list[list[float]]:
        """A column of the training histories, for each seed that has it, cut to the shortest history."""
        columns = [[row[name] for row in history if name in row] for history in self.histories(label)]
        return [*map(list, zip(*zip(*columns, strict=False), strict=True))]

    def curve(self, label: str, name: str) -> list[float]:
        """The mean of `curves` over seeds; empty if no history has the column."""
        return [fmean(values) for values in zip(*self.curves(label, name), strict=True)]
