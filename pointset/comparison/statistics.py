"""Confidence intervals and significance tests for differences between models, over seeds and over test sets.

Equally good models differ by chance for two reasons: the seeds of their trainings, and the choice of the test sets. Two
models are called distinguishable if both tests reject: the larger of the p-value over seeds and the p-value over test
sets must be below the level, after Holm's correction for the number of pairs. (The larger of two valid p-values is a
valid p-value for "at least one null hypothesis is true": an intersection-union test, Berger 1982.) With a single seed,
two runs may differ significantly, but two models are never called distinguishable.

If a task sets `pooled`, the standard error over seeds is estimated from all rows together. With three seeds, a t-test
of two rows has two degrees of freedom, and hardly any pair would survive Holm's correction; accuracies on one test set
vary about equally in all rows, so that pooling is justified. It is not where deviations differ by a factor of a hundred
between rows, as with the errors of a regression: a pooled error would hide all differences between the good rows, so
each pair has its own. The test over test sets needs to know which sets a run got right; tasks with only a mean over
their test sets do without.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from pointset.errors import PointsetError

SIGNIFICANCE_LEVEL = 0.05
"""Significance level."""
RESAMPLES = 10_000
"""Resamples of the bootstrap."""
NOT_DISTINGUISHABLE = "not distinguishable"


@dataclass(frozen=True)
class Interval:
    """A confidence interval."""

    low: float
    high: float

    def negated(self) -> "Interval":
        """The interval of the negated value."""
        return Interval(-self.high, -self.low)


class Compared:
    """Two compared models: what is known of them, and if each has a single run, of these runs."""

    p: float | None
    p_holm: float | None

    @property
    def single(self) -> bool:
        """True if only a single run of a model is compared."""
        raise NotImplementedError

    @property
    def tested(self) -> float | None:
        """The p-value that Holm's correction raises; None without a test."""
        return self.p

    @property
    def distinguishable(self) -> bool:
        """True if the models differ significantly; never with a single seed."""
        return not self.single and self.p_holm is not None and self.p_holm < SIGNIFICANCE_LEVEL

    @property
    def runs_differ(self) -> bool:
        """True if there is a single seed, and its runs differ significantly; the models may still be equally good."""
        return self.single and self.p_holm is not None and self.p_holm < SIGNIFICANCE_LEVEL

    @property
    def verdict(self) -> str:
        """The result as text."""
        if self.runs_differ:
            return "the runs differ; one seed"
        if self.p is None:
            return "one seed"
        return "distinguishable" if self.distinguishable else NOT_DISTINGUISHABLE

    def in_table(self, difference: str) -> str:
        """The difference if there is one, else why it is not shown."""
        if self.runs_differ:
            return f"{difference}, one seed"
        return difference if self.distinguishable else self.verdict


C = TypeVar("C", bound=Compared)


@dataclass(frozen=True)
class Pair(Compared):
    """Comparison of two models with the same seeds and test sets; differences are first minus second."""

    first: str
    second: str
    difference: float
    """Difference of the first metric, mean over the seeds that both models have."""
    seed_differences: list[float]
    """The difference for each of these seeds."""
    over_seeds: Interval | None
    """95 % interval of the difference for new seeds; None for a single seed."""
    over_shapes: Interval | None
    """95 % interval of the difference for new test sets (paired bootstrap); None if sets are not right or wrong."""
    p_seeds: float | None
    """p-value of the t-test over seeds, see `seed_error`; None for a single seed."""
    p_shapes: float | None
    """p-value of the paired bootstrap over test sets."""
    p_mcnemar: float | None
    """p-value of McNemar's exact test of the two runs of the first seed."""
    p: float | None
    """p-value of the pair: the larger of p_seeds and p_shapes; p_mcnemar for a single seed; None without a test."""
    p_holm: float | None
    """p after Holm's correction for the number of pairs tested."""

    @property
    def single(self) -> bool:
        """True if the models share a single seed."""
        return self.p_seeds is None

    def reversed(self) -> "Pair":
        """The same comparison with first and second exchanged."""
        return replace(
            self,
            first=self.second,
            second=self.first,
            difference=-self.difference,
            seed_differences=[-difference for difference in self.seed_differences],
            over_seeds=self.over_seeds and self.over_seeds.negated(),
            over_shapes=self.over_shapes and self.over_shapes.negated(),
        )


