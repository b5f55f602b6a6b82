"""Accuracy against cost: which models are on the Pareto frontier, and names without overlap."""

import itertools

import numpy as np
import pytest
from matplotlib.text import Annotation

from pointset.viz.charts import (
    Dot,
    draw_frontier,
    frontier,
    label_axes,
    make_panels,
    name_frontier,
    pair_legend,
    pair_styles,
    with_legend,
)


def dot(name: str, cost: float, mean: float, half: float = 0.0) -> Dot:
    return Dot(name, cost, mean, mean - half, mean + half, {"color": "k", "marker": "o"})


def names(dots: list[Dot], **options) -> list[str]:
    return [one.name for one in frontier(dots, **options)]


def test_the_frontier_has_the_dots_that_no_other_dominates():
    dots = [dot("dear and poor", 3, 1), dot("dear and good", 4, 9), dot("cheap", 1, 2), dot("same cost, worse", 1, 1)]
    assert names(dots) == ["cheap", "dear and good"]
    assert names([*dots, dot("as good for less", 2, 9)]) == ["cheap", "as good for less"]
    assert names([*dots, dot("its equal", 4, 9)]) == ["cheap", "dear and good", "its equal"]
    assert names([dot("low", 2, 1), dot("high", 2, 3), dot("cheaper", 1, 2)], higher_is_better=False) == [
        "cheaper",
        "low",
    ]


def drawn(dots: list[Dot]) -> tuple:
    figure, (axes,) = make_panels(1, 1, 3.2)
    draw_frontier(axes, dots)
    label_axes(axes, "cost", "accuracy %")
    with_legend(figure, {"all": dots[0].style})
    name_frontier(axes, dots)
    figure.draw_without_rendering()
    return axes, [child for child in axes.get_children() if isinstance(child, Annotation)]


@pytest.mark.parametrize("seed", range(3))
def test_names_of_the_frontier_stand_apart_and_inside(seed):
    rng = np.random.default_rng(seed)
    logs, means = 4 * rng.random(40), rng.random(40)
    dots = [dot(f"a model {i}", float(np.exp(x)), 80 + 3 * x + y, 0.3) for i, (x, y) in enumerate(np.c_[logs, means])]
    axes, labels = drawn(dots)
    assert [label.get_text() for label in labels] == names(dots)
    assert len(labels) > 3
    boxes = [super(Annotation, label).get_window_extent() for label in labels]
    inside = axes.get_window_extent()
    for one, other in itertools.combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert inside.containsx(box.x0)
        assert inside.containsx(box.x1)
        assert inside.containsy(box.y1)
        assert not any(box.contains(*axes.transData.transform((one.cost, one.mean))) for one in dots)


def test_a_name_is_written_as_it_is():
    _, (label,) = drawn([dot("50 $ and $ 60", 1, 1)])
    assert label.get_text() == r"50 \$ and \$ 60"


def test_many_rows_have_a_colour_for_each_encoder_and_a_marker_for_each_pooling():
    pairs = [(one, other) for one in ("rff", "isab16") for other in ("max", "mean", "pma")]
    styles = pair_styles(pairs)
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 6
    assert len({styles["rff", other]["color"] for other in ("max", "mean", "pma")}) == 1
    assert len({styles[one, "pma"]["marker"] for one in ("rff", "isab16")}) == 1
    assert list(pair_legend(styles)) == ["rff-", "isab16-", "-max", "-mean", "-pma"]
