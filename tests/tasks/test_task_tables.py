"""Figures over seeds: what is said of two rows, and of a row and what is published."""

from statistics import fmean

import pytest
from scipy.stats import ttest_rel

from pointset.comparison.experiment import Published
from pointset.tasks.experiment import TaskExperiment
from pointset.tasks.jobs import TaskCell
from pointset.tasks.pairs import compare_rows
from pointset.tasks.tables import make_rows, make_table
from pointset.tasks.task import Metric

MAX = {0: 0.131, 1: 0.138, 2: 0.136}
ATTENTION = {0: 0.210, 1: 0.221, 2: 0.199}
MEAN = {0: 2.0, 1: 2.4, 2: 1.9}
TABLE = {"rFF + max": MAX, "SAB + PMA": ATTENTION, "rFF + mean": MEAN}


def cells(table: dict[str, dict[int, float]]) -> list[TaskCell]:
    return [
        TaskCell(label, seed, {"MAE": figure}, parameters=1234, seconds=10.0 + seed, steps=7)
        for label, figures in table.items()
        for seed, figure in figures.items()
    ]


def test_pairs_are_paired_t_tests_with_holms_correction():
    pairs = compare_rows(TABLE)
    assert [(pair.first, pair.second) for pair in pairs] == [
        ("rFF + max", "SAB + PMA"),
        ("rFF + max", "rFF + mean"),
        ("SAB + PMA", "rFF + mean"),
    ]
    for pair in pairs:
        ours, theirs = list(TABLE[pair.first].values()), list(TABLE[pair.second].values())
        expected = ttest_rel(ours, theirs)
        assert pair.p == pytest.approx(expected.pvalue)
        assert pair.over_seeds is not None
        assert (pair.over_seeds.low, pair.over_seeds.high) == pytest.approx(tuple(expected.confidence_interval()))
    ordered = sorted(pairs, key=lambda pair: pair.p)
    holm = [min(1.0, factor * pair.p) for factor, pair in zip((3, 2, 1), ordered, strict=True)]
    assert [pair.p_holm for pair in ordered] == pytest.approx([max(holm[: place + 1]) for place in range(3)])
    turned = pairs[0].reversed()
    assert (turned.first, turned.difference) == ("SAB + PMA", -pairs[0].difference)
    assert turned.over_seeds.low == -pairs[0].over_seeds.high


def test_a_bad_row_does_not_hide_the_difference_of_two_good_ones():
    """Over the whole table the deviation would be that of the mean pooling, a fortyfold of the others'."""
    steady = {"rFF + max": {s: 0.13 + 0.001 * s for s in range(5)}, "SAB + PMA": {s: 0.2 - 0.002 * s for s in range(5)}}
    wild = {"rFF + mean": dict(enumerate((1.9, 2.4, 1.7, 2.6, 2.0)))}
    assert compare_rows({**steady, **wild})[0].distinguishable


@pytest.mark.parametrize("seeds", [(0,), ()])
def test_pairs_without_two_shared_seeds(seeds):
    other = dict.fromkeys((*seeds, 8), 0.5)
    pairs = compare_rows({"first": MAX, "second": other})
    assert [(pair.p, pair.p_holm, pair.over_seeds, pair.distinguishable) for pair in pairs] == [
        (None, None, None, False) for _ in seeds
    ]


def rows(table: dict[str, dict[int, float]], **published: Published):
    experiment = TaskExperiment(
        task="max-regression",
        seeds=(0, 1, 2),
        published={label: {"MAE": figure} for label, figure in published.items()},
    )
    found = cells(table)
    return make_rows(experiment, found, compare_rows(table)), experiment.problem.metrics