def write_p(value: float | None) -> str:
    """A p-value as text; empty for None."""
    if value is None:
        return ""
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def mean_interval(values: Sequence[float]) -> Interval | None:
    """95 % confidence interval of the mean of independent values by Student's t; None for fewer than two values."""
    from scipy.stats import t

    if len(values) < 2:
        return None
    reach = float(t.ppf(1 - SIGNIFICANCE_LEVEL / 2, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return Interval(fmean(values) - reach, fmean(values) + reach)


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference of means, with its standard error."""

    value: float
    error: float
    freedom: float
    """Degrees of freedom of the error."""

    @property
    def interval(self) -> Interval:
        """95 % confidence interval by Student's t."""
        from scipy.stats import t

        reach = float(t.ppf(1 - SIGNIFICANCE_LEVEL / 2, self.freedom)) * self.error
        return Interval(self.value - reach, self.value + reach)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the true value is 0."""
        from scipy.stats import t

        if self.error == 0.0:
            return 1.0 if self.value == 0.0 else 0.0
        return float(2.0 * t.sf(abs(self.value) / self.error, self.freedom))


@dataclass(frozen=True)
class SeedError:
    """Residual standard deviation of one run, not explained by its model or its seed."""

    deviation: float
    freedom: int
    """Degrees of freedom of the deviation."""

    def of_difference(self, difference: float, seeds: int) -> Estimate:
        """The difference of two models, each a mean over this number of seeds, with its error for new seeds."""
        return Estimate(difference, self.deviation * (2.0 / seeds) ** 0.5, self.freedom)


def seed_error(values: Float[ndarray, "models seeds"]) -> SeedError | None:
    """Residual deviation of the model metric = model + seed + error, estimated from all models; None if undefined.

    This is the analysis of variance of a randomised block design with seeds as blocks: (k - 1) (n - 1) degrees of
    freedom for k models and n seeds. For two models it is the paired t-test. For more, it assumes equal error variances
    of all models, and in exchange has power with three seeds. If one model's deviation is three times that of the
    others, a table of five or seven equally good models shows a difference in 8 to 12 % of simulations instead of 5 %
    (scripts/experiments/levels.py; `pointset.comparison.crossed` keeps the level). Undefined for one seed or model.
    """
    models, seeds = values.shape
    freedom = (models - 1) * (seeds - 1)
    if freedom < 1:
        return None
    residuals = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    # Equal values may leave a rounding error.
    deviation = float(np.sqrt(np.square(residuals).sum() / freedom))
    return SeedError(deviation if deviation > 1e-12 else 0.0, freedom)


def paired_bootstrap(
    differences: Float[ndarray, " shapes"], seed: int = 0, resamples: int = RESAMPLES
) -> tuple[Interval, float]:
    """95 % interval (percentiles) of the mean per-shape difference, and the p-value of the hypothesis that it is zero.

    Shapes are resampled with replacement (Efron and Tibshirani 1993, chapters 13 and 16). A resampled mean of exactly
    zero counts as evidence for the hypothesis, so that two models that never differ have p = 1. If no resample is on
    the other side of zero, the bootstrap only shows p < 2 / (resamples + 1), which Holm's correction in a table of 23
    rows raises above 0.05; the p-value is then that of the paired t-test, if smaller.
    """
    from scipy.stats import ttest_1samp

    if len(differences) == 0:
        raise PointsetError("the data has no test shapes: use data with a test split")
    # The mean of a resample depends only on how often each distinct value is drawn.
    values, counts = np.unique(differences, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(differences), counts / len(differences), resamples)
    means = drawn @ values / len(differences)
    low, high = np.quantile(means, [SIGNIFICANCE_LEVEL / 2, 1 - SIGNIFICANCE_LEVEL / 2])
    smaller = min(np.sum(means <= 0.0), np.sum(means >= 0.0))
    p = min(1.0, float(2 * (smaller + 1) / (resamples + 1)))
    if not smaller and len(differences) > 1 and differences.std() >= 1e-12:
        p = min(p, float(ttest_1samp(differences, 0.0).pvalue))
    return Interval(float(low), float(high)), p


def mcnemar(first: Bool[ndarray, " shapes"], second: Bool[ndarray, " shapes"]) -> float:
    """McNemar's exact test (1947): p-value of the hypothesis that both runs have the same accuracy."""
    from statsmodels.stats.contingency_tables import mcnemar as test

    table = [[np.sum(first & second), np.sum(first & ~second)], [np.sum(~first & second), np.sum(~first & ~second)]]
    return float(test(table, exact=True).pvalue)


def corrected(pairs: Sequence[C]) -> list[C]:
    """The pairs with p-values after Holm's correction for all of them."""
    p_values = iter(holm([pair.tested for pair in pairs if pair.tested is not None]))
    return [pair if pair.tested is None else replace(pair, p_holm=next(p_values)) for pair in pairs]  # type: ignore


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction (1979), which bounds the probability of any false rejection; returns the adjusted p-values."""
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(p_values, method="holm")[1]] if p_values else []


def compare_pairs(scores: Mapping[str, Mapping[int, ndarray]], pooled: bool, resamples: int = RESAMPLES) -> list[Pair]:
    """Compare every two models that share a seed, in the given order.

    `scores` has for each model and seed which test sets are right (bool [sets], the same sets for all), or the share of
    each test set in the metric (float [sets]), or only the metric (float [1]). If `pooled`, the error over seeds is
    estimated from all models with several seeds together, from the seeds that they share.
    """
    several = [runs for runs in scores.values() if len(runs) > 1]
    shared = [seed for seed in next(iter(several), {}) if all(seed in runs for runs in several)]
    error = None
    if pooled and shared:
        error = seed_error(np.array([[runs[seed].mean() for seed in shared] for runs in several]))
    pairs = [
        _compare(scores, first, second, error, resamples)
        for first, second in itertools.combinations(scores, 2)
        if scores[first].keys() & scores[second].keys()
    ]
    return corrected(pairs)


def _compare(
    scores: Mapping[str, Mapping[int, ndarray]], first: str, second: str, error: SeedError | None, resamples: int
) -> Pair:
    seeds = [seed for seed in scores[first] if seed in scores[second]]
    a, b = (np.stack([scores[model][seed] for seed in seeds]) for model in (first, second))  # [seeds, sets]
    apart = a.astype(float) - b
    over_seeds = [float(difference) for difference in apart.mean(axis=1)]
    difference = fmean(over_seeds)
    error = error or seed_error(np.stack([a.mean(axis=1), b.mean(axis=1)]))
    over = error.of_difference(difference, len(seeds)) if error and len(seeds) > 1 else None
    p_seeds = over.p_value if over else None
    interval, p_shapes, p_mcnemar = None, None, None
    if a.dtype == bool or a.shape[1] > 1:
        interval, p_shapes = paired_bootstrap(apart.mean(axis=0), resamples=resamples)
    if a.dtype == bool:
        p_mcnemar = mcnemar(a[0], b[0])
    tests = [p for p in (p_seeds, p_shapes) if p is not None]
    return Pair(
        first=first,
        second=second,
        difference=difference,
        seed_differences=over_seeds,
        over_seeds=over.interval if over else None,
        over_shapes=interval,
        p_seeds=p_seeds,
        p_shapes=p_shapes,
        p_mcnemar=p_mcnemar,
        p=(p_shapes if p_mcnemar is None else p_mcnemar) if p_seeds is None else max(tests),
        p_holm=None,
    )
