"""Pairs of models, compared by the rule of `pointset.comparison.statistics`, and the minimum detectable difference."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from numpy import ndarray

from pointset.comparison.statistics import (
    SIGNIFICANCE_LEVEL,
    Interval,
    Spread,
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
class Design:
    """The minimum detectable difference of two models, as a function of the number of seeds."""

    seeds: int
    """Runs of each model that varies; the smaller number, if they differ; 0 if none varies."""
    items: int
    models: int
    """Models whose pairs are compared in the table."""
    level: float
    over_seeds: float
    """Sum over both models of the variance of a run's mean that its seed alone explains."""
    over_items: float
    """Variance over items of the difference that does not change with the seeds."""
    residual: float
    """Sum over both models of the residual mean square."""

    @classmethod
    def of(cls, a: Spread, b: Spread, models: int, level: float) -> Self:
        """Return the design of a comparison of two models of which both are `known`."""
        seeds = min((one.seeds for one in (a, b) if not one.fixed), default=0)
        items, residual = a.items, a.residual + b.residual
        apart = float((a.item_means - b.item_means).var(ddof=1)) if items > 1 else 0.0
        repeated = a.residual / a.seeds + b.residual / b.seeds
        return cls(
            seeds=seeds,
            items=items,
            models=models,
            level=level,
            over_seeds=max(0.0, a.over_seeds + b.over_seeds - residual / items),
            over_items=max(0.0, apart - repeated),
            residual=residual,
        )

    def detectable(self, seeds: int | None = None) -> float:
        """Return the smallest significant difference with this number of seeds; default: the design's."""
        seeds, items = self.seeds if seeds is None else seeds, self.items
        runs, fewest = max(1, seeds), max(1, seeds - 1)
        of_seeds, of_items, crossed = self.over_seeds / runs, self.over_items / items, self.residual / (runs * items)
        variance = of_seeds + of_items + crossed
        squares = (of_seeds + crossed) ** 2 / fewest + (of_items + crossed) ** 2 / max(1, items - 1)
        freedom = max(variance**2 / squares if squares else items - 1.0, float(fewest))
        return critical_t(freedom, self.level, self.models) * float(variance**0.5)


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
    design: Design | None
    """The minimum detectable difference; None if a model has a single run and a seed."""
    level: float = SIGNIFICANCE_LEVEL

    @property
    def significant(self) -> bool:
        """True if the models differ significantly; never with a single run of a model that has a seed."""
        return self.p is not None and self.p < self.level

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
            design = Design.of(spreads[a], spreads[b], models, level)
            pairs.append(Pair(a, b, one.value, one.error, interval, p_values[a, b], None, design, level))
        else:
            apart = float((spreads[a].item_means - spreads[b].item_means).mean())
            pairs.append(Pair(a, b, apart, None, None, None, p_runs.get((a, b)), None, level))
    return pairs
