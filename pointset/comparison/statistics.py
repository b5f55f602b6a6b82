"""What a difference between two models is worth: intervals and tests, over seeds and over test sets.

Two things make a metric differ when nothing real differs: the seeds of the trainings, and the sets that happen to be in
the test. A difference counts here as distinguishable when both tests agree: the larger of the p-value over seeds and
the p-value over test sets is below the level, after Holm's correction for the number of pairs. (The larger of two valid
p-values is a valid p-value for "either of them is chance": an intersection-union test, Berger 1982.) With one seed
two runs may differ, but two models are never called distinguishable.

The error over seeds is taken from all rows together where a task says so (`pooled`): three seeds leave a t-test of two
rows alone two degrees of freedom, with which hardly any pair survives Holm's correction, and accuracies of one test set
vary alike in all rows. Where they do not (errors of a regression, whose deviations differ by a factor of a hundred
between rows), a common error would hide every difference between the good rows, and each pair has its own. Tests over
test sets need to know which sets a run got right; a task that has only means of its test sets goes without.

scipy and statsmodels do the arithmetic.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.errors import PointsetError

LEVEL = 0.05
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A range that holds the true value in a given share of repeats."""

    low: float
    high: float

    def negated(self) -> "Interval":
        """The interval of the negative value."""
        return Interval(-self.high, -self.low)


