"""The rows of a comparison: metrics over seeds beside published ones, and what can be told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from pointset.comparison.experiment import Experiment, Published
from pointset.comparison.markdown import in_table
from pointset.comparison.runs import Finished
from pointset.comparison.statistics import Interval, Pair, mean_interval
from pointset.comparison.task import Metric, Size
from pointset.evaluation.costs import Cost

NOT_DISTINGUISHABLE = "not distinguishable"


@dataclass(frozen=True)
class Summary:
    """One metric of one row over its seeds."""

    mean: float
    deviation: float | None
    """Sample standard deviation; None for a single seed."""
    interval: Interval | None
    """95 % of the mean over seeds, by Student's t."""
    seeds: int
    published: Published | None

    @classmethod
    def of(cls, values: Sequence[float], metric: Metric, published: Published | None) -> "Summary":
        """Of the values of a metric in some runs."""
        interval = mean_interval(values)
        if metric.share and interval:  # no share lies elsewhere, so nothing is lost
            interval = Interval(max(0.0, interval.low), min(1.0, interval.high))
        deviation = stdev(values) if len(values) > 1 else None
        return cls(fmean(values), deviation, interval, len(values), published)

    def verdict(self, metric: Metric) -> str:
        """Whether the published mean and ours lie within two standard errors of their difference, in words.

        Where either has no spread, merely how far apart they are; empty if nothing is published.
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
    """The best row of this size (first) against this one; None for the best row itself, or where no seed is shared."""
    best: bool
    """Whether this row has the best mean of the first metric at its size; of several, the first."""

    def against_best(self, metric: Metric) -> str:
        """What the difference from the best row is worth, in a few words; `metric` is the first one."""
        if self.below_best is None:
            return "best" if self.best else "no shared seed"
        if self.below_best.p is None:
            return "one seed"
        difference = metric.write(-self.below_best.difference, sign="+")
        if self.below_best.distinguishable:
            return difference
        return f"{difference}, one seed" if self.below_best.runs_differ else NOT_DISTINGUISHABLE


def make_rows(
    experiment: Experiment,
    runs: Sequence[Finished],
    pairs: Mapping[Size, Sequence[Pair]],
    costs: Mapping[Size, Mapping[str, Cost]],
) -> list[Row]:
    """One row for every size and model with a finished run."""
    rows = []
    for size in experiment.task.sizes:
        groups = {label: [r for r in runs if (r.model, r.points) == (label, size)] for label in experiment.labels}
        groups = {label: group for label, group in groups.items() if group}
        best = best_row(groups, experiment.task.measured[0])
        for label, group in groups.items():
            metrics = {
                metric.name: Summary.of(
                    [run.metrics[metric.name] for run in group], metric, experiment.published_of(label, size, metric)
                )
                for metric in experiment.task.measured
            }
            below, cost = _against(pairs.get(size, ()), best, label), costs.get(size, {}).get(label)
            seconds = fmean(run.seconds for run in group)
            row = Row(label, size, len(group), metrics, group[0].parameters, seconds, cost, below, label == best)
            rows.append(row)
    return rows


def best_row(groups: Mapping[str, Sequence[Finished]], metric: Metric) -> str:
    """The label with the best mean of a metric; of equals, the first; empty without rows."""
    sign = 1.0 if metric.higher_is_better else -1.0
    means = {label: sign * fmean(run.metrics[metric.name] for run in group) for label, group in groups.items()}
    return max(means, key=lambda label: means[label], default="")


def _against(pairs: Sequence[Pair], best: str, label: str) -> Pair | None:
    for pair in pairs:
        if (pair.first, pair.second) == (best, label):
            return pair
        if (pair.second, pair.first) == (best, label):
            return pair.reversed()
    return None


NAMES = ("model", "points")
COSTS = ("parameters", "M mult-adds", "ms a set", "step MB", "train s")
LEFT_OUT = ("M mult-adds", "ms a set", "step MB")
"""Columns that a terminal has no room for."""


Part = Literal["all", "metrics", "costs"]
WORDS = ("model", "against the best", "pair", "class")
"""Columns that are read from the left, like every verdict."""


def make_table(
    rows: Sequence[Row],
    metrics: Sequence[Metric],
    style: str = "simple",
    brief: bool = False,
    part: Part = "all",
    emphasized: bool = False,
) -> str:
    """The rows as text; a column that would be empty, or the same for all, is left out.

    Args:
        rows: of a comparison.
        metrics: of its task.
        style: one of tabulate's formats.
        brief: leave out what does not fit a terminal.
        part: all columns, or what the rows reach, or what they cost.
        emphasized: whether the best row of each size is bold, as Markdown has it.
    """
    from tabulate import tabulate

    columns = make_columns(rows, metrics, brief, part)
    columns["model"] = [in_table(name, style) for name in columns["model"]]
    lines = [*zip(*columns.values(), strict=True)]
    if emphasized:
        bold = [tuple(f"**{cell}**" if cell else "" for cell in line) for line in lines]
        lines = [strong if row.best else line for row, line, strong in zip(rows, lines, bold, strict=True)]
    align = ["left" if is_words(name) else "right" for name in columns]
    return tabulate(lines, list(columns), tablefmt=style, colalign=align, disable_numparse=True)


def is_words(column: str) -> bool:
    """Whether a column of this head holds words, not numbers."""
    return column in WORDS or "verdict" in column


def make_columns(
    rows: Sequence[Row], metrics: Sequence[Metric], brief: bool = False, part: Part = "all"
) -> dict[str, list[str]]:
    """The cells of `make_table` by column, not escaped for any format."""
    against = [row.against_best(metrics[0]) for row in rows] if len({row.model for row in rows}) > 1 else []
    columns = {
        "model": [row.model for row in rows],
        "points": [f"{row.points:,}" for row in rows] if len({row.points for row in rows}) > 1 else [],
        "seeds": [str(row.seeds) for row in rows] if len({row.seeds for row in rows}) > 1 else [],
        **_metric_columns(rows, metrics, against, brief),
        "parameters": [f"{row.parameters:,}" for row in rows],
        "M mult-adds": [_short(row.cost.multiply_adds / 1e6, 1) if row.cost else "" for row in rows],
        "ms a set": [f"{row.cost.latency_ms:.1f}" if row.cost else "" for row in rows],
        "step MB": [_short(row.cost.step_memory_mb, 0) if row.cost else "" for row in rows],
        "train s": [f"{row.seconds:,.0f}" for row in rows],
    }
    left_out = {"all": (), "metrics": COSTS, "costs": [name for name in columns if name not in (*NAMES, *COSTS)]}[part]
    kept = {name: column for name, column in columns.items() if any(column) and name not in left_out}
    return {name: column for name, column in kept.items() if not (brief and name in LEFT_OUT)}


def _short(value: float, digits: int) -> str:
    """With so many digits behind the point; below 1, with two significant ones."""
    return f"{value:.{digits}f}" if value >= 1 else f"{value:.2g}"


def _metric_columns(
    rows: Sequence[Row], metrics: Sequence[Metric], against: list[str], brief: bool
) -> dict[str, list[str]]:
    """The columns of all metrics; those beside a metric are called after it where several metrics have them."""
    columns: dict[str, list[str]] = {}
    several = sum(metric.detailed for metric in metrics) > 1
    for metric in metrics:
        if not metric.shown or (brief and not metric.brief):
            continue
        found = [row.metrics[metric.name] for row in rows]
        columns[metric.title] = [metric.write(one.mean, one.deviation if metric.spread else None) for one in found]
        lead, unit = f"{metric.name} " * several, " %" * metric.share
        if metric.detailed and not brief:
            columns[f"{lead}95 % interval"] = [write_interval(one.interval, metric) for one in found]
        if metric == metrics[0]:
            columns["against the best"] = against
        if metric.detailed:
            columns[f"{lead}published{unit}"] = [_published(one.published, metric) for one in found]
            columns[f"{lead}verdict"] = [one.verdict(metric) for one in found]
    return columns


def _published(published: Published | None, metric: Metric) -> str:
    if published is None:
        return ""
    return metric.write(published.mean, published.deviation if published.runs > 1 else None)


def write_interval(found: Interval | None, metric: Metric) -> str:
    """An interval of a metric as text; empty for None."""
    return "" if found is None else f"{metric.write(found.low)} to {metric.write(found.high)}"
