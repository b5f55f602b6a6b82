"""The run folders of one size of a comparison, read when a section needs them."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from statistics import fmean

from pointset.comparison.gathering import Comparison
from pointset.comparison.runs import Finished
from pointset.comparison.tables import Row
from pointset.comparison.task import Metric, Size


class Evidence:
    """The finished runs of one size of set; iterating gives the labels of the rows."""

    def __init__(self, comparison: Comparison, points: Size) -> None:
        self.comparison = comparison
        self.points = points
        self.rows: dict[str, Row] = {row.model: row for row in comparison.rows if row.points == points}

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def metric(self) -> Metric:
        """The one that ranks the rows."""
        return self.comparison.experiment.task.measured[0]

    @cached_property
    def parts(self) -> dict[str, tuple[str, str]]:
        """Encoder and pooling of every row of the experiment, by label; a whole model has no pooling."""
        experiment = self.comparison.experiment
        names = {entry.label: experiment.task.zoo_name(entry.name).partition("-") for entry in experiment.models}
        return {label: (encoder, pooling) for label, (encoder, _, pooling) in names.items()}

    def runs(self, label: str) -> list[Finished]:
        """Of one row, in the order of the seeds."""
        return [run for run in self.comparison.runs if (run.model, run.points) == (label, self.points)]

    def folders(self, label: str) -> dict[int, Path]:
        """The folders of one row's runs, by seed."""
        return {run.seed: self.comparison.run(label, run.seed, self.points).folder for run in self.runs(label)}

    @cached_property
    def baselines(self) -> Mapping[str, float]:
        """What the metric is without a model, by how it is reached; empty where a task knows nothing of the kind."""
        return self.comparison.experiment.task.baselines(self)

    def best(self, count: int) -> list[str]:
        """The labels of the best rows, best first."""
        sign = -1 if self.metric.higher_is_better else 1
        return sorted(self, key=lambda label: sign * self.rows[label].metrics[self.metric.name].mean)[:count]

    def curves(self, label: str, name: str) -> list[list[float]]:
        """A column of the training histories for each seed that has it, as long as the shortest; see `curve`."""
        histories = [self.comparison.history(label, run.seed, self.points) for run in self.runs(label)]
        columns = [[row[name] for row in history if name in row] for history in histories]
        return [*map(list, zip(*zip(*columns, strict=False), strict=True))]

    def curve(self, label: str, name: str) -> list[float]:
        """A column of the training histories, mean over seeds, as long as the shortest run; empty if there is none."""
        return [fmean(values) for values in zip(*self.curves(label, name), strict=True)]
