"""Pairs of models, compared by the rule of `pointset.comparison.statistics`."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from numpy import ndarray

from pointset.comparison.statistics import (
    SIGNIFICANCE_LEVEL,
    Interval,
    check_level,
    critical_t,
    estimate_difference,
    holm,
    mcnemar,
    measure_spreads,
    range_p_values,
)

NOT_SIGNIFICANT = "not significant"


@dataclass(frozen=True)
class Pair:
    """Two models on the same items; the difference is first minus second."""

    first: str
    second: str
    difference: float
    error: float | None
    """Standard error for new seeds and items; None if a model has a single run and a seed."""
    interval: Interval | None
    """Interval for new seeds and items, which holds together with those of all pairs."""
    p: float | None
    """p-value of the pair among all pairs of the table; None if a model has a single run and a seed."""
    p_runs: float | None
    """p-value of McNemar's exact test of two single runs, after Holm's correction; None for several runs."""
    level: float = SIGNIFICANCE_LEVEL

    @property
    def significant(self) -> bool:
        """True if the models differ significantly; never with a single run of a model that has a seed."""
        return self.p is not None and self.p < self.level

    @property
    def detectable(self) -> float | None:
        """The minimum detectable difference, half of the interval's width; None if a model has a single run and a seed.

        A difference above it is significant.
        """
        return (self.interval.high - self.interval.low) / 2 if self.interval else None

    @property
    def runs_differ(self) -> bool:
        """True if only two runs are compared, and they differ significantly; the models may still be equally good."""
        return self.p_runs is not None and self.p_runs < self.level

    @property
    def conclusion(self) -> str:
        """The result of the test as text."""
        if self.p is None:
            return "the runs differ; one seed" if self.runs_differ else "one seed"
        return "significant" if self.significant else NOT_SIGNIFICANT

    def in_table(self, difference: str) -> str:
        """Return the difference if there is one, else why it is not shown."""
        if self.runs_differ:
            return f"{difference}, one seed"
        return difference if self.significant else self.conclusion

    def reversed(self) -> Self:
        """Return the same comparison with first and second exchanged."""
        turned = self.interval and Interval(-self.interval.high, -self.interval.low)
        return replace(self, first=self.second, second=self.first, difference=-self.difference, interval=turned)


def write_p(value: float | None) -> str:
    """Return a p-value as text; empty for None."""
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def compare_models(
    scores: Mapping[str, ndarray], level: float = SIGNIFICANCE_LEVEL, fixed: Collection[str] = ()
) -> list[Pair]:
    """Compare all pairs of models, in the given order.

    Args:
        scores: by model, the scores of its runs [seeds, items]: bool where a run is right, or the share of each item in
            the metric; or only the metric of each run [seeds, 1]. The items are the same for all models.
        level: probability of any error in a table of equally good models.
        fixed: models without a seed, which may have a single run.
    """
    check_level(level)
    spreads = measure_spreads(scores, fixed)
    models = sum(spread.known for spread in spreads.values())
    every = list(itertools.combinations(scores, 2))
    known = [(a, b) for a, b in every if spreads[a].known and spreads[b].known]
    estimates = {(a, b): estimate_difference(spreads[a], spreads[b]) for a, b in known}
    p_values = dict(zip(estimates, range_p_values([*estimates.values()], models), strict=True))
    # McNemar's test of pairs of single runs that are right or wrong.
    runs = {model for model, own in scores.items() if len(own) == 1 and own.dtype == bool}
    single = [(a, b) for a, b in every if (a, b) not in estimates and {a, b} <= runs]
    p_runs = dict(zip(single, holm([mcnemar(scores[a][0], scores[b][0]) for a, b in single]), strict=True))
    pairs = []
    for a, b in every:
        if one := estimates.get((a, b)):
            interval = one.within(critical_t(one.freedom, level, models))
            pairs.append(Pair(a, b, one.value, one.error, interval, p_values[a, b], None, level))
        else:
            apart = float((spreads[a].item_means - spreads[b].item_means).mean())
            pairs.append(Pair(a, b, apart, None, None, None, p_runs.get((a, b)), level))
    return pairs
