"""Rankings of tables of predictions; the test of differences with its level, and known values."""

import math
import re
from dataclasses import replace

import levels
import numpy as np
import pandas
import pytest
from command_line import succeed
from scipy import stats

import pointset
from pointset import PointsetError, rank
from pointset.comparison.ranking import compare_models
from pointset.comparison.statistics import (
    Spread,
    critical_t,
    crossed_estimate,
    estimate_difference,
    estimate_mean,
    holm,
    mcnemar,
    mean_interval,
    measure_spreads,
)

ITEMS, LABELS = 200, ("cup", "lamp", "chair")


def predictions(accuracies, seeds=3, items=ITEMS, seed=0):
    """A table of predictions; a model is right on its share of the items, and each run differs on a few."""
    rng = np.random.default_rng(seed)
    label = np.resize(LABELS, items)
    rows = []
    for model, accuracy in accuracies.items():
        hard = rng.permutation(items) >= accuracy * items
        for run in range(seeds):
            wrong = hard ^ (rng.random(items) < 0.03)
            guess = np.where(wrong, np.roll(label, 1), label)
            rows.append(pandas.DataFrame({"item": np.arange(items), "label": label, "prediction": guess}))
            rows[-1] = rows[-1].assign(model=model, seed=run)
    return pandas.concat(rows, ignore_index=True)


@pytest.fixture
def frame():
    return predictions({"network": 0.9, "svm": 0.89, "tree": 0.6})


def test_a_ranking_names_the_best_and_the_differences_that_are_not_significant(frame):
    ranking = rank(frame)
    shares = (frame.label == frame.prediction).groupby(frame.model).mean().sort_values(ascending=False)
    assert {row.model: row.mean for row in ranking.rows} == pytest.approx(shares.to_dict())
    assert [row.model for row in ranking.rows] == [*shares.index]
    assert ranking.pair("tree", ranking.best).significant
    assert not ranking.pair("network", "svm").significant
    second = ranking.rows[1].model
    assert ranking.summary().endswith(f"The difference from {second} is not significant.")
    assert f"percentage points ({ITEMS} items, 3 seeds)" in str(ranking)
    assert "level of 0.05" in str(ranking)


def test_rows_may_be_in_any_order_in_files_and_under_other_names(frame, tmp_path):
    expected, paths = rank(frame).as_dict(), []
    for (model, seed), part in frame.groupby(["model", "seed"]):
        paths.append(tmp_path / f"{model}-seed{seed}.csv")
        part[["item", "label", "prediction"]].to_csv(paths[-1], index=False)
    assert rank(frame.sample(frac=1, random_state=0)).as_dict() == expected
    assert pointset.rank(paths).as_dict() == expected
    other = {"item": "uid", "label": "truth"}
    assert rank(frame.rename(columns=other), other).as_dict() == expected


@pytest.mark.parametrize(
    ("labels", "guesses"),
    [
        ([3, 5], ["3", "4"]),
        ([3.0, 5.0], ["3", "?"]),
        ([3, 0.5], [3, 1.0]),
        ([True, False], [1, 1]),
        (["1", "2"], [1, -0.0]),
    ],
)
def test_numbers_are_the_same_classes_however_they_are_written(labels, guesses, tmp_path):
    """A table with a gap has floats, one with an abstention texts: 0 % were right, or an item had two equal labels."""
    table = pandas.DataFrame({"item": [0, 1], "label": labels, "prediction": guesses})
    assert rank(table).rows[0].mean == 0.5
    table.to_csv(tmp_path / "odd.csv", index=False)
    table.assign(item=[0.0, 1.0], prediction=7).to_csv(tmp_path / "seven.csv", index=False)
    assert [row.mean for row in rank([tmp_path / "odd.csv", tmp_path / "seven.csv"]).rows] == [0.5, 0]


def test_the_predictions_of_classify_are_read(tmp_path):
    table = "name,true_class,class_1,probability_1\na,cup,cup,0.9\nb,cup,lamp,0.8\n"
    (tmp_path / "other-seed3.csv").write_text(table)
    alone = rank(tmp_path / "other-seed3.csv")
    assert [(row.model, row.mean) for row in alone.rows] == [("other", 0.5)]
    assert "On 2 test items, other has the accuracy, 50.0 %." in str(alone)
    assert not re.search("best|variance", str(alone) + alone.as_latex() + alone.as_markdown()), "nothing was compared"
    (tmp_path / "other-seed3.csv").write_text(table + "c,,cup,0.9\n")
    with pytest.warns(UserWarning, match="other-seed3.csv: 1 row without a label left out"):
        assert rank(tmp_path / "other-seed3.csv").rows[0].mean == 0.5


