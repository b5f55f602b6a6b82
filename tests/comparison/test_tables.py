"""From runs and pairs, made by hand, to rows, verdicts and tables."""

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Metric, Published, Row
from pointset.comparison.pairs import NOT_DISTINGUISHABLE, Pair
from pointset.comparison.results import Comparison
from pointset.comparison.runs import FinishedRun, Run
from pointset.comparison.statistics import Interval
from pointset.comparison.tables import as_latex, format_table, in_table, make_cells
from pointset.comparison.verdict import ModelRow, Verdict
from pointset.evaluation.costs import Cost
from pointset.tasks.classification import Classification
from pointset.tasks.max_regression import MaxRegression

METRICS = Classification().facts.metrics[:-1]


class Unsaved(Classification):
    """Runs without predictions in their folders."""

    def metrics(self, folder: Path) -> Sequence[Metric]:
        return METRICS


COST = Cost(multiply_adds=12_340_000, latency_ms=0.456)


def finished(model: str, points: int | None, seed: int, *result) -> Run:
    return Run(None, Entry("rff-max", label=model), points, seed, Path(), "rff-max", result=FinishedRun(*result))


def run(model: str, accuracy: float, points: int = 24, seed: int = 0) -> Run:
    values = (accuracy, accuracy / 2, 1.5, 0.25, 0.125, 0.0625)
    metrics = {metric.name: value for metric, value in zip(METRICS, values, strict=True)}
    return finished(model, points, seed, metrics, 1234, 3.0 + seed, 2, 60)


def pair(first: str, second: str, difference: float, p: float | None, p_runs: float | None = None) -> Pair:
    interval = None if p is None else Interval(difference - 0.02, difference + 0.01)
    return Pair(first, second, difference, 0.1, interval, p, p_runs, None)


def verdict_of(runs: Sequence[Run], points: int | None, pairs: Sequence[Pair], metric: Metric) -> Verdict:
    """A verdict with these pairs; all others are distinguishable."""
    models = {one.model: one.metrics[metric.name] for one in runs if one.points == points}
    known = {frozenset((one.first, one.second)) for one in pairs}
    both = [(a, b) for a, b in itertools.combinations(models, 2) if frozenset((a, b)) not in known]
    rest = [pair(a, b, models[a] - models[b], 0.001) for a, b in both]
    count, rows = Counter(one.model for one in runs if one.points == points), []
    for model, mean in models.items():
        interval = metric.inside(Interval(mean - 1, mean + 1)) if count[model] > 1 else None
        rows.append(ModelRow(model, count[model], False, mean, None, interval))
    return Verdict(tuple(sorted(rows, key=lambda row: -metric.merit(row.mean))), (*pairs, *rest), 10, metric=metric)


def rows_of(runs: Sequence[Run], pairs=None, costs=None, published=None) -> list[Row]:
    labels, points = dict.fromkeys(one.model for one in runs), dict.fromkeys(one.points for one in runs)
    models, seeds = tuple(Entry("rff-max", label=label) for label in labels), {one.seed: None for one in runs}
    task = Unsaved(points=tuple(points))
    experiment = Experiment(task=task, models=models, seeds=tuple(seeds), published=published or {})
    verdicts = {size: verdict_of(runs, size, (pairs or {}).get(size, ()), METRICS[0]) for size in points}
    return Comparison(experiment, runs, verdicts, costs or {}, [], Path()).rows


def test_rows_are_means_with_sample_deviations():
    runs = [run("a", 0.5, seed=0), run("a", 0.6, seed=1), run("a", 0.7, seed=2), run("b", 0.9)]
    first, second = rows_of(runs)
    accuracy, mean_class = first.metrics["accuracy"], first.metrics["mean_class_accuracy"]
    assert accuracy.mean == pytest.approx(0.6)
    assert accuracy.deviation == pytest.approx(0.1)  # divided by 2, not by 3
    assert (mean_class.mean, mean_class.deviation) == (pytest.approx(0.3), pytest.approx(0.05))
    assert mean_class.interval.high == pytest.approx(0.3 + 4.302653 * 0.05 / math.sqrt(3))
    assert (first.seeds, second.seeds) == (3, 1)
    assert second.metrics["accuracy"].deviation is None
    assert second.metrics["mean_class_accuracy"].interval is None
    assert columns([first, second])[:2] == ["model", "seeds"], "rows over different numbers of seeds say so"
    assert "±" not in format_table(make_cells([first, second], METRICS)).splitlines()[-1]


