"""Intervals have their coverage, tests keep their level, and known values are reproduced."""

import math

import numpy as np
import pytest
from scipy.stats import bootstrap, ttest_1samp, ttest_rel

from pointset.comparison.statistics import (
    SIGNIFICANCE_LEVEL,
    compare_pairs,
    holm,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    seed_error,
)
from pointset.errors import PointsetError


def test_known_values():
    interval = mean_interval([0.8, 0.9, 1.0])
    assert interval.low == pytest.approx(0.9 - 4.302653 * 0.1 / math.sqrt(3))  # t table: 0.975 at 2 degrees
    assert interval.high == pytest.approx(0.9 + 4.302653 * 0.1 / math.sqrt(3))
    assert mean_interval([0.8]) is None
    assert mean_interval([0.8, 1.0]).high == pytest.approx(0.9 + 12.706205 * 0.1)  # 0.975 at 1 degree
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_with_more_models_it_is_the_analysis_of_variance_in_blocks():
    """The F of statsmodels' two-way table is the t squared, for models whose difference is the whole effect."""
    from statsmodels.api import OLS

    accuracies = np.random.default_rng(4).normal(size=(4, 3))
    model, seed = np.indices((4, 3)).reshape(2, -1)
    design = np.column_stack([model == m for m in range(4)] + [seed == s for s in (1, 2)]).astype(float)
    fitted = OLS(accuracies.ravel(), design).fit()
    error = seed_error(accuracies)
    assert error.freedom == fitted.df_resid == 6
    assert error.deviation == pytest.approx(math.sqrt(fitted.mse_resid))
    contrast = fitted.t_test([1, -1, 0, 0, 0, 0])
    difference = accuracies[0].mean() - accuracies[1].mean()
    assert error.of_difference(difference, 3).p_value == pytest.approx(float(contrast.pvalue))


def test_statistics_are_defined_without_deviation_or_seeds():
    assert seed_error(np.array([[0.5], [0.6]])) is None
    same = seed_error(np.array([[0.5, 0.7], [0.3, 0.5]]))
    assert [same.of_difference(difference, 2).p_value for difference in (0.2, 0.0)] == [0.0, 1.0]
    rounded = np.array([[0.1, 0.3, 0.7], [0.2, 0.4, 0.8]])
    assert np.diff(rounded, axis=0).std() > 0.0
    assert seed_error(rounded).deviation == 0.0
    assert compare_pairs({}, pooled=True) == []


def test_mcnemar_counts_the_shapes_on_which_just_one_is_right():
    first = np.array([True] * 5 + [False] * 2 + [True] * 40 + [False] * 9)
    second = np.array([False] * 5 + [True] * 2 + [True] * 40 + [False] * 9)
    two_sided = 2 * sum(math.comb(7, k) for k in range(3)) / 2**7
    assert mcnemar(first, second) == pytest.approx(two_sided)


def test_the_bootstrap_is_that_of_scipy():
    """Interval and p-value, up to what 10,000 resamples leave to chance."""
    first, second = (np.random.default_rng(2).random((2, 1000)) < [[0.7], [0.68]]).astype(float)
    interval, p = paired_bootstrap(first - second)
    theirs = bootstrap((first, second), lambda a, b, axis: (a - b).mean(axis), paired=True, method="percentile", rng=0)
    assert (interval.low, interval.high) == pytest.approx(tuple(theirs.confidence_interval), abs=0.0025)
    error = np.sqrt(2 * p * (2 - p) / 10_000)  # of the difference of two estimates of p
    assert p == pytest.approx(2 * np.mean(theirs.bootstrap_distribution <= 0.0), abs=3 * error)
    assert 0.05 < p < 0.5


