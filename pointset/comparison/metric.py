"""Metrics, published values of metrics, and the rows of a comparison's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from pointset.comparison.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from pointset.evaluation.costs import Cost  # it loads torch, which a ranking does not need

Size = int | None
"""Number of elements of the sets; None for tasks whose sets vary in size."""


@dataclass(frozen=True)
class Metric:
    """A metric of finished runs, and its format in tables."""

    name: str
    higher_is_better: bool
    digits: int = 4
    """Decimals in tables."""
    share: bool = False
    """True for shares from 0 to 1, which tables show in per cent."""
    head: str = ""
    """Header of the metric's column in tables. If it is empty, tables show the name."""
    shown: bool = True
    """Show the metric in tables. results.csv has every metric."""
    brief: bool = True
    """Show the metric in tables on a terminal."""
    spread: bool = True
    """Show the standard deviation over seeds next to the mean."""
    detailed: bool = True
    """Add columns for the metric's confidence interval and published values."""

    @property
    def title(self) -> str:
        """Header of the metric's column in a table, and label of an axis in a chart."""
        return self.head or self.name

    @property
    def scale(self) -> int:
        """Factor by which values are multiplied in tables and charts."""
        return 100 if self.share else 1

    def merit(self, value: float) -> float:
        """Return the value, negated if lower values of the metric are better."""
        return value if self.higher_is_better else -value

    def inside(self, interval: Interval) -> Interval:
        """Clip an interval to [0, 1] if the metric is a share."""
        return Interval(max(0.0, interval.low), min(1.0, interval.high)) if self.share else interval

    def write(self, value: float, deviation: float | None = None, sign: str = "") -> str:
        """Format a value and, unless None, its standard deviation. `sign` "+" gives positive values a plus sign."""
        text = f"{self.scale * value:{sign}.{self.digits}f}"
        return text if deviation is None else f"{text} ± {self.scale * deviation:.{self.digits}f}"

    def write_interval(self, interval: Interval | None, sign: str = "") -> str:
        """Return an interval as text; for None, the text is empty."""
        if interval is None:
            return ""
        return f"{self.write(interval.low, sign=sign)} to {self.write(interval.high, sign=sign)}"


class Published(NamedTuple):
    """A published value of a metric."""

    mean: float
    """Mean over the runs, in the unit of the metric: accuracies are shares from 0 to 1."""
    deviation: float
    """Standard deviation over the runs."""
    runs: int
    """Number of runs."""

    def write(self, metric: Metric) -> str:
        """Return the mean as text, with the standard deviation if there are several runs."""
        return metric.write(self.mean, self.deviation if self.runs > 1 else None)


@dataclass(frozen=True)
class Summary:
    """One metric of one model, summarised over seeds."""

    mean: float
    deviation: float | None
    """Sample standard deviation; None for a single seed."""
    interval: Interval | None
    """95 % confidence interval of the mean. The first metric has the interval of the ranking, for new seeds and new
    test sets. Other metrics have an interval over seeds (Student's t)."""
    seeds: int
    published: Published | None

    @classmethod
    def of(cls, values: Sequence[float], metric: Metric, published: Published | None) -> Summary:
        """Summarise the values of a metric in the runs of a model."""
        interval = mean_interval(values)
        deviation = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), deviation, interval and metric.inside(interval), len(values), published)

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval, or the mean twice if there is no interval."""
        return (self.interval.low, self.interval.high) if self.interval else (self.mean, self.mean)

    def against_published(self, metric: Metric) -> str:
        """Compare the mean with the published one.

        The text is "agrees" if the means differ by at most two standard errors. Otherwise, it is the difference, also
        in standard errors if both means have a standard deviation. It is empty if nothing is published.
        """
        if self.published is None:
            return ""
        error = 0.0
        if self.deviation is not None and self.published.runs > 1:
            error = (self.deviation**2 / self.seeds + self.published.deviation**2 / self.published.runs) ** 0.5
        apart = self.mean - self.published.mean
        if abs(apart) <= 2 * error:
            return "agrees"
        errors = f"{abs(apart) / error:.1f} errors" if error else "no spread"
        return f"{'above' if apart > 0 else 'below'} by {metric.write(abs(apart))} ({errors})"


@dataclass(frozen=True)
class Row:
    """Results of one model at one set size, over all seeds."""

    model: str
    points: Size
    seeds: int
    metrics: Mapping[str, Summary]
    parameters: int
    seconds: float
    cost: Cost | None
    best: bool
    """True for the model with the best mean of the first metric at this set size (the first of equal models)."""
    against_best: str
    """The difference from the best model, or the reason why it is not shown; see `Ranking.against_best`."""