def test_differences_from_the_best():
    """For each size separately; pairs may be given in either order."""
    runs = [run("a", 0.5), run("b", 0.8), run("c", 0.79), run("a", 0.9, 7), run("b", 0.6, 7)]
    pairs = {24: [pair("a", "b", -0.3, 0.01), pair("b", "c", 0.01, 0.05)], 7: [pair("a", "b", 0.3, 0.049)]}
    rows = rows_of(runs, pairs)
    assert [row.against_best for row in rows] == ["-30.0", "best", NOT_DISTINGUISHABLE, "best", "-30.0"]
    assert [row.best for row in rows] == [False, True, False, True, False]
    assert [row.best for row in rows_of([run("first", 0.5), run("second", 0.5)])] == [True, False]


@pytest.mark.parametrize(("p_runs", "words"), [(0.049, "-20.0, one seed"), (0.051, "one seed")])
def test_one_seed_is_named(p_runs, words):
    rows = rows_of([run("a", 0.7), run("b", 0.5)], {24: [pair("a", "b", 0.2, None, p_runs)]})
    assert [row.against_best for row in rows] == ["best", words]


@pytest.mark.parametrize(
    ("ours", "published", "verdict"),
    [
        # .02^2 / 3 and .02^2 / 6 add up to .01414^2; twice that is .0283.
        ((0.78, 0.80, 0.82), (0.772, 0.02, 6), "agrees"),
        ((0.78, 0.80, 0.82), (0.771, 0.02, 6), "above by 2.9 (2.1 errors)"),
        ((0.78, 0.80, 0.82), (0.828, 0.02, 6), "agrees"),
        ((0.78, 0.80, 0.82), (0.900, 0.02, 6), "below by 10.0 (7.1 errors)"),
        ((0.80,), (0.77, 0.01, 5), "above by 3.0 (no spread)"),  # one seed has no error to measure with
        ((0.80, 0.80), (0.80, 0.0, 1), "agrees"),
        ((0.80, 0.80), (0.75, 0.0, 1), "above by 5.0 (no spread)"),
    ],
)
def test_a_verdict_measures_in_standard_errors_of_the_difference(ours, published, verdict):
    runs = [run("a", accuracy, seed=seed) for seed, accuracy in enumerate(ours)]
    (row,) = rows_of(runs, published={"a": {24: Published(*published), 7: Published(0.1, 0.1, 1)}})
    found = row.metrics["accuracy"]
    assert (found.published, found.verdict(METRICS[0])) == (Published(*published), verdict)


def columns(rows: Sequence[Row], metrics: Sequence[Metric] = METRICS, **options) -> list[str]:
    return [*make_cells(rows, metrics, **options)[0]]


def test_the_table_leaves_out_what_says_nothing():
    alone = ["model", "accuracy %", "mean-class %", "log loss", "ECE %", "parameters", "train s"]
    assert columns(rows_of([run("a", 0.5)])) == alone
    assert columns(rows_of([run("a", 0.5, 24), run("a", 0.5, 7)])) == ["model", "points", *alone[1:]]
    seeds = columns(rows_of([run("a", 0.5), run("a", 0.6, seed=1)]))
    assert seeds == ["model", "accuracy %", "95 % interval", *alone[2:]]
    models = columns(rows_of([run("a", 0.5), run("b", 0.5)], {24: [pair("a", "b", 0.0, 1.0)]}))
    assert models == ["model", "accuracy %", "against the best", *alone[2:]]
    assert columns(rows_of([run("a", 0.5)]), brief=True) == ["model", "accuracy %", "ECE %", "parameters", "train s"]
    costly = columns(rows_of([run("a", 0.5)], costs={24: {"a": COST}}))
    assert costly == [*alone[:-1], "M mult-adds", "ms a set", "train s"]
    published = columns(rows_of([run("a", 0.5), run("a", 0.6, seed=1)], published={"a": {24: Published(0.5, 0.1, 5)}}))
    assert published == [*seeds[:3], "published %", "verdict", *seeds[3:]]


