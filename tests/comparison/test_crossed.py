import itertools

import numpy as np
import pytest
from scipy import stats

from pointset.comparison.crossed import Design, Spread, compare_crossed, crossed_interval, estimate_difference
from pointset.comparison.statistics import mcnemar


def draw(rng, models, seeds, items, deviations, gaps):
    """Right or wrong, bool [seeds, items] by model: latent effects of items, of model x item, of seeds, and noise."""
    item = rng.normal(0, 2, items)
    right = {}
    for model in range(models):
        own = 2 + gaps[model] + item + rng.normal(0, 1, items)
        shift = rng.normal(0, deviations[model], (seeds, 1))
        right[f"m{model}"] = own + shift + rng.normal(0, 1, (seeds, items)) > 0
    return right


@pytest.fixture
def pair():
    return draw(np.random.default_rng(3), 2, 4, 60, [0.3, 0.1], [0.5, 0.0])


def test_components_are_those_of_the_analysis_of_variance_by_hand():
    scores = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # 2 seeds, 3 items
    spread = Spread.of(scores)
    grand, runs, items = 4 / 6, 2 / 3, [1.0, 0.5, 0.5]
    residual = np.square(scores - runs - items + grand).sum() / ((2 - 1) * (3 - 1))
    assert spread.over_seeds == 0.0
    assert spread.item_means.tolist() == items
    assert spread.residual == pytest.approx(residual) == pytest.approx(0.5)
    other = Spread.of(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))  # without a residual
    apart = (np.array([3.0, 0.5, 0.5]) - [1.0, 0.0, 0.0]).var(ddof=1)
    tripled = Spread(2, np.array([3.0, 0.5, 0.5]), 0.0, residual)
    assert Design.of(tripled, other, 1).over_items == pytest.approx(apart - residual / 2)


def test_without_variation_over_seeds_it_is_the_paired_test_over_items():
    rng = np.random.default_rng(0)
    a, b = (np.repeat(rng.normal(size=(1, 40)), 3, axis=0) for _ in range(2))
    over_items = estimate_difference(Spread.of(a), Spread.of(b))
    same = stats.ttest_rel(a[0], b[0])
    assert over_items.p_value == pytest.approx(same.pvalue)
    low, high = same.confidence_interval()
    assert (over_items.interval.low, over_items.interval.high) == pytest.approx((low, high))


def test_without_variation_over_items_it_is_welchs_test_over_seeds_with_the_fewest_degrees_of_freedom():
    rng = np.random.default_rng(0)
    a, b = (np.repeat(rng.normal(size=(5, 1)) * scale, 30, axis=1) for scale in (1.0, 4.0))
    over_seeds = estimate_difference(Spread.of(a), Spread.of(b))
    welch = stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False)
    assert over_seeds.value / over_seeds.error == pytest.approx(welch.statistic)
    assert over_seeds.freedom == pytest.approx(4)
    assert welch.df > 4


def test_the_interval_of_a_mean_agrees_with_a_mixed_model():
    """Restricted maximum likelihood for y = mean + seed + item + error gives the same standard error."""
    import pandas
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng, seeds, items = np.random.default_rng(0), 5, 12
    scores = rng.normal(size=(seeds, 1)) + rng.normal(size=items) + 0.5 * rng.normal(size=(seeds, items))
    frame = pandas.DataFrame(
        {"y": scores.ravel(), "seed": np.repeat(range(seeds), items), "item": np.tile(range(items), seeds), "all": 1}
    )
    formulas = {"seed": "0 + C(seed)", "item": "0 + C(item)"}
    model = MixedLM.from_formula("y ~ 1", groups="all", re_formula="0", vc_formula=formulas, data=frame)
    fitted = model.fit(method="lbfgs")
    spread = Spread.of(scores)
    assert crossed_interval((spread,), spread.item_means).error == pytest.approx(fitted.bse["Intercept"], rel=0.02)


def test_single_runs_are_compared_by_mcnemars_test_and_models_never(pair):
    one = {model: own[:1] for model, own in pair.items()}
    (found,) = compare_crossed(one)
    assert found.p_runs == mcnemar(*(own[0] for own in one.values()))
    assert (found.p, found.interval, found.design) == (None, None, None)
    assert not found.distinguishable


def test_models_are_compared_that_are_equal_or_have_different_numbers_of_runs(pair):
    equal, fewer, _ = compare_crossed({"a": pair["m0"], "b": pair["m0"], "c": pair["m1"][:2]})
    assert (equal.difference, equal.p) == (0.0, 1.0)
    assert fewer.p is not None
    assert fewer.interval.low < fewer.difference < fewer.interval.high


@pytest.mark.slow
@pytest.mark.parametrize("deviations", [[0.1] * 4, [0.3, 0.1, 0.1, 0.1]], ids=["equal", "unequal"])
def test_equally_good_models_differ_in_at_most_the_level(deviations):
    rng, tables, pairs = np.random.default_rng(1), 400, [*itertools.combinations(range(4), 2)]

    def rejects():
        spreads = [Spread.of(own) for own in draw(rng, 4, 3, 300, deviations, [0] * 4).values()]
        smallest = min(estimate_difference(spreads[a], spreads[b]).p_value for a, b in pairs)
        return smallest * len(pairs) < 0.05  # the first step of Holm's correction

    share = sum(rejects() for _ in range(tables)) / tables
    assert share <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


def test_the_resolution_is_the_difference_at_which_the_test_begins_to_reject():
    rng = np.random.default_rng(5)
    scores = {f"m{model}": rng.normal(size=(3, 1)) * 0.1 + rng.normal(size=(3, 400)) for model in range(2)}
    spreads = [Spread.of(own) for own in scores.values()]
    design = Design.of(*spreads, tests=1)
    apart = spreads[0].item_means - spreads[1].item_means
    at = [crossed_interval(spreads, apart - apart.mean() + design.resolution() * share).p_value for share in (0.9, 1.1)]
    assert at[0] > 0.05 > at[1]


def test_more_seeds_and_items_resolve_smaller_differences(pair):
    design = compare_crossed(pair)[0].design
    assert design.resolution(seeds=8) < design.resolution() > design.resolution(items=600)
    seeds = design.seeds_for(design.resolution())
    assert seeds is None or seeds > design.seeds
    assert design.items_for(1e-9) is None