def test_models_with_one_seed_are_not_tested_unless_they_are_named_as_deterministic(frame):
    ranking = rank(frame[frame.seed == 0])
    assert ranking.pair("network", "tree").runs_differ
    assert not ranking.pair("network", "tree").significant
    assert "a single run are not tested (all): another seed can give another result. McNemar" in str(ranking)
    assert ranking.detectable() == ""
    once = frame[(frame.model != "svm") | (frame.seed == 0)]
    assert rank(once).pair("svm", "network").p is None
    assert "a single run are not tested (svm): another seed can give another result. Give at least 2" in str(rank(once))
    named = rank(once, deterministic="svm")
    assert named.pair("svm", "tree").significant
    assert {row["model"]: row["seeds"] for row in named.table()} == {"svm": "none", "network": "3", "tree": "3"}


def test_few_items_and_seeds_tell_no_difference_and_no_text_speaks_of_more_than_100_points():
    """From four items a minimum detectable difference of 129.9 points was given, and intervals of 500 points."""
    few = predictions({"network": 0.5, "tree": 0.25}, seeds=2, items=4)
    few.loc[few.seed == 1, "prediction"] = few["label"]
    ranking = rank(few)
    assert min(pair.detectable for pair in ranking.pairs) > 1
    assert "100.0 percentage points (4 items, 2 seeds)" in ranking.detectable()
    assert not [word for word in re.findall(r"[\d.]+", str(ranking)) if float(word.strip(".") or 0) > 100]
    assert ranking.pairs[0].interval.high > 1, "the numbers themselves are kept"


def test_models_that_agree_on_every_item_differ_from_two_items_up(frame):
    """Their variance is that of a single item that counts against the difference."""
    svm = frame[(frame.model == "svm") & (frame.seed == 0)]
    ranking = rank(pandas.concat([svm, svm.assign(model="copy")]), deterministic=["svm", "copy"])
    assert ranking.pair("svm", "copy").difference == 0
    assert ranking.pair("svm", "copy").detectable == pytest.approx(stats.t.ppf(0.975, ITEMS - 1) / ITEMS)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: pandas.concat([t, t.head(1)]), ("'0'", "2 times", "network, seed 0")),
        (lambda t: t.drop(index=5), ("network, seed 0", "lacks 1 of 200 items", "'5'", "seed 1 has")),
        (lambda t: t.assign(item=t.item + 1000 * t.seed), ("seed 0 lacks 400 of 600", "'1000'", "same names")),
        (lambda t: t[t.item == 0], ("one item", "at least 2")),
        (lambda t: t.assign(seed=t.seed + 0.5), ("row 1", "'0.5'", "whole numbers")),
        (lambda t: t.assign(seed=t.seed.where(t.seed > 0)), ("row 1", "has no seed")),
        (lambda t: t.assign(seed=np.inf), ("row 1", "'inf'", "whole numbers")),
        (lambda t: t.assign(label=np.where(t.index == 599, 3, 1), prediction=1), ("label '1' and", "seed 2, '3'")),
        (lambda t: t.assign(label=np.where(t.index == 599, "vase", t.label)), ("'199'", "'vase'", "network, seed 2")),
        (lambda t: t.assign(data=np.where(t.item < 50, "small", "large")), ("2 datasets (small, large)", "at a time")),
        (lambda t: t.head(0), ("no rows",)),
        (lambda t: t.drop(columns="item"), ("no column item", "item=COLUMN")),
        (lambda t: t.drop(columns="prediction"), ("no column prediction", "prediction=COLUMN")),
        (lambda t: t.assign(prediction=t.prediction.where(t.index != 3)), ("row 4", "no prediction")),
    ],
)
def test_bad_tables_are_refused_in_one_sentence(frame, change, words):
    with pytest.raises(PointsetError) as error:
        rank(change(frame[frame.model == "network"].reset_index(drop=True)))
    assert all(word in str(error.value) for word in words)


def test_the_command_prints_and_writes(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "all.csv", index=False)
    outputs = [tmp_path / name for name in ("v.md", "v.tex", "v.svg")]
    command = ["rank", tmp_path / "all.csv", "-o", *outputs]
    assert "significant" in succeed(capsys, *command)
    markdown, latex, matrix = (path.read_text() for path in outputs)
    assert markdown.count("| tree") == 1
    assert latex.count(r"\toprule") == 2
    assert "<svg" in matrix