def test_the_table_as_it_is_printed():
    runs = [run("a", 0.5, 1000), run("a", 0.6, 1000, seed=1)]
    runs += [run("b", 0.75, 1000), run("b", 0.85, 1000, seed=1)]
    pairs, published = {1000: [pair("a", "b", -0.25, 0.01)]}, {"a": {1000: Published(0.7951, 0.0166, 5)}}
    rows = rows_of(runs, pairs, {1000: {"a": COST, "b": Cost(5_000, 12.0)}}, published)
    table = format_table(make_cells(rows, METRICS), "github")
    _, _, first, second = (re.sub(" *[|] *", "|", line) for line in table.splitlines())
    assert first.startswith("|a|55.0 ± 7.1|0.0 to 100.0|-25.0|79.5 ± 1.7|below by 24.5 (4.8 errors)|27.5 ± 3.5|1.500|")
    assert first.endswith("|12.5|1,234|12.3|0.5|4|")
    assert second == "|b|80.0 ± 7.1|0.0 to 100.0|best|||40.0 ± 3.5|1.500|12.5|1,234|0.005|12.0|4|"


@dataclasses.dataclass(frozen=True)
class Errors(MaxRegression):
    """A task whose second metric has its own format."""

    measured = (Metric("MAE", higher_is_better=False, digits=2), Metric("worst", higher_is_better=False))


def errors(label: str, *values: float) -> list[Run]:
    rows = [{"MAE": value, "worst": 2 * value} for value in values]
    return [finished(label, None, seed, row, 12, 1.0, 7, 60) for seed, row in enumerate(rows)]


def test_a_task_says_which_way_is_better_and_how_its_metrics_are_written():
    runs = errors("rFF + max", 0.5, 0.75) + errors("SAB + PMA", 2.5, 3.5)
    published = {"SAB + PMA": {"worst": Published(5.0, 0.25, 5)}}
    experiment = Experiment(task=Errors(), seeds=(0, 1), published=published)
    pairs = [pair("rFF + max", "SAB + PMA", -2.375, 0.01)]
    verdict = verdict_of(runs, None, pairs, Errors.measured[0])
    rows = Comparison(experiment, runs, {None: verdict}, {}, [], Path()).rows
    assert [(row.best, row.against_best) for row in rows] == [(True, "best"), (False, "+2.38")]
    assert rows[0].metrics["MAE"].interval.low < 0, "no share: it is not cut off at 0"
    both = ["MAE", "MAE 95 % interval", "against the best", "worst", "worst 95 % interval", "worst published"]
    assert columns(rows, Errors.measured) == ["model", *both, "worst verdict", "parameters", "train s"]
    assert "worst 95 % interval" not in columns(rows, Errors.measured, brief=True)
    table = format_table(make_cells(rows, Errors.measured))
    assert "3.00 ± 0.71" in table
    assert "5.0000 ± 0.2500" in table
    assert "agrees" in table


@pytest.mark.parametrize(
    ("text", "shown"),
    [("night_stand", "night_stand"), ("a|<b>`x`</b>", r"a\|\<b\>\`x\`\</b\>"), ("two\nlines\x1b", r"two\\nlines\\x1b")],
)
def test_markup_is_escaped_in_markdown_alone(text: str, shown: str) -> None:
    assert in_table(text, "github") == shown
    assert "\\|" not in in_table(text, "simple")


def test_latex_aligns_numbers_and_escapes_names() -> None:
    table = as_latex([{"model": "a_b 50 %", "accuracy %": "90.1 ± 0.2", "against the best": "-1.5"}])
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines[0] == r"\begin{tabular}{lrl}"
    assert lines[2] == r"model & accuracy \% & against the best \\"
    assert lines[4] == r"a\_b 50 \% & 90.1 $\pm$ 0.2 & $-$1.5 \\"
