"""Significance tests of models, for new seeds and new items together: the one rule of every table and report.

Run s of model a has the score y[a, s, i] on item i, for example 1 if it is correct and 0 if not. Models a and b differ
by d = mean(y[a]) - mean(y[b]). Seeds and items are both samples, so the estimated variance of d is

    Var(d) = v_a / S_a + v_b / S_b + w / I - (e_a / S_a + e_b / S_b) / I

with v the variance of the means of a model's runs, w the variance over items of the difference of the item means, and e
the residual mean square of seeds x items, which v and w both contain. It is at least its part from seeds and its part
from items. d / sqrt(Var(d)) is compared with Student's t with Satterthwaite's degrees of freedom (Clark 1973, "The
language-as-fixed-effect fallacy"; Satterthwaite 1946; Brennan 2001, "Generalizability Theory", chapter 6). Each model
has its own variance over seeds: runs of different models need not be paired, and models need not vary equally.

A few runs may vary little by chance, and the test would then find too many differences. So the part from seeds has the
fewest possible degrees of freedom, min(S_a, S_b) - 1, and v is at least half of the median of all models. The p-values
and intervals of all pairs hold jointly, by the studentised range of all models (Games and Howell 1976, "Pairwise
multiple comparison procedures with unequal n's and/or variances"). In simulated tables of equal models, some of which
vary three times as much, at most 5 % have any error; scripts/experiments/levels.py has the simulation and other rules.

A model that gives the same answers in all runs, or that is named as deterministic, has no variance over seeds. If only
one model varies, there is no median: the critical value is then the mean of those of both parts, weighted by their
variances (Cochran and Cox 1950, "Experimental Designs", section 4.14), which is conservative.
Scores without items, one number for each run, are compared over seeds alone. A single run of a model that depends on
its seed does not show how good the model is: two such runs are compared by McNemar's test, and the models are not.
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
"""Default probability of an error in a table of equally good models."""
LEAST_OF_MEDIAN = 0.5
"""A model's variance over seeds is at least this share of the median of all models that vary."""
FREEDOMS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 1e4)
"""Degrees of freedom between which critical values of the studentised range are interpolated."""


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
    """v: variance of the means of the runs; 0 for a single run, and without a seed."""
    residual: float
    """e: residual mean square of seeds x items, likewise."""
    fixed: bool
    """True if all runs give the same answers."""
    step: float
    """Change of the mean if one item counts 1 more: 1 / items where items are right or wrong, else 0."""
    alone: bool = False
    """True if no other model of the table varies over seeds."""

    @classmethod
    def of(cls, scores: ndarray, fixed: bool = False) -> "Spread":
        """Return the components of the scores of all runs of a model, [seeds, items]; `fixed` if it has no seed."""
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
        """True if the variance of further runs is known."""
        return self.fixed or self.seeds > 1


def measure_spreads(scores: Mapping[str, ndarray], fixed: Collection[str] = ()) -> dict[str, Spread]:
    """Return the components of all models of a table, [seeds, items] each, with lower bounds on the variances.

    `fixed` are the models without a seed. Scores without items keep their variances: errors of a regression may vary a
    hundred times more in one row than in another.
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
        """Confidence interval by Student's t: of 95 % at a level of 0.05."""
        return self.within(critical_t(self.freedom, level))

    def within(self, errors: float) -> Interval:
        """Return the interval of `errors` standard errors on both sides."""
        return Interval(self.value - errors * self.error, self.value + errors * self.error)

    @property
    def t(self) -> float:
        """The absolute value in standard errors."""
        if self.error == 0.0:
            return 0.0 if self.value == 0.0 else float("inf")
        return abs(self.value) / self.error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true value is 0."""
        from scipy.stats import t

        return float(2.0 * t.sf(self.t, self.freedom))


def crossed_estimate(spreads: Sequence[Spread], item_values: Float[ndarray, " items"]) -> Estimate:
    """Return the mean of `item_values`, which are the item means of one model, or the difference of those of two."""
    items, varying = len(item_values), [spread for spread in spreads if not spread.fixed]
    over_seeds = sum(spread.over_seeds / spread.seeds for spread in varying)
    over_items = float(item_values.var(ddof=1)) / items if items > 1 else 0.0
    if items > 1:
        # At least that of one more item against the difference: with few items, the test is as weak as a sign test.
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
    """Return the degrees of freedom of the mean critical value of `freedoms`, weighted by `variances`."""
    from scipy.optimize import brentq
    from scipy.stats import t

    def critical(freedom: float | Sequence[int]) -> Any:
        return t.ppf(1 - SIGNIFICANCE_LEVEL / 2, freedom)

    wanted = np.average(critical(freedoms), weights=variances)
    if wanted >= critical(min(freedoms)):
        return float(min(freedoms))
    return float(brentq(lambda freedom: critical(freedom) - wanted, min(freedoms), max(freedoms) + 1.0))


def estimate_mean(spread: Spread) -> Estimate:
    """Return the mean of one model, for new seeds and new items."""
    return crossed_estimate((spread,), spread.item_means)


def estimate_difference(a: Spread, b: Spread) -> Estimate:
    """Return the mean of the first model minus that of the second, for new seeds and new items."""
    return crossed_estimate((a, b), a.item_means - b.item_means)


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return the 95 % interval of the mean of independent values by Student's t; None for fewer than two values."""
    if len(values) < 2:
        return None
    return Estimate(fmean(values), stdev(values) / len(values) ** 0.5, len(values) - 1).interval()


def critical_t(freedom: float, level: float, models: int = 2) -> float:
    """Return the critical value, in standard errors, for all pairs of `models` equal models at this `level`."""
    from scipy.stats import t

    if models < 3:
        return float(t.ppf(1 - level / 2, freedom))
    inverse = [1 / one for one in FREEDOMS]
    logs = np.interp(1 / max(freedom, 1.0), inverse[::-1], range_logs(models, level)[::-1])
    return float(np.exp(logs))


@lru_cache(maxsize=64)
def range_logs(models: int, level: float) -> tuple[float, ...]:
    """Return logarithms of the critical values of `critical_t` at `FREEDOMS`."""
    from scipy.stats import studentized_range

    return tuple(float(np.log(studentized_range.ppf(1 - level, models, one) / 2**0.5)) for one in FREEDOMS)


def range_p_values(estimates: Sequence[Estimate], models: int) -> list[float]:
    """Return p-values of all pairs that hold jointly: Student's t for two, else the studentised range."""
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
    """Return the p-value of McNemar's exact test (1947), of the hypothesis that both runs have the same accuracy."""
    from scipy.stats import binomtest

    only_first, only_second = int(np.sum(first & ~second)), int(np.sum(~first & second))
    apart = only_first + only_second
    return float(binomtest(only_first, apart).pvalue) if apart else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted by Holm's correction (1979), which bounds the probability of any false rejection."""
    from statsmodels.stats.multitest import multipletests

    return multipletests(p_values, method="holm")[1].tolist() if len(p_values) else []
