"""Significance test of models for new seeds and new items together, used by all tables and reports.

Run s of model a has the score y[a, s, i] on item i, for example 1 if its prediction is correct and 0 if not. Models a
and b differ by d = mean(y[a]) - mean(y[b]). Seeds and items are both samples, so the estimated variance of d is

    Var(d) = v_a / S_a + v_b / S_b + w / I - (e_a / S_a + e_b / S_b) / I

for S_a and S_b runs and I items. v is the variance of the means of a model's runs, w the variance over items of the
difference between the models' means for an item, and e the residual mean square of seeds x items. The last term
corrects for e, which v and w both contain. Var(d) is at least the part from seeds, v_a / S_a + v_b / S_b, and at least
the part from items, w / I. d / sqrt(Var(d)) is compared with Student's t with Satterthwaite's degrees of freedom (Clark
1973, "The language-as-fixed-effect fallacy"; Satterthwaite 1946; Brennan 2001, "Generalizability Theory", chapter 6).
Each model has its own variance over seeds, so runs of different models need not be paired.

With few runs, v can be too small by chance, and the test would find too many differences. So the part from seeds has
the minimum degrees of freedom, min(S_a, S_b) - 1, and v is at least half of the median of v over all models. The
p-values and intervals hold for all pairs jointly, by the studentised range of all models (Games and Howell 1976,
"Pairwise multiple comparison procedures with unequal n's and/or variances"). In simulations with equally good models
and equal numbers of seeds, at most 5 % of the tables have a significant difference (scripts/experiments/levels.py).

A model that gives the same answers in all runs, or that is named as deterministic, has no variance over seeds. If only
one model varies, the critical value is the mean of the critical values of the two parts, weighted by the variances
(Cochran and Cox 1950, "Experimental Designs", section 4.14). This is conservative. Scores without items, one number for
each run, are compared over seeds alone. A single run of a model that depends on its seed does not show how good the
model is. Two such runs are compared by McNemar's test, but their models are not.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, median, stdev
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.errors import PointsetError

SIGNIFICANCE_LEVEL = 0.05
"""Default probability of at least one significant difference in a table of equally good models."""
LEAST_OF_MEDIAN = 0.5
"""A model's variance over seeds is at least this share of the median variance of all models that vary."""
FREEDOMS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 1e4)
"""Degrees of freedom at which critical values of the studentised range are computed. Others are interpolated."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float


def check_level(level: float) -> None:
    """Raise a PointsetError if a level is not in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise PointsetError(f"level must be in (0, 1), got {level}")


@dataclass(frozen=True)
class Spread:
    """The variance components of one model's scores [seeds, items]."""

    seeds: int
    item_means: Float[ndarray, " items"]
    over_seeds: float
    """v: variance of the means of the runs; 0 for a single run or a fixed model."""
    residual: float
    """e: residual mean square of seeds x items; 0 for a single run or a fixed model."""
    fixed: bool
    """True if the model has no seed, or all runs give the same answers."""
    step: float
    """Change of the mean by one more correct item: 1 / items for bool scores, else 0."""
    alone: bool = False
    """True if no other model of the table varies over seeds."""

    @classmethod
    def of(cls, scores: ndarray, fixed: bool = False) -> "Spread":
        """Estimate the components from a model's scores [seeds, items]. `fixed` is True if the model has no seed."""
        seeds, items = scores.shape
        step, scores = (1 / items if scores.dtype == bool else 0.0), scores.astype(np.float64)
        runs, means = scores.mean(axis=1), scores.mean(axis=0)
        fixed = fixed or (seeds > 1 and items > 1 and bool((scores == scores[0]).all()))
        if seeds < 2 or fixed:
            return cls(seeds, means, 0.0, 0.0, fixed, step)
        over_seeds = float(runs.var(ddof=1))
        # Sums of squares: total = seeds + items + residual.
        total = float(np.square(scores - runs.mean()).sum())
        rest = total - items * (seeds - 1) * over_seeds - seeds * float(np.square(means - runs.mean()).sum())
        residual = max(0.0, rest) / ((seeds - 1) * max(1, items - 1))
        return cls(seeds, means, over_seeds if over_seeds > 1e-24 else 0.0, residual, fixed, step)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.item_means)

    @property
    def known(self) -> bool:
        """True if the model is fixed or has several runs, so that its variance over seeds is known."""
        return self.fixed or self.seeds > 1


