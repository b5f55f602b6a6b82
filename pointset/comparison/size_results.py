"""The results of one set size, as data for the sections of a report."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pointset.comparison.metric import Metric, Row, Size
from pointset.training.checkpoints import RunFolder
from pointset.training.recipe import Recipe


@dataclass(frozen=True)
class Results:
    """The results of one set size; iterating gives the labels of the rows."""

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
    without_model: Mapping[str, float]
    """Values of the metric without a model, by name; empty if the task has none."""

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, label: str) -> Path:
        """The folder of the first seed of a row."""
        return next(iter(self.folders[label].values()))

    def best(self, count: int) -> list[str]:
        """The labels of the best rows, best first."""
        merits = {label: self.metric.merit(row.metrics[self.metric.name].mean) for label, row in self.rows.items()}
        return sorted(self, key=lambda label: -merits[label])[:count]

    def shown(self, count: int) -> list[str]:
        """The labels of the best rows, in the order of the experiment."""
        best = self.best(count)
        return [label for label in self if label in best]

    def curves(self, label: str, name: str) -> list[list[float]]:
        """A column of the training histories, for each seed that has it, cut to the shortest history."""
        folders = [folder for folder in self.folders[label].values() if (folder / "history.jsonl").exists()]
        columns = [[row[name] for row in RunFolder(folder).history() if name in row] for folder in folders]
        shortest = min(map(len, columns), default=0)
        return [column[:shortest] for column in columns] if shortest else []