def test_names_of_models_and_classes_are_text(frame, tmp_path, capsys):
    odd = "a_b|<b>x</b>\n`\x1b[31m"
    frame = frame.replace({"model": {"svm": odd}}).replace({"label": {"cup": odd}, "prediction": {"cup": odd}})
    ranking = rank(frame)
    for text in (str(ranking), ranking.as_latex(), ranking.as_markdown()):
        assert "\x1b" not in text
        assert "<b>x</b>\n" not in text
    assert "a_b|<b>x</b>" in str(ranking)
    assert r"a_b\|\<b\>x\</b\>\\n\`" in ranking.as_markdown()


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


def test_known_values():
    interval = mean_interval([0.8, 0.9, 1.0])
    assert interval.low == pytest.approx(0.9 - 4.302653 * 0.1 / math.sqrt(3))  # t table: 0.975 at 2 degrees
    assert mean_interval([0.8]) is None
    assert mean_interval([0.8, 1.0]).high == pytest.approx(0.9 + 12.706205 * 0.1)  # 0.975 at 1 degree
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []
    first = np.array([True] * 5 + [False] * 2 + [True] * 40 + [False] * 9)
    second = np.array([False] * 5 + [True] * 2 + [True] * 40 + [False] * 9)
    assert mcnemar(first, second) == pytest.approx(2 * sum(math.comb(7, k) for k in range(3)) / 2**7)
    assert math.sqrt(2) * critical_t(10, 0.05, 3) == pytest.approx(3.877, abs=0.001)  # table of the studentised range
    assert math.sqrt(2) * critical_t(15, 0.05, 3) == pytest.approx(3.673, rel=0.005), "interpolated"


def test_components_are_those_of_the_analysis_of_variance_by_hand():
    scores = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # 2 seeds, 3 items
    spread = Spread.of(scores)
    grand, runs, items = 4 / 6, 2 / 3, [1.0, 0.5, 0.5]
    residual = np.square(scores - runs - items + grand).sum() / ((2 - 1) * (3 - 1))
    assert spread.over_seeds == 0.0
    assert spread.item_means.tolist() == items
    assert spread.residual == pytest.approx(residual) == pytest.approx(0.5)
    other = Spread.of(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    assert other.fixed, "all runs have the same answers"


def test_without_a_seed_it_is_the_paired_test_over_items():
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(1, 40)) for _ in range(2))
    over_items = estimate_difference(Spread.of(a, fixed=True), Spread.of(np.repeat(b, 3, axis=0)))
    same = stats.ttest_rel(a[0], b[0])
    assert over_items.p_value == pytest.approx(same.pvalue)
    low, high = same.confidence_interval()
    assert (over_items.interval().low, over_items.interval().high) == pytest.approx((low, high))


@pytest.mark.parametrize("items", [1, 30])
def test_without_variation_over_items_it_is_welchs_test_with_the_fewest_degrees_of_freedom(items):
    rng = np.random.default_rng(0)
    a, b = (np.repeat(rng.normal(size=(5, 1)) * scale, items, axis=1) for scale in (1.0, 4.0))
    over_seeds = estimate_difference(Spread.of(a), Spread.of(b))
    welch = stats.ttest_ind(a[:, 0], b[:, 0], equal_var=False)
    assert over_seeds.value / over_seeds.error == pytest.approx(welch.statistic)
    assert over_seeds.freedom == pytest.approx(4)
    assert welch.df > 4


def test_the_interval_of_a_mean_agrees_with_a_mixed_model():
    """Restricted maximum likelihood for y = mean + seed + item + error gives the same standard error."""
    from statsmodels.regression.mixed_linear_model import MixedLM

    rng, seeds, items = np.random.default_rng(0), 5, 12
    scores = rng.normal(size=(seeds, 1)) + rng.normal(size=items) + 0.5 * rng.normal(size=(seeds, items))
    places = {"seed": np.repeat(range(seeds), items), "item": np.tile(range(items), seeds)}
    frame = pandas.DataFrame({"y": scores.ravel(), "all": 1, **places})
    formulas = {"seed": "0 + C(seed)", "item": "0 + C(item)"}
    model = MixedLM.from_formula("y ~ 1", groups="all", re_formula="0", vc_formula=formulas, data=frame)
    fitted = model.fit(method="lbfgs")
    assert estimate_mean(Spread.of(scores)).error == pytest.approx(fitted.bse["Intercept"], rel=0.02)


