"""Which models differ, for new seeds and new items together: the one rule of every table, report and verdict.

Run s of model a scores y[a, s, i] on item i, for example 1 if it is right and 0 if not. Models a and b differ by
d = mean(y[a]) - mean(y[b]). Seeds and items are both samples, so that d has the estimated variance

    Var(d) = v_a / S_a + v_b / S_b + w / I - (e_a / S_a + e_b / S_b) / I

with v the variance of the means of a model's runs, w the variance over items of the difference of the item means, and e
the residual mean square of seeds x items, which v and w both contain. It is at least its part from seeds and its part
from items. d / sqrt(Var(d)) is compared with Student's t with Satterthwaite's degrees of freedom (Clark 1973, "The
language-as-fixed-effect fallacy"; Satterthwaite 1946; Brennan 2001, "Generalizability Theory", chapter 6). Each model
has its own variance over seeds: runs of different models need not be paired, and models need not vary equally.

Few runs may vary little by luck, and the test would then be too sure. So the part of the seeds counts with the fewest
degrees of freedom that it can have, min(S_a, S_b) - 1, and a model's v is at least half of the median of all models.
The p-values and intervals of all pairs hold together, by the studentised range of all models (Games and Howell 1976,
"Pairwise multiple comparison procedures with unequal n's and/or variances"). In simulated tables of equal models, some
of which vary thrice as much, at most 5 % have any error: scripts/experiments/levels.py, with the rules that lost.

A model that gives the same answers in all runs, or that is said to have no seed, has no variance over seeds. Scores
without items, one number for each run, are compared over seeds alone. A single run of a model whose seed matters says
nothing about the model: two such runs are compared by McNemar's test, and the models are not.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, median, stdev

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.errors import PointsetError

SIGNIFICANCE_LEVEL = 0.05
"""Default probability of an error in a table of equally good models."""
NOT_DISTINGUISHABLE = "not distinguishable"
LEAST_OF_MEDIAN = 0.5
"""A model's variance over seeds is at least this share of the median of all models that vary."""
POWER = 0.8
"""Probability with which a design of the size that is recommended finds a difference."""
MOST_SEEDS = 1000
MOST_ITEMS = 10**7
"""Larger designs are not recommended."""
FREEDOMS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 60.0, 1e4)
"""Degrees of freedom between which critical values of the studentised range are interpolated."""


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def negated(self) -> "Interval":
        """The interval of the negated value."""
        return Interval(-self.high, -self.low)


def check_level(level: float) -> float:
    """The level; a PointsetError if it is not in (0, 1)."""
    if not 0.0 < level < 1.0:
        raise PointsetError(f"level must be in (0, 1), got {level}")
    return level


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
    """True if a further run would give the same answers."""
    binary: bool
    """True if items are right or wrong."""

    @classmethod
    def of(cls, scores: ndarray, fixed: bool = False) -> "Spread":
        """The components of the scores of all runs of a model, [seeds, items]; `fixed` if it has no seed."""
        binary, scores = scores.dtype == bool, scores.astype(np.float64)
        seeds, items = scores.shape
        runs, means = scores.mean(axis=1), scores.mean(axis=0)
        fixed = fixed or (seeds > 1 and items > 1 and bool((scores == scores[0]).all()))
        if seeds < 2 or fixed:
            return cls(seeds, means, 0.0, 0.0, fixed, binary)
        over_seeds = float(runs.var(ddof=1))
        # Sums of squares: total = seeds + items + residual.
        total = float(np.square(scores - runs.mean()).sum())
        rest = total - items * (seeds - 1) * over_seeds - seeds * float(np.square(means - runs.mean()).sum())
        residual = max(0.0, rest) / ((seeds - 1) * max(1, items - 1))
        return cls(seeds, means, over_seeds if over_seeds > 1e-24 else 0.0, residual, fixed, binary)

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.item_means)

    @property
    def known(self) -> bool:
        """True if the scores say how much further runs vary."""
        return self.fixed or self.seeds > 1