def test_rows_in_the_experiments_order_and_the_best_is_the_smallest_error():
    found, _ = rows(TABLE)
    assert [row.model for row in found] == ["rFF + mean", "rFF + max", "SAB + PMA"]
    assert [row.best for row in found] == [False, True, False]
    mean = found[0].figures["MAE"]
    assert (mean.mean, mean.deviation) == (pytest.approx(2.1), pytest.approx(0.264575, abs=1e-6))
    reach = 4.302653 * 0.264575 / 3**0.5  # Student's t, two degrees of freedom
    assert (mean.interval.low, mean.interval.high) == (pytest.approx(2.1 - reach), pytest.approx(2.1 + reach))
    assert (found[0].parameters, found[0].seconds) == (1234, 11.0)
    assert found[0].worse_than_best.difference == pytest.approx(2.1 - 0.135)
    assert [row.against_best(4) for row in found] == ["+1.9650", "best", "+0.0750"]


@pytest.mark.parametrize(
    ("published", "words"),
    [
        (Published(2.1, 0.1, 5), "agrees"),
        # error = sqrt(0.264575^2 / 3 + 0.1^2 / 5) = 0.159164
        (Published(2.1 + 2 * 0.159164 - 1e-4, 0.1, 5), "agrees"),
        (Published(2.1 + 2 * 0.159164 + 1e-4, 0.1, 5), "below by 0.3184 (2.0 errors)"),
        (Published(1.5, 0.1, 5), "above by 0.6000 (3.8 errors)"),
    ],
)
def test_a_verdict_is_two_standard_errors_of_the_difference(published, words):
    found, metrics = rows(TABLE, **{"rFF + mean": published})
    assert found[0].figures["MAE"].verdict(4) == words
    assert found[1].figures["MAE"].verdict(4) == ""
    shown = make_table(found, metrics)
    assert words in shown
    assert "MAE 95 % interval" in shown
    assert "MAE 95 % interval" not in make_table(found, metrics, brief=True)


def test_without_a_spread_the_verdict_is_a_distance():
    found, metrics = rows(TABLE, **{"rFF + mean": Published(found_mean() + 0.5, 0.0, 1)})
    assert found[0].figures["MAE"].verdict(4) == "below by 0.5000 (no spread)"
    assert f" {found_mean() + 0.5:.4f} |" in make_table(found, metrics, "github")
    one_seed = {label: {0: values[0]} for label, values in TABLE.items()}
    found, _ = rows(one_seed, **{"rFF + mean": Published(1.75, 0.5, 5)})
    assert found[0].figures["MAE"].verdict(2) == "above by 0.25 (no spread)"


def found_mean() -> float:
    return fmean(TABLE["rFF + mean"].values())


def test_a_table_of_one_seed_has_no_spread_and_no_test():
    found, metrics = rows(
        {label: {0: values[0]} for label, values in TABLE.items()}, **{"rFF + mean": Published(1.5, 1, 5)}
    )
    shown = make_table(found, metrics, "github")
    lines = shown.splitlines()
    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == [
        "model", "MAE", "MAE published", "MAE verdict", "against the best", "parameters", "train s",
    ]  # fmt: skip
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        "rFF + mean", "2.0000", "1.5000 ± 1.0000", "above by 0.5000 (no spread)", "one seed", "1,234", "10",
    ]  # fmt: skip
    assert found[1].against_best(4) == "best"


def test_rows_that_differ_in_seeds_say_so():
    found, metrics = rows({"rFF + max": MAX, "SAB + PMA": {1: 0.2}})
    assert [row.seeds for row in found] == [3, 1]
    assert "seeds" in make_table(found, metrics).splitlines()[0].split()


def test_digits_and_direction_are_the_metrics(monkeypatch):
    """Where higher is better, the best is the largest."""
    found, _ = rows(TABLE)
    assert "0.14 ± 0.00" in make_table(found, [Metric("MAE", higher_is_better=False, digits=2)])
    monkeypatch.setattr("pointset.tasks.max_regression.MaxRegression.metrics", (Metric("MAE", True),))
    turned, _ = rows(TABLE)
    assert [row.best for row in turned] == [True, False, False]