@dataclass(frozen=True)
class Pair:
    """Two models under the same seeds and on the same test sets; differences are first minus second."""

    first: str
    second: str
    difference: float
    """Of the first metric, a mean over the seeds that both have."""
    seed_differences: list[float]
    """One per seed that both have."""
    over_seeds: Interval | None
    """95 % interval of the difference for new seeds; None for a single seed."""
    over_shapes: Interval | None
    """95 % interval of the difference for new test sets (paired bootstrap); None where no set is right or wrong."""
    p_seeds: float | None
    """t-test over seeds, see `seed_error`; None for a single seed."""
    p_shapes: float | None
    """Paired bootstrap over test sets."""
    p_mcnemar: float | None
    """McNemar's exact test of the two runs of the first seed."""
    p: float | None
    """Of the pair: the larger of p_seeds and p_shapes; p_mcnemar for a single seed; None where there is no test."""
    p_holm: float | None
    """p after Holm's correction for the number of pairs tested."""

    @property
    def distinguishable(self) -> bool:
        """Whether the models differ by more than other seeds and other shapes explain; never with a single seed."""
        return self.p_seeds is not None and self.p_holm is not None and self.p_holm < LEVEL

    @property
    def runs_differ(self) -> bool:
        """Whether the only runs differ by more than other shapes explain; the models may still be equally good."""
        return self.p_seeds is None and self.p_holm is not None and self.p_holm < LEVEL

    def reversed(self) -> "Pair":
        """The same pair seen from the second model."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            seed_differences=[-difference for difference in self.seed_differences],
            over_seeds=self.over_seeds and self.over_seeds.negated(),
            over_shapes=self.over_shapes and self.over_shapes.negated(),
        )


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Interval of the mean of independent values by Student's t; None for fewer than two values."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    reach = float(t.ppf(0.5 + confidence / 2, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return Interval(fmean(values) - reach, fmean(values) + reach)


@dataclass(frozen=True)
class SeedError:
    """How far one run is off, for reasons of its own: neither its model's nor its seed's."""

    deviation: float
    freedom: int
    """Degrees of freedom behind the deviation."""

    def of_difference(self, seeds: int) -> float:
        """Standard error of the difference of two models over so many seeds."""
        return self.deviation * (2.0 / seeds) ** 0.5

    def interval(self, difference: float, seeds: int, confidence: float = 0.95) -> Interval:
        """Of the difference of two models, for new seeds."""
        from scipy.stats import t

        reach = float(t.ppf(0.5 + confidence / 2, self.freedom)) * self.of_difference(seeds)
        return Interval(difference - reach, difference + reach)

    def p_value(self, difference: float, seeds: int) -> float:
        """Two-sided, of "the two models are equally good"."""
        from scipy.stats import t

        if self.deviation == 0.0:  # nothing to divide by
            return 1.0 if difference == 0.0 else 0.0
        return float(2.0 * t.sf(abs(difference) / self.of_difference(seeds), self.freedom))


def seed_error(values: Float[ndarray, "models seeds"]) -> SeedError | None:
    """The residual deviation of metric = model + seed + chance, from all models together.

    This is the randomised block design of the analysis of variance, seeds being the blocks: (k - 1) (n - 1) degrees of
    freedom for k models and n seeds. For two models it is the paired t-test; for more it takes the error of a run to
    be equal in all of them, and in exchange has power with three seeds. Where one model's
    deviation is three times that of the others, a table of five or seven equally good models claims a difference in 7
    to 9 % of simulations (of the test over seeds alone, after Holm), not in 5 %. None for a single seed or model.
    """
    models, seeds = values.shape
    freedom = (models - 1) * (seeds - 1)
    if freedom < 1:
        return None
    residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    # Equal numbers may leave a residual by rounding.
    deviation = float(np.sqrt(np.square(residuals).sum() / freedom))
    return SeedError(deviation if deviation > 1e-12 else 0.0, freedom)


def paired_bootstrap(
    differences: Float[ndarray, " shapes"], seed: int = 0, confidence: float = 0.95, resamples: int = RESAMPLES
) -> tuple[Interval, float]:
    """Percentile interval of the mean of per-shape differences, and the p-value of "it is zero" that goes with it.

    Shapes are drawn anew with replacement (Efron and Tibshirani 1993, chapters 13 and 16). A tie with zero counts as
    evidence for zero, so that two models that never differ have p = 1. Where no resample lies beyond zero, all that
    they say is p < 2 / (resamples + 1), which Holm's correction in a table of 23 rows makes more than 0.05: there the
    p-value is that of the paired t-test, if it is smaller.
    """
    if len(differences) == 0:
        raise PointsetError("there are no test shapes: use data with a test split")
    # The mean of a resample depends only on how often each distinct difference is drawn.
    values, counts = np.unique(differences, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(differences), counts / len(differences), resamples)
    means = drawn @ values / len(differences)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    smaller = min(np.sum(means <= 0.0), np.sum(means >= 0.0))
    p = min(1.0, float(2 * (smaller + 1) / (resamples + 1)))
    return Interval(float(low), float(high)), p if smaller else min(p, _paired_t_test(differences))


def _paired_t_test(differences: Float[ndarray, " shapes"]) -> float:
    from scipy.stats import ttest_1samp

    if len(differences) < 2 or differences.std() < 1e-12:  # nothing to divide by
        return 1.0
    return float(ttest_1samp(differences, 0.0).pvalue)


def mcnemar(first: Bool[ndarray, " shapes"], second: Bool[ndarray, " shapes"]) -> float:
    """Exact p-value of "both are right equally often", from the shapes on which just one is right (McNemar 1947)."""
    from statsmodels.stats.contingency_tables import mcnemar as test

    table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
    return float(test(table, exact=True).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number (Holm 1979): any of them below 0.05 by chance has probability 0.05."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


def compare_pairs(scores: Mapping[str, Mapping[int, ndarray]], pooled: bool, resamples: int = RESAMPLES) -> list[Pair]:
    """Compare every two models.

    Args:
        scores: for each model and each of its seeds, which test sets it gets right (bool [sets], the same sets for
            all), or its metric alone (float [1]).
        pooled: whether the error over seeds is that of all models together.
        resamples: of the bootstrap over test sets.

    Returns:
        One `Pair` for every two models that share a seed, the models in the given order.
    """
    error = _common_error(scores) if pooled else None
    pairs = [
        _compare(first, second, scores[first], scores[second], error, resamples)
        for first, second in itertools.combinations(scores, 2)
        if scores[first].keys() & scores[second].keys()
    ]
    corrected = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    return [pair if pair.p is None else replace(pair, p_holm=next(corrected)) for pair in pairs]


def _common_error(scores: Mapping[str, Mapping[int, ndarray]]) -> SeedError | None:
    """From the seeds that all models share which have several; None where these are fewer than two."""
    several = [runs for runs in scores.values() if len(runs) > 1]
    shared = [seed for seed in next(iter(several), {}) if all(seed in runs for runs in several)]
    return seed_error(np.array([[runs[seed].mean() for seed in shared] for runs in several])) if shared else None


def _compare(
    first: str,
    second: str,
    ours: Mapping[int, ndarray],
    theirs: Mapping[int, ndarray],
    error: SeedError | None,
    resamples: int,
) -> Pair:
    seeds = [seed for seed in ours if seed in theirs]
    a, b = (np.stack([runs[seed] for seed in seeds]) for runs in (ours, theirs))  # [seeds, sets]
    apart = a.astype(float) - b
    over_seeds = [float(difference) for difference in apart.mean(axis=1)]
    difference = fmean(over_seeds)
    error = error or seed_error(np.stack([a.mean(axis=1), b.mean(axis=1)]))
    if len(seeds) < 2:
        error = None
    p_seeds = error.p_value(difference, len(seeds)) if error else None
    interval, p_shapes, p_mcnemar = None, None, None
    if a.dtype == bool:
        interval, p_shapes = paired_bootstrap(apart.mean(axis=0), resamples=resamples)
        p_mcnemar = mcnemar(a[0], b[0])
    tests = [p for p in (p_seeds, p_shapes) if p is not None]
    return Pair(
        first=first,
        second=second,
        difference=difference,
        seed_differences=over_seeds,
        over_seeds=error.interval(difference, len(seeds)) if error else None,
        over_shapes=interval,
        p_seeds=p_seeds,
        p_shapes=p_shapes,
        p_mcnemar=p_mcnemar,
        p=p_mcnemar if p_seeds is None else max(tests),
        p_holm=None,
    )