def test_a_large_difference_survives_the_correction_of_a_large_table():
    """Resampling alone is not enough: 10,000 resamples give p below 0.0002 at best, and 75 rows have 2,775 pairs."""
    differences = np.repeat([1.0, -1.0, 0.0], [300, 60, 2108])
    assert paired_bootstrap(differences)[1] < SIGNIFICANCE_LEVEL / 2775
    assert paired_bootstrap(-differences)[1] < SIGNIFICANCE_LEVEL / 2775
    few = np.repeat([1.0, 0.0], [13, 2455])  # no resample is below zero, and the t-test less sure than that
    assert paired_bootstrap(few)[1] == 2 / 10_001
    assert ttest_1samp(few, 0.0).pvalue > 2 / 10_001
    assert paired_bootstrap(np.ones(50))[1] == pytest.approx(2 / 10_001), "nothing for a t-test to divide by"


@pytest.mark.parametrize(("differences", "p"), [([1.0, 0.0], 0.5), ([-1.0, 0.0], 0.5), ([-1.0, -1.0, 1.0], 14 / 27)])
def test_the_bootstrap_counts_what_lies_beyond_zero_and_ties_with_it(differences, p):
    """By hand: of [1, 0] a quarter of the resamples has mean 0; of [-1, -1, 1] 7 of 27 have a mean above 0."""
    interval, found = paired_bootstrap(np.array(differences))
    assert found == pytest.approx(p, abs=0.03)
    assert (interval, found) == paired_bootstrap(np.array(differences), seed=0)
    assert found != paired_bootstrap(np.array(differences), seed=1)[1]


def test_models_that_never_differ_are_not_distinguishable():
    same = {seed: np.array([True, False, True]) for seed in (0, 1)}
    (pair,) = compare_pairs({"a": same, "b": same}, pooled=True)
    assert (pair.difference, pair.p, pair.distinguishable) == (0.0, 1.0, False)


def test_pairs_share_seeds_and_are_counted_by_holm():
    rng = np.random.default_rng(0)
    right = {
        name: {seed: rng.random(300) < rate + 0.001 * seed for seed in seeds}
        for name, rate, seeds in (("low", 0.3, (0, 1, 2)), ("high", 0.8, (2, 0, 1)), ("lone", 0.5, (0, 7)))
    }
    pairs = compare_pairs(right, pooled=True)
    assert [(pair.first, pair.second) for pair in pairs] == [("low", "high"), ("low", "lone"), ("high", "lone")]
    expected = [right["low"][s].mean() - right["high"][s].mean() for s in (0, 1, 2)]
    assert pairs[0].seed_differences == pytest.approx(expected)
    assert pairs[0].p == max(pairs[0].p_seeds, pairs[0].p_shapes)
    assert pairs[1].p_seeds is None
    assert pairs[1].over_seeds is None
    assert pairs[1].p == pairs[1].p_mcnemar
    assert sorted(pair.p_holm for pair in pairs)[0] == pytest.approx(3 * min(pair.p for pair in pairs))
    assert pairs[0].distinguishable


def test_a_model_of_one_seed_does_not_take_the_common_error_from_the_others():
    draw = np.random.default_rng(0)
    scores = {name: {seed: draw.random(500) < 0.8 for seed in range(3)} for name in ("a", "b", "c")}
    alone = {"d": {0: draw.random(500) < 0.8}}
    with_it, without = (
        {(pair.first, pair.second): pair for pair in compare_pairs(given, pooled=True)}
        for given in (scores | alone, scores)
    )
    assert {names: pair.p_seeds for names, pair in with_it.items() if "d" not in names} == {
        names: pair.p_seeds for names, pair in without.items()
    }
    assert all(with_it[name, "d"].p_seeds is None for name in scores)


