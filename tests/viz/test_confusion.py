"""Confusion matrices: shades, numbers and names, for few classes and for many."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pointset.viz.confusion import RIGHT, WRONG, draw_confusions

COUNTS = np.array([[8, 2, 0], [0, 5, 0], [1, 3, 6]])


def cells(axes) -> dict[tuple[int, int], tuple]:
    """The colour of each cell that is not empty."""
    found = {}
    for collection in axes.collections:
        for path, color in zip(collection.get_paths(), collection.get_facecolor(), strict=True):
            x, y = path.vertices.min(axis=0) + 0.5
            found[round(y), round(x)] = tuple(color)
    return found


def test_cells_are_shares_of_the_true_class():
    one, two, _ = draw_confusions({"a": COUNTS, "b": COUNTS.T}, ["cup", "night_stand", "$x"]).axes
    found = cells(one)
    assert set(found) == set(zip(*np.nonzero(COUNTS), strict=True))
    for (true, taken), color in found.items():
        assert color[:3] == pytest.approx(to_rgb(RIGHT if true == taken else WRONG))
        assert color[3] == pytest.approx(np.sqrt(COUNTS[true, taken] / COUNTS[true].sum()))
    assert sorted(text.get_text() for text in one.texts) == sorted(["80", "20", "100", "10", "30", "60"])
    assert [text.get_text() for text in one.get_yticklabels()] == ["cup  10", "night stand  5", r"\$x  10"]
    assert set(cells(two)) == set(zip(*np.nonzero(COUNTS.T), strict=True))


def test_names_of_models_are_whole_and_classes_without_shapes_are_no_fault():
    name = "a model with every option in its name, width 256, 3 layers, batch norm in its head"
    picture = draw_confusions({name: np.zeros((2, 2), int), "b": COUNTS[:2, :2]}, ["cup", "bowl"])
    (title,) = [text for text in picture.texts if text.get_text().startswith("a model")]
    assert title.get_text().replace("\n", " ") == name
    box, right = title.get_window_extent(), picture.axes[1].get_window_extent().x0
    assert box.y1 <= picture.bbox.y1
    assert box.x1 <= right


@pytest.mark.parametrize("many", [40, 69])
def test_names_of_many_classes_are_apart_and_inside(many):
    picture = draw_confusions({"a": 5 * np.eye(many, dtype=int)}, [f"range_hood {i}" for i in range(many)])
    picture.draw_without_rendering()
    matrix = picture.axes[0]
    boxes = [text.get_window_extent() for text in matrix.get_yticklabels()]
    assert all(one.y0 >= other.y1 - 1.5 for one, other in itertools.pairwise(boxes)), "hardly touching"
    assert min(box.x0 for box in boxes) >= 0
    words = [text.get_window_extent() for text in matrix.get_xticklabels()]
    bar = picture.axes[1].get_window_extent()
    assert min(box.y0 for box in words) > bar.y1


@pytest.mark.parametrize("models", [1, 2])
def test_names_of_120_characters_are_shortened(models):
    classes = ["bowl", "x" * 120, f"{'y' * 119}$"]
    picture = draw_confusions({f"model {i}": COUNTS for i in range(models)}, classes)
    picture.draw_without_rendering()
    matrix = picture.axes[0]
    rows = [text.get_text() for text in matrix.get_yticklabels()]
    assert rows[0] == "bowl  10"
    assert all(len(row) < 40 and "…" in row for row in rows[1:])
    assert matrix.get_position().width > 0.2
    bar = picture.axes[-1].get_window_extent()
    assert min(text.get_window_extent().x0 for text in matrix.get_yticklabels()) >= 0
    assert min(text.get_window_extent().y0 for text in matrix.get_xticklabels()) > bar.y1
