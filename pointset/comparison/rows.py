"""The rows of a comparison: metrics over seeds, published values, and differences from the best row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from pointset.comparison.metric import Metric, Published
from pointset.comparison.run_spec import Size
from pointset.comparison.statistics import Interval, Pair, mean_interval
from pointset.evaluation.costs import Cost

NOT_DISTINGUISHABLE = "not distinguishable"


@dataclass(frozen=True)
class Summary:
    """One metric of one row, summarised over its seeds."""

    mean: float
    deviation: float | None
    """Sample standard deviation; None for a single seed."""
    interval: Interval | None
    """95 % confidence interval of the mean over seeds, by Student's t."""
    seeds: int
    published: Published | None

    @classmethod
    def of(cls, values: Sequence[float], metric: Metric, published: Published | None) -> "Summary":
        """Summarise the values of a metric in the runs of a row."""
        interval = mean_interval(values)
        if metric.share and interval:  # a share is always in [0, 1]
            interval = Interval(max(0.0, interval.low), min(1.0, interval.high))
        deviation = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), deviation, interval, len(values), published)

    def verdict(self, metric: Metric) -> str:
        """Compare the mean with the published one: "agrees" within two standard errors of the difference, or the gap.

        If either has no spread, only the gap is given; empty if nothing is published.
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
    """One model at one size over its seeds."""

    model: str
    points: Size
    seeds: int
    metrics: Mapping[str, Summary]
    parameters: int
    seconds: float
    cost: Cost | None
    below_best: Pair | None
    """The best row of this size (first) compared with this row; None for the best row, or without a shared seed."""
    best: bool
    """True for the row with the best mean of the first metric at its size; ties go to the first row."""

    def against_best(self, metric: Metric) -> str:
        """The difference from the best row as text, or that there is none; `metric` is the first metric."""
        if self.below_best is None:
            return "best" if self.best else "no shared seed"
        if self.below_best.p is None:
            return "one seed"
        difference = metric.write(-self.below_best.difference, sign="+")
        if self.below_best.distinguishable:
            return difference
        return f"{difference}, one seed" if self.below_best.runs_differ else NOT_DISTINGUISHABLE
