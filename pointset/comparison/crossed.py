"""Differences of models for new seeds and new items together: a crossed analysis of variance.

Run s of model a scores y[a, s, i] on item i, for example 1 if it is right and 0 if not. Models a and b differ by
d = mean(y[a]) - mean(y[b]). Seeds and items are both samples, so that d has the estimated variance

    Var(d) = v_a / S_a + v_b / S_b + w / I - (e_a / S_a + e_b / S_b) / I

with v the variance of the means of a model's runs, w the variance over items of the difference of the item means, and e
the residual mean square of seeds x items, which v and w both contain. It is at least its part from seeds and its part
from items. d / sqrt(Var(d)) is compared with Student's t with Satterthwaite's degrees of freedom (Clark 1973, "The
language-as-fixed-effect fallacy"; Satterthwaite 1946; Brennan 2001, "Generalizability Theory", chapter 6). Each model
has its own variance over seeds: runs of different models need not be paired, and models need not vary equally. The part
of the seeds counts with the fewest degrees of freedom that it can have, min(S_a, S_b) - 1: with Welch's estimate of
them, from variances of three runs, too many tables of equal models would show a difference (8 % in place of 5).
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.comparison.statistics import SIGNIFICANCE_LEVEL, Compared, Estimate, Interval, corrected, mcnemar

POWER = 0.8
"""Probability with which a design of the size that is recommended finds a difference."""
MOST_SEEDS = 1000
MOST_ITEMS = 10**7
"""Larger designs are not recommended."""


@dataclass(frozen=True)
class Spread:
    """The variance components of one model's scores [seeds, items]."""

    seeds: int
    item_means: Float[ndarray, " items"]
    over_seeds: float
    """v: variance of the means of the runs; 0 for a single run."""
    residual: float
    """e: residual mean square of seeds x items; 0 for a single run."""

    @classmethod
    def of(cls, scores: ndarray) -> "Spread":
        """The components of the scores of all runs of a model, [seeds, items]."""
        scores = scores.astype(np.float64)
        seeds, items = scores.shape
        runs, means = scores.mean(axis=1), scores.mean(axis=0)
        if seeds < 2:
            return cls(seeds, means, 0.0, 0.0)
        over_seeds = float(runs.var(ddof=1))
        # Sums of squares: total = seeds + items + residual.
        total = float(np.square(scores - runs.mean()).sum())
        rest = total - items * (seeds - 1) * over_seeds - seeds * float(np.square(means - runs.mean()).sum())
        residual = max(0.0, rest) / ((seeds - 1) * max(1, items - 1))
        return cls(seeds, means, over_seeds if over_seeds > 1e-24 else 0.0, residual)


def crossed_interval(spreads: Sequence[Spread], item_values: Float[ndarray, " items"]) -> Estimate:
    """The mean of `item_values`, which are the item means of one model, or the difference of those of two."""
    items = len(item_values)
    over_seeds = sum(spread.over_seeds / spread.seeds for spread in spreads)
    over_items = float(item_values.var(ddof=1)) / items if items > 1 else 0.0
    doubled = sum(spread.residual / spread.seeds for spread in spreads) / items
    variance = max(over_seeds + over_items - doubled, over_seeds, over_items)
    fewest = max(1, min(spread.seeds for spread in spreads) - 1)
    squares = over_seeds**2 / fewest + over_items**2 / max(1, items - 1)
    freedom = max(variance**2 / squares if squares else 1.0, float(min(fewest, max(1, items - 1))))
    return Estimate(float(item_values.mean()), variance**0.5, freedom)


def estimate_difference(a: Spread, b: Spread) -> Estimate:
    """The mean of the first model minus that of the second."""
    return crossed_interval((a, b), a.item_means - b.item_means)