def test_a_variance_over_seeds_is_at_least_half_of_the_median_where_there_are_items():
    rng = np.random.default_rng(0)
    scores = {f"m{place}": rng.normal(0, 1 + place, (3, 1)) + rng.normal(size=(3, 50)) for place in range(3)}
    scores["fixed"] = np.repeat(rng.normal(size=(1, 50)), 3, axis=0)
    own = {name: Spread.of(one).over_seeds for name, one in scores.items()}
    least = np.median([own[f"m{place}"] for place in range(3)]) / 2
    found = {name: one.over_seeds for name, one in measure_spreads(scores).items()}
    assert found == {name: 0.0 if name == "fixed" else max(value, least) for name, value in own.items()}
    alone = {name: one.mean(axis=1, keepdims=True) for name, one in scores.items()}
    assert measure_spreads(alone)["m0"].over_seeds == own["m0"]


def test_p_values_and_intervals_of_all_pairs_hold_together(pair):
    scores = pair | {"m2": ~pair["m0"]}
    for found in compare_models(scores):
        spreads = measure_spreads(scores)
        one = estimate_difference(spreads[found.first], spreads[found.second])
        assert found.p == pytest.approx(stats.studentized_range.sf(2**0.5 * one.t, 3, one.freedom), abs=1e-9)
        assert found.significant == (found.interval.low > 0 or found.interval.high < 0) == (found.p < 0.05)


def test_single_runs_are_compared_by_mcnemars_test_and_models_never(pair):
    one = {model: own[:1] for model, own in pair.items()}
    (found,) = compare_models(one)
    assert found.p_runs == mcnemar(*(own[0] for own in one.values()))
    assert (found.p, found.interval, found.detectable) == (None, None, None)
    assert not found.significant
    (known,) = compare_models(one, fixed=[*one])
    assert known.p is not None
    single, several = compare_models(one | {"m2": pair["m0"]}, fixed=["m0"])[:2]
    assert (single.p, single.p_runs is None) == (None, False)
    assert several.p is not None


def test_models_are_compared_that_are_equal_or_have_different_numbers_of_runs(pair):
    equal, fewer, _ = compare_models({"a": pair["m0"], "b": pair["m0"], "c": pair["m1"][:2]})
    assert (equal.difference, equal.p) == (0.0, 1.0)
    assert fewer.interval.low < fewer.difference < fewer.interval.high
    turned = fewer.reversed()
    assert (turned.first, turned.difference, turned.interval.high) == ("c", -fewer.difference, -fewer.interval.low)


@pytest.mark.parametrize("items", [2, 5, 6, 12])
def test_few_items_tell_as_little_as_a_sign_test(items):
    """All items are right for one model and wrong for the other: the exact p-value is 2^(1 - items)."""
    right = np.ones((3, items), bool)
    (pair,) = compare_models({"a": right, "b": ~right})
    assert pair.significant == (2.0 ** (1 - items) < 0.05)


@pytest.mark.parametrize("name", ["5 models, 3 seeds", "5 models, 3 seeds, one with 3x deviation"])
def test_equally_good_models_differ_in_at_most_the_level(name):
    """The share of tables with any error, by the rule of the next test, which computes all tables at once."""
    tables, case = 1000, levels.CASES[name]
    case = replace(case, items=200, deviations=case.deviations[:3])
    parts = levels.Parts.of(levels.simulate(np.random.default_rng(1), case, tables, gap=0.0))
    share = levels.RULES[levels.CHOSEN](parts).any(axis=1).mean()
    assert 0.005 < share <= 0.05 + 2 * (0.05 * 0.95 / tables) ** 0.5


@pytest.mark.parametrize(
    "case",
    [
        levels.Case(seeds=5, items=500, deviations=(0.3, 0.1, 0.1)),
        levels.Case(seeds=2, items=500, deviations=(0.0, 0.0, 0.3), gap=1.5, fixed=2),  # one model varies
    ],
)
def test_the_rule_whose_level_was_simulated_is_that_of_the_package(case):
    parts = levels.Parts.of(levels.simulate(np.random.default_rng(0), case, 20, case.gap))
    there = [compare_models({str(model): runs > 0 for model, runs in enumerate(table)}) for table in parts.right]
    found = np.array([[pair.significant for pair in pairs] for pairs in there])
    assert 0.1 < found.mean() < 0.9
    np.testing.assert_array_equal(levels.RULES[levels.CHOSEN](parts), found)


def test_the_minimum_detectable_difference_is_where_the_test_begins_to_reject():
    rng = np.random.default_rng(5)
    scores = {f"m{model}": rng.normal(size=(3, 1)) * 0.1 + rng.normal(size=(3, 400)) for model in range(2)}
    (pair,) = compare_models(scores)
    spreads = [*measure_spreads(scores).values()]
    apart = spreads[0].item_means - spreads[1].item_means
    at = [crossed_estimate(spreads, apart - apart.mean() + pair.detectable * share).p_value for share in (0.99, 1.01)]
    assert at[0] > 0.05 > at[1]