def measure_spreads(scores: Mapping[str, ndarray], fixed: Collection[str] = ()) -> dict[str, Spread]:
    """The components of all models of a table, [seeds, items] each, with variances over seeds that are not too small.

    `fixed` are the models without a seed. Scores without items keep their variances: their test has the fewest degrees
    of freedom anyway, and errors of a regression may vary a hundred times more in one row than in another.
    """
    spreads = {model: Spread.of(own, model in fixed) for model, own in scores.items()}
    varying = {model: one for model, one in spreads.items() if one.seeds > 1 and not one.fixed and one.items > 1}
    if varying:
        floor = LEAST_OF_MEDIAN * median(one.over_seeds for one in varying.values())
        spreads |= {model: replace(one, over_seeds=max(one.over_seeds, floor)) for model, one in varying.items()}
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
        """The interval of so many standard errors on both sides."""
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
    """The mean of `item_values`, which are the item means of one model, or the difference of those of two."""
    items, varying = len(item_values), [spread for spread in spreads if not spread.fixed]
    over_seeds = sum(spread.over_seeds / spread.seeds for spread in varying)
    over_items = float(item_values.var(ddof=1)) / items if items > 1 else 0.0
    if items > 1 and all(spread.binary for spread in spreads):
        over_items = max(over_items, items**-2.0)  # as if one more item could be answered otherwise
    doubled = sum(spread.residual / spread.seeds for spread in varying) / items
    variance = max(over_seeds + over_items - doubled, over_seeds, over_items)
    fewest = max(1, min(spread.seeds for spread in varying) - 1) if varying else items - 1
    squares = over_seeds**2 / max(1, fewest) + over_items**2 / max(1, items - 1)
    least = fewest if items == 1 else min(fewest, items - 1)
    freedom = max(variance**2 / squares if squares else 1.0, float(least))
    return Estimate(float(item_values.mean()), variance**0.5, freedom)


def estimate_mean(spread: Spread) -> Estimate:
    """The mean of one model, for new seeds and new items."""
    return crossed_estimate((spread,), spread.item_means)


def estimate_difference(a: Spread, b: Spread) -> Estimate:
    """The mean of the first model minus that of the second, for new seeds and new items."""
    return crossed_estimate((a, b), a.item_means - b.item_means)


def mean_interval(values: Sequence[float], level: float = SIGNIFICANCE_LEVEL) -> Interval | None:
    """Confidence interval of the mean of independent values by Student's t; None for fewer than two values."""
    if len(values) < 2:
        return None
    return Estimate(fmean(values), stdev(values) / len(values) ** 0.5, len(values) - 1).interval(level)


def critical_t(freedom: float, level: float, models: int = 2) -> float:
    """Standard errors beyond which one of all pairs of so many equal models is found with the probability `level`."""
    from scipy.stats import t

    if models < 3:
        return float(t.ppf(1 - level / 2, freedom))
    inverse = [1 / one for one in FREEDOMS]
    logs = np.interp(1 / max(freedom, 1.0), inverse[::-1], range_logs(models, level)[::-1])
    return float(np.exp(logs))


@lru_cache(maxsize=64)
def range_logs(models: int, level: float) -> tuple[float, ...]:
    """Logarithms of the critical values of `critical_t` at `FREEDOMS`."""
    from scipy.stats import studentized_range

    return tuple(float(np.log(studentized_range.ppf(1 - level, models, one) / 2**0.5)) for one in FREEDOMS)