def test_a_pair_is_compared_over_its_test_sets_and_can_be_turned_round():
    rng = np.random.default_rng(1)
    right = {name: {seed: rng.random(200) < rate for seed in (0, 1)} for name, rate in (("a", 0.6), ("b", 0.7))}
    (pair,) = compare_pairs(right, pooled=False, resamples=99)
    apart = np.mean([right["a"][seed].astype(float) - right["b"][seed] for seed in (0, 1)], axis=0)
    assert (pair.over_shapes, pair.p_shapes) == paired_bootstrap(apart, resamples=99)
    paired = ttest_rel([runs.mean() for runs in right["a"].values()], [runs.mean() for runs in right["b"].values()])
    assert pair.p_seeds == pytest.approx(paired.pvalue)
    turned = pair.reversed()
    assert (turned.first, turned.second) == ("b", "a")
    assert turned.seed_differences == [-difference for difference in pair.seed_differences]
    assert (turned.over_shapes.low, turned.over_shapes.high) == (-pair.over_shapes.high, -pair.over_shapes.low)
    assert turned.reversed() == pair


def test_no_shape_is_refused():
    with pytest.raises(PointsetError, match="no test shape"):
        paired_bootstrap(np.zeros(0))


def simulated(rng, models=2, seeds=3, shapes=400, spread=0.02) -> dict:
    """Equally good models, with a random difficulty of each shape and a random effect of each training."""
    difficulty = rng.random(shapes)
    return {
        str(model): {
            seed: difficulty < np.clip(0.75 + spread * rng.standard_normal() + 0.2 * rng.standard_normal(shapes), 0, 1)
            for seed in range(seeds)
        }
        for model in range(models)
    }


@pytest.fixture
def quick(monkeypatch):
    """Disables garbage collection: statsmodels runs it for every correction, which takes most of the time."""
    monkeypatch.setattr("gc.collect", lambda *_: 0)


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("seeds", [1, 3])
def test_significance_tests_keep_their_level(seeds):
    """Simulated: among four equally good models, whose seeds and shapes both vary, at most 5 % of tables claim a
    difference (at most four standard errors above it)."""
    rng = np.random.default_rng(seeds)
    spread = 0.02 if seeds > 1 else 0.0  # that two runs differ is not a claim about other seeds
    tables = [compare_pairs(simulated(rng, 4, seeds, spread=spread), pooled=True, resamples=1000) for _ in range(100)]
    false_claims = sum(
        any(pair.distinguishable if seeds > 1 else pair.runs_differ for pair in pairs) for pairs in tables
    )
    assert false_claims / 100 < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 100)


ERRORS = {"max": [0.131, 0.138, 0.136], "attention": [0.210, 0.221, 0.199], "mean": [2.0, 2.4, 1.9]}


def alone(table: dict[str, list[float]]) -> dict[str, dict[int, np.ndarray]]:
    """Metrics of runs whose test sets are neither right nor wrong."""
    return {label: {seed: np.array([value]) for seed, value in enumerate(values)} for label, values in table.items()}


def test_pairs_with_errors_of_their_own_are_paired_t_tests_with_holms_correction():
    pairs = compare_pairs(alone(ERRORS), pooled=False)
    assert [(pair.first, pair.second) for pair in pairs] == [
        ("max", "attention"), ("max", "mean"), ("attention", "mean"),
    ]  # fmt: skip
    for pair in pairs:
        expected = ttest_rel(ERRORS[pair.first], ERRORS[pair.second])
        assert pair.p == pair.p_seeds == pytest.approx(expected.pvalue)
        assert (pair.over_seeds.low, pair.over_seeds.high) == pytest.approx(tuple(expected.confidence_interval()))
        assert (pair.over_shapes, pair.p_shapes, pair.p_mcnemar) == (None, None, None)
    assert [pair.p_holm for pair in pairs] == pytest.approx(holm([pair.p for pair in pairs]))


@pytest.mark.parametrize("pooled", [True, False])
def test_a_bad_row_hides_the_difference_of_two_good_ones_from_a_pooled_error_alone(pooled):
    """The pooled deviation of the table is that of the mean pooling, 100 times that of the others."""
    table = {
        "max": [0.13 + 0.001 * seed for seed in range(5)],
        "attention": [0.2 - 0.002 * seed for seed in range(5)],
        "mean": [1.9, 2.4, 1.7, 2.6, 2.0],
    }
    assert compare_pairs(alone(table), pooled)[0].distinguishable != pooled
