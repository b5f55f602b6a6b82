"""Charts: the Pareto frontier, confusion matrices of few and many classes, names that do not overlap, colour scales."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb
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
from pointset.viz.color import attention_scale, count_scale, signed_scale
from pointset.viz.confusion import RIGHT, WRONG, draw_confusions

COUNTS = np.array([[8, 2, 0], [0, 5, 0], [1, 3, 6]])


def dot(name: str, cost: float, mean: float, half: float = 0.0) -> Dot:
    return Dot(name, cost, mean, mean - half, mean + half, {"color": "k", "marker": "o"})


def names(dots: list[Dot], **options) -> list[str]:
    return [one.name for one in frontier(dots, **options)]


def test_the_frontier_has_the_dots_that_no_other_dominates():
    dots = [dot("dear and poor", 3, 1), dot("dear and good", 4, 9), dot("cheap", 1, 2), dot("same cost, worse", 1, 1)]
    assert names(dots) == ["cheap", "dear and good"]
    assert names([*dots, dot("as good for less", 2, 9)]) == ["cheap", "as good for less"]
    assert names([*dots, dot("its equal", 4, 9)]) == ["cheap", "dear and good", "its equal"]
    errors = [dot("low", 2, 1), dot("high", 2, 3), dot("cheaper", 1, 2)]
    assert names(errors, higher_is_better=False) == ["cheaper", "low"]


def test_names_of_the_frontier_stand_apart_and_inside():
    rng = np.random.default_rng(0)
    logs, means = 4 * rng.random(40), rng.random(40)
    dots = [dot(f"a model {i}", float(np.exp(x)), 80 + 3 * x + y, 0.3) for i, (x, y) in enumerate(np.c_[logs, means])]
    figure, (axes,) = make_panels(1, 1, 3.2)
    draw_frontier(axes, dots)
    label_axes(axes, "cost", "accuracy %")
    with_legend(figure, {"all": dots[0].style})
    name_frontier(axes, dots)
    figure.draw_without_rendering()
    labels = [child for child in axes.get_children() if isinstance(child, Annotation)]
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


def test_many_rows_have_a_colour_for_each_encoder_and_a_marker_for_each_pooling():
    styles = pair_styles(list(itertools.product(("rff", "isab16"), ("max", "mean", "pma"))))
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 6
    assert len({styles["rff", other]["color"] for other in ("max", "mean", "pma")}) == 1
    assert list(pair_legend(styles)) == ["rff-", "isab16-", "-max", "-mean", "-pma"]


def test_cells_are_shares_of_the_true_class():
    first, second = draw_confusions({"a": COUNTS, "b": COUNTS.T}, ["cup", "night_stand", "$x"]).axes
    colors = np.asarray(first.images[0].get_array())
    for (true, taken), count in np.ndenumerate(COUNTS):
        assert colors[true, taken, :3] == pytest.approx(to_rgb(RIGHT if true == taken else WRONG))
        assert colors[true, taken, 3] == pytest.approx(np.sqrt(count / COUNTS[true].sum()))
    assert sorted(text.get_text() for text in first.texts) == sorted(["80", "20", "100", "10", "30", "60"])
    assert [text.get_text() for text in first.get_yticklabels()] == ["cup  10", "night stand  5", r"\$x  10"]
    assert (np.asarray(second.images[0].get_array())[..., 3] > 0).tolist() == (COUNTS.T > 0).tolist()


LONG = "a model with every option in its name, width 256, 3 layers, batch norm in its head"
MANY = {"a": 5 * np.eye(69, dtype=int)}, [f"range_hood {i}" for i in range(69)]
NO_SHAPES = {LONG: np.zeros((2, 2), int), "b": COUNTS[:2, :2]}, ["cup", "bowl"]
LONG_NAMES = {f"{i} {'x' * 250}": COUNTS for i in range(2)}, ["bowl", "x" * 120, f"{'y' * 119}$"]


@pytest.mark.parametrize(("counts", "classes"), [MANY, NO_SHAPES, LONG_NAMES], ids=["69", "no shapes", "long names"])
def test_names_in_confusion_matrices_are_apart_and_inside(counts, classes):
    """Long names are shortened, and titles have several lines."""
    picture = draw_confusions(counts, classes)
    picture.draw_without_rendering()
    (legend,) = picture.legends
    for axes, label in zip(picture.axes, counts, strict=True):
        title = axes.get_title(loc="left")
        assert title.replace("\n", " ") == label if len(label) < 100 else "…" in title
        assert title.count("\n") < 4
        assert axes.get_position().width > 0.2
        boxes = [text.get_window_extent() for text in [*axes.get_yticklabels(), *axes.get_xticklabels()]]
        assert all(one.y0 >= other.y1 - 1.5 for one, other in itertools.pairwise(boxes[: len(classes)]))
        assert min(box.x0 for box in boxes) >= 0
        assert min(box.y0 for box in boxes) >= legend.get_window_extent().y1
        assert max(text.get_window_extent().y1 for text in axes.findobj(type(axes.title))) <= picture.bbox.y1 + 1


LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("reach", [2.0, 8.0, 64.0])
def test_ticks_stand_at_their_values(reach):
    scale = attention_scale(reach)
    positions, labels = zip(*scale.ticks, strict=True)
    values = [1 / float(text[2:]) if text.startswith("1/") else float(text) for text in labels]
    np.testing.assert_allclose(positions, scale.positions(np.array(values)))
    assert positions[labels.index("1")] == 0.5
    assert len(labels) in (3, 5, 7)
    assert scale.positions(np.array([0.0, 1e-9, 1 / reach, reach, 1e9])).tolist() == [0, 0, 0, 1, 1]


def test_the_middle_of_a_signed_scale_is_grey_its_ends_differ_and_a_count_of_one_differs_from_zero():
    low, middle, high = signed_scale(0.5).colors_of(np.array([-0.5, 0.0, 0.5]))
    assert 0.8 < middle.min() <= middle.max() < 0.9
    assert np.ptp(middle) < 0.03
    assert low[2] > low[1]
    assert high[0] > high[2]
    none, one = count_scale(50).colors_of(np.array([0.0, 1.0]))
    assert abs((none - one) @ LUMA) > 0.15
    assert [label for _, label in count_scale(50).ticks] == ["0", "1", "50"]
