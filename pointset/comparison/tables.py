"""The rows of a comparison: figures over seeds, and what can be told apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Literal

from pointset.comparison.cells import Cell
from pointset.comparison.experiment import USUAL_METRICS, Experiment, Published
from pointset.comparison.statistics import Interval, Pair, mean_interval
from pointset.evaluation.costs import Cost

NOT_DISTINGUISHABLE = "not distinguishable"


@dataclass(frozen=True)
class Row:
    """One model at one size over its seeds; deviations are sample deviations, None for a single seed."""

    model: str
    points: int
    seeds: int
    accuracy: float
    accuracy_std: float | None
    interval: Interval | None
    """95 % of the mean accuracy over seeds, by Student's t."""
    mean_class_accuracy: float
    mean_class_accuracy_std: float | None
    loss: float
    brier: float
    calibration_error: float
    calibration_error_equal_mass: float
    parameters: int
    seconds: float
    cost: Cost | None
    below_best: Pair | None
    """The best row of this size (first) against this one; None for the best row itself, or where no seed is shared."""
    best: bool
    """Whether this row has the highest mean accuracy of its size; of several, the first."""
    published: Published | None

    @property
    def against_best(self) -> str:
        """What the difference from the best row is worth, in a few words."""
        if self.below_best is None:
            return "best" if self.best else "no shared seed"
        if self.below_best.distinguishable:
            return f"{-100 * self.below_best.difference:.1f}"
        if self.below_best.runs_differ:
            return f"{-100 * self.below_best.difference:.1f}, one seed"
        return NOT_DISTINGUISHABLE

    @property
    def verdict(self) -> str:
        """Whether the published figure lies within two standard errors of the difference; empty without one."""
        if self.published is None or self.accuracy_std is None:
            return ""
        return verdict(self.accuracy, self.accuracy_std, self.seeds, self.published, lambda apart: f"{100 * apart:.1f}")


def verdict(mean: float, deviation: float, runs: int, published: Published, in_units: Callable[[float], str]) -> str:
    """Whether a published figure and one of our own lie within two standard errors of their difference, in words.

    Args:
        mean: of our runs.
        deviation: the sample deviation of our runs.
        runs: how many.
        published: the other figure.
        in_units: writes a difference, which is positive, as the table writes figures.
    """
    error = (deviation**2 / runs + published.deviation**2 / published.runs) ** 0.5
    apart = mean - published.mean
    if abs(apart) <= 2 * error:
        return "agrees"
    errors = f"{abs(apart) / error:.1f} errors" if error else "no spread"
    return f"{'above' if apart > 0 else 'below'} by {in_units(abs(apart))} ({errors})"


def make_rows(
    experiment: Experiment,
    cells: Sequence[Cell],
    pairs: Mapping[int, Sequence[Pair]],
    costs: Mapping[int, Mapping[str, Cost]],
) -> list[Row]:
    """One row for every size and model with a finished cell."""
    rows = []
    for points in experiment.points:
        groups = {label: [c for c in cells if (c.model, c.points) == (label, points)] for label in experiment.labels}
        groups = {label: group for label, group in groups.items() if group}
        if not groups:
            continue
        best = max(groups, key=lambda label: fmean(cell.accuracy for cell in groups[label]))  # the first of equals
        for label, group in groups.items():
            rows.append(
                _row(
                    group,
                    best=label == best,
                    below_best=_against(pairs.get(points, ()), best, label),
                    cost=costs.get(points, {}).get(label),
                    published=experiment.published.get(label, {}).get(points),
                )
            )
    return rows


def _against(pairs: Sequence[Pair], best: str, label: str) -> Pair | None:
    for pair in pairs:
        if (pair.first, pair.second) == (best, label):
            return pair
        if (pair.second, pair.first) == (best, label):
            return pair.reversed()
    return None


def _row(
    cells: Sequence[Cell], best: bool, below_best: Pair | None, cost: Cost | None, published: Published | None
) -> Row:
    accuracies = [cell.accuracy for cell in cells]
    class_accuracies = [cell.mean_class_accuracy for cell in cells]
    return Row(
        model=cells[0].model,
        points=cells[0].points,
        seeds=len(cells),
        accuracy=fmean(accuracies),
        accuracy_std=deviation_of(accuracies),
        interval=_of_shares(mean_interval(accuracies)),
        mean_class_accuracy=fmean(class_accuracies),
        mean_class_accuracy_std=deviation_of(class_accuracies),
        loss=fmean(cell.loss for cell in cells),
        brier=fmean(cell.brier for cell in cells),
        calibration_error=fmean(cell.calibration_error for cell in cells),
        calibration_error_equal_mass=fmean(cell.calibration_error_equal_mass for cell in cells),
        parameters=cells[0].parameters,
        seconds=fmean(cell.seconds for cell in cells),
        cost=cost,
        below_best=below_best,
        best=best,
        published=published,
    )