def range_p_values(estimates: Sequence[Estimate], models: int) -> list[float]:
    """p-values of all pairs of so many models that hold together: Student's t for two, else the studentised range."""
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
    """McNemar's exact test (1947): p-value of the hypothesis that both runs have the same accuracy."""
    from scipy.stats import binomtest

    only_first, only_second = int(np.sum(first & ~second)), int(np.sum(~first & second))
    apart = only_first + only_second
    return float(binomtest(only_first, apart).pvalue) if apart else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction (1979), which bounds the probability of any false rejection; returns the adjusted p-values."""
    adjusted, reached = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = reached
    return adjusted


@dataclass(frozen=True)
class Design:
    """What a comparison of two models can tell, as a function of the numbers of seeds and items."""

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
    def of(cls, a: Spread, b: Spread, models: int, level: float) -> "Design":
        """The design of a comparison of two models of which both are `known`."""
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

    def resolution(self, seeds: int | None = None, items: int | None = None) -> float:
        """The smallest difference that so many seeds and items call distinguishable; default: those of the design.

        More items alone may leave fewer degrees of freedom; they never tell less than those of the design.
        """
        own = self._reach(self.seeds, self.items, 0.0)
        found = self._reach(seeds or self.seeds, items or self.items, 0.0)
        return min(own, found) if (seeds or 0) >= self.seeds or (items or 0) >= self.items else found

    def seeds_for(self, difference: float) -> int | None:
        """Seeds of each model that find a true difference, on these items, with the probability `POWER`, if any do."""
        if not self.seeds:
            return None
        return smallest(lambda seeds: self._finds(difference, seeds, self.items), self.seeds, MOST_SEEDS)

    def items_for(self, difference: float) -> int | None:
        """Items that find a true difference, with these seeds, with the probability `POWER`, if any do."""
        if self.items == 1:
            return None
        return smallest(lambda items: self._finds(difference, self.seeds, items), self.items, MOST_ITEMS)

    def both_for(self, difference: float) -> tuple[int, int] | None:
        """Seeds and items, the same multiple of those of the design, that find a true difference; None if none do."""
        if self.items == 1 or not self.seeds:
            return None
        most = min(MOST_SEEDS // self.seeds, MOST_ITEMS // self.items)
        times = smallest(lambda times: self._finds(difference, times * self.seeds, times * self.items), 1, most)
        return None if times is None else (times * self.seeds, times * self.items)

    def _finds(self, difference: float, seeds: int, items: int) -> bool:
        from scipy.stats import norm

        return abs(difference) >= self._reach(seeds, items, float(norm.ppf(POWER)))

    def _reach(self, seeds: int, items: int, beyond: float) -> float:
        """Standard errors up to the critical value, and `beyond`, as a difference."""
        runs, fewest = max(1, seeds), max(1, seeds - 1)
        of_seeds, of_items, crossed = self.over_seeds / runs, self.over_items / items, self.residual / (runs * items)
        variance = of_seeds + of_items + crossed
        squares = (of_seeds + crossed) ** 2 / fewest + (of_items + crossed) ** 2 / max(1, items - 1)
        freedom = max(variance**2 / squares if squares else items - 1.0, float(fewest))
        return (critical_t(freedom, self.level, self.models) + beyond) * float(variance**0.5)


def smallest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number in [low, high] from which on a condition holds; None if it does not at the end."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


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
    """What these numbers of seeds and items can tell; None if a model has a single run and a seed."""
    level: float = SIGNIFICANCE_LEVEL

    @property
    def distinguishable(self) -> bool:
        """True if the models differ significantly; never with a single run of a model that has a seed."""
        return self.p is not None and self.p < self.level

    @property
    def runs_differ(self) -> bool:
        """True if only two runs are compared, and they differ significantly; the models may still be equally good."""
        return self.p_runs is not None and self.p_runs < self.level

    @property
    def verdict(self) -> str:
        """The result as text."""
        if self.p is None:
            return "the runs differ; one seed" if self.runs_differ else "one seed"
        return "distinguishable" if self.distinguishable else NOT_DISTINGUISHABLE

    def in_table(self, difference: str) -> str:
        """The difference if there is one, else why it is not shown."""
        if self.runs_differ:
            return f"{difference}, one seed"
        return difference if self.distinguishable else self.verdict

    def reversed(self) -> "Pair":
        """The same comparison with first and second exchanged."""
        turned = self.interval and self.interval.negated()
        return replace(self, first=self.second, second=self.first, difference=-self.difference, interval=turned)


def write_p(value: float | None) -> str:
    """A p-value as text; empty for None."""
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
    names = [*itertools.combinations(scores, 2)]
    compared = [pair for pair in names if all(spreads[model].known for model in pair)]
    estimates = [estimate_difference(*(spreads[model] for model in pair)) for pair in compared]
    p_values = dict(zip(compared, zip(estimates, range_p_values(estimates, models), strict=True), strict=True))
    runs = _compare_runs(scores, [pair for pair in names if pair not in p_values])
    pairs = []
    for a, b in names:
        if (a, b) in p_values:
            one, p = p_values[a, b]
            interval = one.within(critical_t(one.freedom, level, models))
            design = Design.of(spreads[a], spreads[b], models, level)
            pairs.append(Pair(a, b, one.value, one.error, interval, p, None, design, level))
        else:
            apart = float((spreads[a].item_means - spreads[b].item_means).mean())
            pairs.append(Pair(a, b, apart, None, None, None, runs.get((a, b)), None, level))
    return pairs


def _compare_runs(scores: Mapping[str, ndarray], pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """McNemar's test of pairs of single runs that are right or wrong, after Holm's correction."""
    single = [(a, b) for a, b in pairs if all(len(scores[one]) == 1 and scores[one].dtype == bool for one in (a, b))]
    p_values = holm([mcnemar(scores[a][0], scores[b][0]) for a, b in single])
    return dict(zip(single, p_values, strict=True))
