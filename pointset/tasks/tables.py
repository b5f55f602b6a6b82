"""The rows of a comparison on a set problem: figures over seeds beside published ones, and what can be told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from pointset.comparison.experiment import Published
from pointset.comparison.statistics import Interval, mean_interval
from pointset.comparison.tables import NOT_DISTINGUISHABLE, deviation_of, verdict
from pointset.tasks.experiment import TaskExperiment
from pointset.tasks.jobs import TaskCell
from pointset.tasks.pairs import SeedPair
from pointset.tasks.task import Metric


@dataclass(frozen=True)
class Figure:
    """One metric of one row over its seeds."""

    mean: float
    deviation: float | None
    """Sample deviation; None for a single seed."""
    interval: Interval | None
    """95 % of the mean over seeds, by Student's t."""
    seeds: int
    published: Published | None

    def verdict(self, digits: int) -> str:
        """Whether the published figure lies within two standard errors of the difference, in words.

        Where either has no spread, merely how far apart they are; empty if nothing is published.
        """
        if self.published is None:
            return ""
        deviation, published = self.deviation, self.published
        if deviation is None or published.runs < 2:
            deviation, published = 0.0, published._replace(deviation=0.0)
        return verdict(self.mean, deviation, self.seeds, published, lambda apart: f"{apart:.{digits}f}")


@dataclass(frozen=True)
class TaskRow:
    """One model over its seeds."""

    model: str
    seeds: int
    figures: Mapping[str, Figure]
    """By metric."""
    parameters: int
    seconds: float
    worse_than_best: SeedPair | None
    """This row (first) against the best, by the first metric; None for the best itself, or where no seed is shared."""
    best: bool

    def against_best(self, digits: int) -> str:
        """What the difference from the best row is worth, in a few words."""
        if self.worse_than_best is None:
            return "best" if self.best else "no shared seed"
        if self.worse_than_best.p_holm is None:
            return "one seed"
        if self.worse_than_best.distinguishable:
            return f"{self.worse_than_best.difference:+.{digits}f}"
        return NOT_DISTINGUISHABLE


def make_rows(experiment: TaskExperiment, cells: Sequence[TaskCell], pairs: Sequence[SeedPair]) -> list[TaskRow]:
    """One row for every model with a finished cell, in the experiment's order."""
    groups = {label: [cell for cell in cells if cell.model == label] for label in experiment.labels}
    groups = {label: group for label, group in groups.items() if group}
    best = best_row(groups, experiment.problem.metrics[0])
    return [
        TaskRow(
            model=label,
            seeds=len(group),
            figures={
                metric.name: _figure(group, metric, experiment.published.get(label, {}).get(metric.name))
                for metric in experiment.problem.metrics
            },
            parameters=group[0].parameters,
            seconds=fmean(cell.seconds for cell in group),
            worse_than_best=_against(pairs, label, best),
            best=label == best,
        )
        for label, group in groups.items()
    ]


def best_row(groups: Mapping[str, Sequence[TaskCell]], metric: Metric) -> str | None:
    """The label with the best mean of a metric; of equals, the first; None where there is no row."""
    sign = 1.0 if metric.higher_is_better else -1.0
    means = {label: sign * fmean(cell.figures[metric.name] for cell in group) for label, group in groups.items()}
    return max(means, key=lambda label: means[label], default=None)


def _figure(cells: Sequence[TaskCell], metric: Metric, published: Published | None) -> Figure:
    values = [cell.figures[metric.name] for cell in cells]
    return Figure(fmean(values), deviation_of(values), mean_interval(values), len(values), published)


def _against(pairs: Sequence[SeedPair], label: str, best: str | None) -> SeedPair | None:
    for pair in pairs:
        if (pair.first, pair.second) == (label, best):
            return pair
        if (pair.second, pair.first) == (label, best):
            return pair.reversed()
    return None


def make_table(rows: Sequence[TaskRow], metrics: Sequence[Metric], style: str = "simple", brief: bool = False) -> str:
    """The rows as text; a column that would be empty, or the same for all, is left out.

    Args:
        rows: of a comparison.
        metrics: of its task.
        style: one of tabulate's formats.
        brief: leave out the intervals, for a terminal.
    """
    from tabulate import tabulate

    columns = {"model": [row.model for row in rows]}
    if len({row.seeds for row in rows}) > 1:
        columns["seeds"] = [str(row.seeds) for row in rows]
    for metric in metrics:
        columns |= _metric_columns(rows, metric, brief)
    if len(rows) > 1:
        columns["against the best"] = [row.against_best(metrics[0].digits) for row in rows]
    columns["parameters"] = [f"{row.parameters:,}" for row in rows]
    columns["train s"] = [f"{row.seconds:.0f}" for row in rows]
    kept = {name: column for name, column in columns.items() if any(column)}
    align = ["left" if name in ("model", "against the best") or "verdict" in name else "right" for name in kept]
    lines = list(zip(*kept.values(), strict=True))
    return tabulate(lines, list(kept), tablefmt=style, colalign=align, disable_numparse=True)


def _metric_columns(rows: Sequence[TaskRow], metric: Metric, brief: bool) -> dict[str, list[str]]:
    figures = [row.figures[metric.name] for row in rows]
    digits, name = metric.digits, metric.name
    columns = {name: [spread(figure.mean, figure.deviation, digits) for figure in figures]}
    if not brief:
        columns[f"{name} 95 % interval"] = [interval(figure.interval, digits) for figure in figures]
    published = [figure.published for figure in figures]
    columns[f"{name} published"] = [_spread_of(one, digits) if one else "" for one in published]
    columns[f"{name} verdict"] = [figure.verdict(digits) for figure in figures]
    return columns


def _spread_of(published: Published, digits: int) -> str:
    return spread(published.mean, published.deviation if published.runs > 1 else None, digits)


def spread(value: float, deviation: float | None, digits: int) -> str:
    """A figure, with its deviation where there is one."""
    return f"{value:.{digits}f}" + ("" if deviation is None else f" ± {deviation:.{digits}f}")


def interval(found: Interval | None, digits: int) -> str:
    """An interval; empty for None."""
    return "" if found is None else f"{found.low:.{digits}f} to {found.high:.{digits}f}"