def measure_spreads(scores: Mapping[str, ndarray], fixed: Collection[str] = ()) -> dict[str, Spread]:
    """Return the variance components of all models from their scores [seeds, items].

    `LEAST_OF_MEDIAN` bounds variances over seeds, except for scores without items: errors of a regression may vary a
    hundred times more for one model than for another. `fixed` has the names of models without a seed.
    """
    spreads = {model: Spread.of(own, model in fixed) for model, own in scores.items()}
    varying = {model: one for model, one in spreads.items() if one.seeds > 1 and not one.fixed and one.items > 1}
    if varying:
        floor = LEAST_OF_MEDIAN * median(one.over_seeds for one in varying.values())
        alone = len(varying) == 1
        for model, one in varying.items():
            spreads[model] = replace(one, over_seeds=max(one.over_seeds, floor), alone=alone)
    return spreads


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference of means, with its standard error."""

    value: float
    error: float
    freedom: float
    """Degrees of freedom of the error."""

    def interval(self, level: float = SIGNIFICANCE_LEVEL) -> Interval:
        """Return the confidence interval by Student's t. A level of 0.05 gives a 95 % interval."""
        return self.within(critical_t(self.freedom, level))

    def within(self, errors: float) -> Interval:
        """Return the interval of the value plus and minus `errors` standard errors."""
        return Interval(self.value - errors * self.error, self.value + errors * self.error)

    @property
    def t(self) -> float:
        """Absolute t statistic: the absolute value divided by the standard error."""
        if self.error == 0.0:
            return 0.0 if self.value == 0.0 else float("inf")
        return abs(self.value) / self.error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true value is 0."""
        from scipy.stats import t

        return float(2.0 * t.sf(self.t, self.freedom))


def crossed_estimate(spreads: Sequence[Spread], item_values: Float[ndarray, " items"]) -> Estimate:
    """Return the mean of `item_values`: one model's mean for each item, or the differences of two models' means."""
    items, varying = len(item_values), [spread for spread in spreads if not spread.fixed]
    over_seeds = sum(spread.over_seeds / spread.seeds for spread in varying)
    over_items = float(item_values.var(ddof=1)) / items if items > 1 else 0.0
    if items > 1:
        # The error is at least the effect of one more item that contradicts the difference, as in a sign test.
        against = (1 + abs(float(item_values.mean()))) * max(spread.step for spread in spreads)
        over_items = max(over_items, against**2)
    doubled = sum(spread.residual / spread.seeds for spread in varying) / items
    variance = max(over_seeds + over_items - doubled, over_seeds, over_items)
    fewest = max(1, min(spread.seeds for spread in varying) - 1) if varying else items - 1
    squares = over_seeds**2 / max(1, fewest) + over_items**2 / max(1, items - 1)
    least = fewest if items == 1 else min(fewest, items - 1)
    freedom = max(variance**2 / squares if squares else 1.0, float(least))
    if squares and any(spread.alone for spread in varying):
        freedom = min(freedom, weighted_freedom((over_seeds, over_items), (fewest, items - 1)))
    return Estimate(float(item_values.mean()), variance**0.5, freedom)


def weighted_freedom(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """Return the degrees of freedom whose critical value is the weighted mean of the critical values of `freedoms`."""
    from scipy.optimize import brentq
    from scipy.stats import t

    def critical(freedom: float | Sequence[int]) -> Any:
        return t.ppf(1 - SIGNIFICANCE_LEVEL / 2, freedom)

    wanted = np.average(critical(freedoms), weights=variances)
    if wanted >= critical(min(freedoms)):
        return float(min(freedoms))
    return float(brentq(lambda freedom: critical(freedom) - wanted, min(freedoms), max(freedoms) + 1.0))


def estimate_mean(spread: Spread) -> Estimate:
    """Return the mean of one model, with its standard error for new seeds and new items."""
    return crossed_estimate((spread,), spread.item_means)


def estimate_difference(a: Spread, b: Spread) -> Estimate:
    """Return the mean of model a minus that of model b, with its standard error for new seeds and new items."""
    return crossed_estimate((a, b), a.item_means - b.item_means)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the mean of independent values by Student's t, or None for fewer than two values."""
    if len(values) < 2:
        return None
    return Estimate(fmean(values), stdev(values) / len(values) ** 0.5, len(values) - 1).interval()


def critical_t(freedom: float, level: float, models: int = 2) -> float:
    """Return the critical value, in standard errors, for all pairs of `models` models at a significance level."""
    from scipy.stats import t

    if models < 3:
        return float(t.ppf(1 - level / 2, freedom))
    inverse = [1 / one for one in FREEDOMS]
    logs = np.interp(1 / max(freedom, 1.0), inverse[::-1], range_logs(models, level)[::-1])
    return float(np.exp(logs))


@lru_cache(maxsize=64)
def range_logs(models: int, level: float) -> tuple[float, ...]:
    """Return the logarithms of critical values at `FREEDOMS`; see `critical_t`."""
    from scipy.stats import studentized_range

    return tuple(float(np.log(studentized_range.ppf(1 - level, models, one) / 2**0.5)) for one in FREEDOMS)


def range_p_values(estimates: Sequence[Estimate], models: int) -> list[float]:
    """Return p-values that hold jointly: by Student's t for two models, otherwise by the studentised range."""
    from scipy.stats import studentized_range

    if models < 3:
        return [estimate.p_value for estimate in estimates]
    t = np.array([estimate.t for estimate in estimates])
    freedom = np.array([min(estimate.freedom, FREEDOMS[-1]) for estimate in estimates])
    p = np.zeros(len(t))
    finite = np.isfinite(t)
    p[finite] = studentized_range.sf(2**0.5 * t[finite], models, freedom[finite])
    return [float(one) for one in np.clip(p, 0.0, 1.0)]


def mcnemar(first: Bool[ndarray, " items"], second: Bool[ndarray, " items"]) -> float:
    """Return the p-value of McNemar's exact test (1947) for the hypothesis that both runs have the same accuracy."""
    from scipy.stats import binomtest

    only_first, only_second = int(np.sum(first & ~second)), int(np.sum(~first & second))
    apart = only_first + only_second
    return float(binomtest(only_first, apart).pvalue) if apart else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's correction (1979), which bounds the probability of any false rejection."""
    from statsmodels.stats.multitest import multipletests

    return multipletests(p_values, method="holm")[1].tolist() if len(p_values) else []
