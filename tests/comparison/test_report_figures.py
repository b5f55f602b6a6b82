"""The figures of a report: curves, points, fronts, colours."""

from dataclasses import replace

import numpy as np
import pytest
from reports import ODD

from pointset.comparison.metric import Summary
from pointset.comparison.report import charts
from pointset.evaluation import calibration
from pointset.tasks.classification import report as classifiers
from pointset.tasks.classification.predictions import load_predictions

pytestmark = pytest.mark.slow


def axes_of(figure) -> list:
    return [axes for axes in figure.axes if axes.axison]


def test_curves_and_points_are_at_their_values(reported, results):
    training, validation = axes_of(classifiers.curves(results))
    for axes, name in ((training, "accuracy"), (validation, "validation_accuracy")):
        for line, model in zip(axes.lines, results, strict=True):
            assert list(line.get_xdata()) == [1, 2, 3]
            assert list(line.get_ydata()) == pytest.approx(100 * np.mean(results.curves(model, name), axis=0))
    assert (training.get_ylabel(), validation.get_ylabel()) == ("training accuracy %", "validation accuracy %")
    assert [tick for tick in training.get_xticks() if 1 <= tick <= 3] == [1, 2, 3], "whole epochs"

    costs, seconds = axes_of(charts.pareto(results))
    rows = results.rows.values()
    for axes, values in (
        (costs, [row.cost.multiply_adds / 1e6 for row in rows]),
        (seconds, [row.seconds for row in rows]),
    ):
        found = [bar.lines[0].get_xydata()[0].tolist() for bar in axes.containers]
        assert found == [
            pytest.approx([x, 100 * row.metrics["accuracy"].mean]) for x, row in zip(values, rows, strict=True)
        ]

    diagram = axes_of(classifiers.reliability(results))[1]
    run = load_predictions(results.first(ODD))
    kept = calibration.reliability(run.logits, run.labels, "mass")
    assert diagram.collections[0].get_offsets().data.tolist() == pytest.approx(
        np.stack([kept.confidence, kept.accuracy], axis=1)
    )
    assert f"ECE {100 * kept.error:.1f} %" in diagram.get_title()


def test_the_frontier_in_a_report_has_the_models_that_no_other_dominates(results):
    """A more expensive model is on the frontier if it is more accurate, else not."""
    names = ("a", "b", "c", "d")
    marks = [(100, 0.5), (200, 0.4), (300, 0.9), (400, 0.9)]
    base = results.rows["rff-max"]
    rows = {
        name: replace(
            base,
            model=name,
            metrics={"accuracy": Summary(height, None, None, 1, None)},
            seconds=cost,
            cost=replace(base.cost, multiply_adds=cost),
        )
        for name, (cost, height) in zip(names, marks, strict=True)
    }
    results = replace(results, parts=dict.fromkeys(names, ("rff", "max")), rows=rows, chance={})
    for axes in axes_of(charts.pareto(results)):
        (front,) = [line for line in axes.lines if line.get_drawstyle().startswith("steps")]
        assert sorted(set(front.get_ydata())) == pytest.approx([50.0, 90.0])
        assert len(set(front.get_xdata())) == 2


def test_many_rows_share_colours_by_encoder_and_markers_by_pooling(results):
    base, poolings = results.rows["rff-max"], ["max", "mean", "sum", "pma", "pma2", "gem"]
    names = [f"{encoder}-{pooling}" for encoder in ("rff", "isab4") for pooling in poolings]
    rows = {
        name: replace(base, model=name, cost=replace(base.cost, multiply_adds=10**6 * (i + 1)), seconds=60.0 + i)
        for i, name in enumerate(names)
    }
    parts = {name: tuple(name.split("-")) for name in names}
    many = replace(results, parts=parts, rows=rows, chance={})
    figure = charts.pareto(many)
    styles = {name: charts.style(many, name) for name in names}
    assert len({(one["color"], one["marker"]) for one in styles.values()}) == len(names)
    assert styles["rff-gem"]["color"] == styles["rff-max"]["color"] != styles["isab4-max"]["color"]
    assert styles["rff-gem"]["marker"] == styles["isab4-gem"]["marker"]
    (shown,) = figure.legends
    named = [text.get_text() for text in shown.get_texts()]
    assert named == ["rff-", "isab4-", *(f"-{pooling}" for pooling in poolings)]
    for axes in axes_of(figure):
        drawn = {bar.lines[0].get_color() for bar in axes.containers}
        assert drawn == {styles["rff-max"]["color"], styles["isab4-max"]["color"]}
