"""Measures of inducing points beside those of a control."""

import numpy as np
import pytest

from pointset.errors import PointsetError
from pointset.viz import draw_specialisation


def test_specialisation_beside_its_control():
    rng = np.random.default_rng(0)
    trained = {"entropy": rng.uniform(0.2, 0.6, (4, 16)), "overlap": rng.uniform(size=(4, 16))}
    control = {name: np.ones((4, 16)) for name in trained}
    picture = draw_specialisation(trained, control, descriptions={"entropy": "1 = reads all alike"})
    assert len(picture.axes) == 2
    for axes, name in zip(picture.axes, trained, strict=True):
        left, right = (collection.get_offsets() for collection in axes.collections)
        np.testing.assert_allclose(left[:, 1], trained[name].ravel())
        np.testing.assert_allclose(right[:, 1], 1)
        assert left[:, 0].max() < 0.5 < right[:, 0].min()
    assert picture.axes[0].get_title() == "entropy\n1 = reads all alike"
    assert [text.get_text() for text in picture.legends[0].get_texts()] == [f"head {head}" for head in range(4)]


@pytest.mark.parametrize("trained", [{}, {"entropy": 1}])
def test_the_measures_must_be_the_same(trained):
    with pytest.raises(PointsetError, match="must have the same measures"):
        draw_specialisation(trained, {})
