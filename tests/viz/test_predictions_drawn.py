"""Pictures of predictions: one panel per model on equal axes, one dot per set, the mean error as text."""

import numpy as np
import pytest

from pointset.errors import PointsetError
from pointset.viz import draw_predictions

TRUTH = np.array([1.0, 4.0, 9.0])
PREDICTIONS = {"good": [1.0, 4.0, 9.5], "bad": [3.0, 3.0, 30.0], "x" * 120: [[0.0], [0.0], [0.0]]}


def test_a_panel_for_each_model_on_the_same_axes():
    picture = draw_predictions(TRUTH, PREDICTIONS, quantity="maximum", title="A title")
    assert len({axes.get_xlim() + axes.get_ylim() for axes in picture.axes}) == 1
    low, high = picture.axes[0].get_xlim()
    assert low < 0 < 30 < high
    for axes, values in zip(picture.axes, PREDICTIONS.values(), strict=True):
        np.testing.assert_allclose(axes.collections[0].get_offsets(), np.column_stack([TRUTH, np.ravel(values)]))
        assert axes.get_xlabel() == "true maximum"
    texts = [text.get_text() for text in picture.texts]
    assert texts[:2] == ["A title", "a dot for each of 3 sets; line: prediction = truth"]
    assert texts[2:4] == ["good: mean error 0.167", "bad: mean error 8"]
    assert texts[4].startswith("x")
    assert texts[4].endswith("x: mean error 4.67")
    assert picture.texts[4].get_window_extent().x1 <= picture.bbox.x1


def test_one_number_alone_can_be_drawn():
    low, high = draw_predictions([2.0], {"right": [2.0]}).axes[0].get_xlim()
    assert low < 2 < high


@pytest.mark.parametrize(
    ("truth", "predictions", "words"),
    [
        (TRUTH, {}, "3 sets and 0 models"),
        ([], {"mine": []}, "0 sets and 1 models"),
        (TRUTH, {"mine": [1.0, 2.0]}, "'mine' has 2 numbers for 3 sets"),
    ],
)
def test_what_cannot_be_drawn_is_refused(truth, predictions, words):
    with pytest.raises(PointsetError, match=words):
        draw_predictions(truth, predictions)