@dataclass(frozen=True)
class Design:
    """What a comparison of two models can tell, as a function of the numbers of seeds and items."""

    seeds: int
    """Runs of each model; the smaller number, if they differ."""
    items: int
    tests: int
    """Pairs in the table: Holm's correction tests the smallest p-value against level / tests."""
    over_seeds: float
    """Sum over both models of the variance of a run's mean that its seed alone explains."""
    over_items: float
    """Variance over items of the difference that does not change with the seeds."""
    residual: float
    """Sum over both models of the residual mean square."""

    @classmethod
    def of(cls, a: Spread, b: Spread, tests: int) -> "Design":
        """The design of a comparison of two models with several runs each."""
        seeds, items, residual = min(a.seeds, b.seeds), len(a.item_means), a.residual + b.residual
        apart = float((a.item_means - b.item_means).var(ddof=1)) if items > 1 else 0.0
        repeated = a.residual / a.seeds + b.residual / b.seeds
        return cls(
            seeds=seeds,
            items=items,
            tests=tests,
            over_seeds=max(0.0, a.over_seeds + b.over_seeds - residual / items),
            over_items=max(0.0, apart - repeated),
            residual=residual,
        )

    def resolution(self, seeds: int | None = None, items: int | None = None) -> float:
        """The smallest difference that so many seeds and items call distinguishable; default: those of the design."""
        return self._reach(seeds or self.seeds, items or self.items, 0.0)

    def seeds_for(self, difference: float) -> int | None:
        """Seeds of each model that find a true difference, on these items, with the probability `POWER`, if any do."""
        return _smallest(lambda seeds: self._finds(difference, seeds, self.items), self.seeds, MOST_SEEDS)

    def items_for(self, difference: float) -> int | None:
        """Items that find a true difference, with these seeds, with the probability `POWER`, if any do."""
        return _smallest(lambda items: self._finds(difference, self.seeds, items), self.items, MOST_ITEMS)

    def both_for(self, difference: float) -> tuple[int, int] | None:
        """Seeds and items, the same multiple of those of the design, that find a true difference; None if none do."""
        most = min(MOST_SEEDS // self.seeds, MOST_ITEMS // self.items)
        times = _smallest(lambda times: self._finds(difference, times * self.seeds, times * self.items), 1, most)
        return None if times is None else (times * self.seeds, times * self.items)

    def _finds(self, difference: float, seeds: int, items: int) -> bool:
        from scipy.stats import norm

        return abs(difference) >= self._reach(seeds, items, float(norm.ppf(POWER)))

    def _reach(self, seeds: int, items: int, beyond: float) -> float:
        """Standard errors up to the critical value, and `beyond`, as a difference."""
        from scipy.stats import t

        of_seeds, of_items, crossed = self.over_seeds / seeds, self.over_items / items, self.residual / (seeds * items)
        variance = of_seeds + of_items + crossed
        squares = (of_seeds + crossed) ** 2 / (seeds - 1) + (of_items + crossed) ** 2 / (items - 1)
        freedom = max(variance**2 / squares if squares else items - 1.0, seeds - 1.0)
        critical = float(t.ppf(1 - SIGNIFICANCE_LEVEL / (2 * self.tests), freedom))
        return float((critical + beyond) * variance**0.5)


def _smallest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest number in [low, high] from which on a condition holds; None if it does not at the end."""
    if not holds(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True)
class CrossedPair(Compared):
    """Two models on the same items; the difference is first minus second."""

    first: str
    second: str
    difference: float
    interval: Interval | None
    """95 % interval for new seeds and items; None if a model has a single run."""
    p: float | None
    """p-value of the test over seeds and items; None if a model has a single run."""
    p_runs: float | None
    """p-value of McNemar's exact test of two single runs; None for several runs."""
    design: Design | None
    """What these numbers of seeds and items can tell; None if a model has a single run."""
    p_holm: float | None = None
    """p, or else p_runs, after Holm's correction for the number of pairs."""

    @property
    def single(self) -> bool:
        """True if a model has a single run."""
        return self.p is None

    @property
    def tested(self) -> float | None:
        """The p-value that Holm's correction raises; None without a test."""
        return self.p_runs if self.single else self.p


def compare_crossed(right: Mapping[str, Bool[ndarray, "seeds items"]]) -> list[CrossedPair]:
    """Compare all pairs of models, in the given order, with Holm's correction.

    Args:
        right: by model, which items its runs predict rightly; the same items for all models.
    """
    spreads = {model: Spread.of(scores) for model, scores in right.items()}
    tests = len(right) * (len(right) - 1) // 2
    return corrected(
        [_compare(right, spreads, first, second, tests) for first, second in itertools.combinations(right, 2)]
    )


def _compare(
    right: Mapping[str, ndarray], spreads: Mapping[str, Spread], first: str, second: str, tests: int
) -> CrossedPair:
    a, b = spreads[first], spreads[second]
    if min(a.seeds, b.seeds) > 1:
        apart = estimate_difference(a, b)
        return CrossedPair(first, second, apart.value, apart.interval, apart.p_value, None, Design.of(a, b, tests))
    p_runs = mcnemar(right[first][0], right[second][0]) if a.seeds == b.seeds == 1 else None
    return CrossedPair(first, second, float((a.item_means - b.item_means).mean()), None, None, p_runs, None)
