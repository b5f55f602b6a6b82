"""Tables of runs and pairs that are made by hand: rows, differences from the best, published values, LaTeX."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pointset import PointsetError
from pointset.comparison import Comparison
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Metric, Published, Row
from pointset.comparison.ranking import NOT_SIGNIFICANT, ModelRow, Pair, Ranking
from pointset.comparison.runs import FinishedRun, Run
from pointset.comparison.statistics import Interval
from pointset.comparison.tables import format_table, make_cells
from pointset.evaluation.costs import Cost
from pointset.tasks import MaxRegression
from pointset.tasks.classification import Classification

METRICS = Classification().task.metrics[:-1]
COST = Cost(multiply_adds=12_340_000, latency_ms=0.456)


def finished(model: str, points: int | None, seed: int, *result) -> Run:
    return Run(None, Entry("rff-max", {}, model), points, seed, Path(), result=FinishedRun(*result))


def run(model: str, accuracy: float, points: int = 24, seed: int = 0) -> Run:
    values = (accuracy, accuracy / 2, 1.5, 0.25, 0.125, 0.0625)
    metrics = {metric.name: value for metric, value in zip(METRICS, values, strict=True)}
    return finished(model, points, seed, metrics, 1234, 3.0 + seed, 2, 60)


def pair(first: str, second: str, difference: float, p: float | None, p_runs: float | None = None) -> Pair:
    interval = None if p is None else Interval(difference - 0.02, difference + 0.01)
    return Pair(first, second, difference, 0.1, interval, p, p_runs)


def ranking_of(runs: Sequence[Run], points: int | None, pairs: Sequence[Pair], metric: Metric) -> Ranking:
    """A ranking with these pairs; all others differ significantly."""
    models = {one.model: one.metrics[metric.name] for one in runs if one.points == points}
    known = {frozenset((one.first, one.second)) for one in pairs}
    both = [(a, b) for a, b in itertools.combinations(models, 2) if frozenset((a, b)) not in known]
    rest = [pair(a, b, models[a] - models[b], 0.001) for a, b in both]
    count, rows = Counter(one.model for one in runs if one.points == points), []
    for model, mean in models.items():
        interval = metric.inside(Interval(mean - 1, mean + 1)) if count[model] > 1 else None
        rows.append(ModelRow(model, count[model], False, mean, None, interval))
    return Ranking(tuple(sorted(rows, key=lambda row: -metric.merit(row.mean))), (*pairs, *rest), 10, metric=metric)


def rows_of(runs: Sequence[Run], pairs=None, costs=None, published=None) -> list[Row]:
    return comparison_of(runs, pairs, costs, published).rows


def comparison_of(runs: Sequence[Run], pairs=None, costs=None, published=None) -> Comparison:
    labels, points = dict.fromkeys(one.model for one in runs), dict.fromkeys(one.points for one in runs)
    models, seeds = [Entry("rff-max", {}, label) for label in labels], {one.seed: None for one in runs}
    task = replace(Classification(points=tuple(points)).task, metrics=METRICS)
    experiment = Experiment.of(task, models, seeds=tuple(seeds), published=published)
    rankings = {size: ranking_of(runs, size, (pairs or {}).get(size, ()), METRICS[0]) for size in points}
    return Comparison(experiment, runs, rankings, costs or {}, [], Path())


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
    assert [row.against_best for row in rows] == ["-30.0", "best", NOT_SIGNIFICANT, "best", "-30.0"]
    assert [row.best for row in rows] == [False, True, False, True, False]
    assert [row.best for row in rows_of([run("first", 0.5), run("second", 0.5)])] == [True, False]
    for p_runs, words in ((0.049, "-20.0, one seed"), (0.051, "one seed")):
        single = rows_of([run("a", 0.7), run("b", 0.5)], {24: [pair("a", "b", 0.2, None, p_runs)]})
        assert [row.against_best for row in single] == ["best", words]


@pytest.mark.parametrize(
    ("ours", "published", "expected"),
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
def test_the_published_value_is_compared_in_standard_errors_of_the_difference(ours, published, expected):
    runs = [run("a", accuracy, seed=seed) for seed, accuracy in enumerate(ours)]
    (row,) = rows_of(runs, published={"a": {24: Published(*published), 7: Published(0.1, 0.1, 1)}})
    found = row.metrics["accuracy"]
    assert (found.published, found.against_published(METRICS[0])) == (Published(*published), expected)


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
    brief = ["model", "accuracy %", "mean-class %", "ECE %", "parameters", "train s"]
    assert columns(rows_of([run("a", 0.5)]), brief=True) == brief
    balanced = run("a", 0.5)
    balanced.metrics["mean_class_accuracy"] = 0.5 + 1e-15
    assert columns(rows_of([balanced]), brief=True) == [name for name in brief if name != "mean-class %"]
    costly = columns(rows_of([run("a", 0.5)], costs={24: {"a": COST}}))
    assert costly == [*alone[:-1], "M mult-adds", "ms a set", "train s"]
    published = columns(rows_of([run("a", 0.5), run("a", 0.6, seed=1)], published={"a": {24: Published(0.5, 0.1, 5)}}))
    assert published == [*seeds[:3], "published %", "against published", *seeds[3:]]


class Errors(MaxRegression):
    """A task whose second metric has its own format."""

    metrics = (Metric("MAE", higher_is_better=False, digits=2), Metric("worst", higher_is_better=False))


def errors(label: str, *values: float) -> list[Run]:
    rows = [{"MAE": value, "worst": 2 * value} for value in values]
    return [finished(label, None, seed, row, 12, 1.0, 7, 60) for seed, row in enumerate(rows)]


def test_a_task_says_which_way_is_better_and_how_its_metrics_are_written():
    runs = errors("rFF + max", 0.5, 0.75) + errors("SAB + PMA", 2.5, 3.5)
    published = {"SAB + PMA": {"worst": Published(5.0, 0.25, 5)}}
    experiment = Experiment.of(Errors().task, seeds=(0, 1), published=published)
    pairs = [pair("rFF + max", "SAB + PMA", -2.375, 0.01)]
    ranking = ranking_of(runs, None, pairs, Errors.metrics[0])
    rows = Comparison(experiment, runs, {None: ranking}, {}, [], Path()).rows
    assert [(row.best, row.against_best) for row in rows] == [(True, "best"), (False, "+2.38")]
    assert rows[0].metrics["MAE"].interval.low < 0, "no share: it is not cut off at 0"
    both = ["MAE", "MAE 95 % interval", "against the best", "worst", "worst 95 % interval", "worst published"]
    assert columns(rows, Errors.metrics) == ["model", *both, "worst against published", "parameters", "train s"]
    assert "worst 95 % interval" not in columns(rows, Errors.metrics, brief=True)
    table = format_table(make_cells(rows, Errors.metrics))
    assert "3.00 ± 0.71" in table
    assert "5.0000 ± 0.2500" in table
    assert "agrees" in table


def test_latex_has_a_caption_and_aligned_numbers_and_the_figure_has_every_model():
    comparison = comparison_of([run("a_b", 0.5), run("a_b", 0.7, seed=1), run("[c", 0.9), run("[c", 0.8, seed=1)])
    text = comparison.to_latex(label="tab:parts")
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{table}")
    assert text.endswith("\\end{table}\n")
    assert "\\label{tab:parts}" in text
    assert not re.search(r"(?<!\\)[%&_#]", re.search(r"\\caption{(.*)}", text)[1])
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[5].startswith(r"\begin{tabular}{lrrl"), "text is left-aligned"
    assert lines[7].startswith(r"model & accuracy \% & 95 \% interval & against the best &")
    assert lines[9].startswith(r"a\_b & 60.0 $\pm$ 14.1 & 0.0 to 100.0 & $-$10.0 &")
    assert lines[10].startswith(r"{}[c & \textbf{85.0 $\pm$ 7.1} &"), "else [c is an option of the line before"
    for mistake in (lambda: comparison.plot("means.pdf"), lambda: comparison.table("csv")):
        with pytest.raises(PointsetError, match=r"savefig\(path\)|'csv': use one of latex, .* or read results.csv"):
            mistake()
    (axes,) = comparison.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["[c", "a_b"]