def _of_shares(found: Interval | None) -> Interval | None:
    """What of an interval lies from 0 to 1: no accuracy lies elsewhere, so nothing is lost."""
    return None if found is None else Interval(max(0.0, found.low), min(1.0, found.high))


def deviation_of(values: Sequence[float]) -> float | None:
    """The sample deviation; None for a single value."""
    return stdev(values) if len(values) > 1 else None


LEFT_OUT = ("95 % interval", "M mult-adds", "ms a set", "step MB")
"""Columns that a terminal has no room for."""
BRIEF_METRICS = ("ECE",)
"""Of the usual metrics; those that somebody chose are all shown."""


NAMES = ("model", "points")
COSTS = ("parameters", "M mult-adds", "ms a set", "step MB", "train s")


def make_table(
    rows: Sequence[Row],
    style: str = "simple",
    brief: bool = False,
    part: Literal["all", "figures", "costs"] = "all",
    metrics: Sequence[str] = USUAL_METRICS,
) -> str:
    """The rows as text; a column that would be empty, or the same for all, is left out.

    Args:
        rows: of a comparison.
        style: one of tabulate's formats.
        brief: leave out what does not fit a terminal.
        part: all columns, or what the rows reach, or what they cost.
        metrics: names in `METRICS` of what stands beside the accuracy.
    """
    from tabulate import tabulate

    columns = {
        "model": [row.model for row in rows],
        "points": [f"{row.points:,}" for row in rows] if len({row.points for row in rows}) > 1 else [],
        "seeds": [str(row.seeds) for row in rows] if len({row.seeds for row in rows}) > 1 else [],
        "accuracy %": [spread(row.accuracy, row.accuracy_std) for row in rows],
        "95 % interval": [interval(row.interval) for row in rows],
        "against the best": [row.against_best for row in rows] if len({row.model for row in rows}) > 1 else [],
        "published %": [spread(row.published.mean, row.published.deviation) if row.published else "" for row in rows],
        "verdict": [row.verdict for row in rows],
        **_metric_columns(rows, BRIEF_METRICS if brief and tuple(metrics) == USUAL_METRICS else metrics),
        "parameters": [f"{row.parameters:,}" for row in rows],
        "M mult-adds": [f"{row.cost.multiply_adds / 1e6:.1f}" if row.cost else "" for row in rows],
        "ms a set": [f"{row.cost.latency_ms:.1f}" if row.cost else "" for row in rows],
        "step MB": [f"{row.cost.step_memory_mb:.0f}" if row.cost else "" for row in rows],
        "train s": [f"{row.seconds:.0f}" for row in rows],
    }
    left_out = {"all": (), "figures": COSTS, "costs": [name for name in columns if name not in (*NAMES, *COSTS)]}[part]
    kept = {name: column for name, column in columns.items() if any(column) and name not in left_out}
    kept = {name: column for name, column in kept.items() if not (brief and name in LEFT_OUT)}
    words = ("model", "verdict", "against the best")
    align = ["left" if name in words else "right" for name in kept]
    lines = list(zip(*kept.values(), strict=True))
    return tabulate(lines, list(kept), tablefmt=style, colalign=align, disable_numparse=True)


def _metric_columns(rows: Sequence[Row], metrics: Sequence[str]) -> dict[str, list[str]]:
    columns = {
        "mean-class accuracy": [
            "mean-class %",
            *(spread(row.mean_class_accuracy, row.mean_class_accuracy_std) for row in rows),
        ],
        "log loss": ["log loss", *(f"{row.loss:.3f}" for row in rows)],
        "Brier score": ["Brier", *(f"{row.brier:.3f}" for row in rows)],
        "ECE": ["ECE %", *(f"{100 * row.calibration_error:.1f}" for row in rows)],
        "ECE of equal mass": ["ECE %, mass", *(f"{100 * row.calibration_error_equal_mass:.1f}" for row in rows)],
    }
    return {columns[metric][0]: columns[metric][1:] for metric in metrics}


def spread(value: float, deviation: float | None) -> str:
    """A share in per cent, with its deviation where there is one."""
    return f"{100 * value:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")


def interval(found: Interval | None) -> str:
    """An interval of shares in per cent; empty for None."""
    return "" if found is None else f"{100 * found.low:.1f} to {100 * found.high:.1f}"
