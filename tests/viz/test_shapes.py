"""Pictures of clouds without attention: each is there, upright, and scaled to its panel."""

import io

import numpy as np
import pytest
from PIL import Image

from pointset.errors import PointsetError
from pointset.viz import Camera, draw_clouds


def ink(picture) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("L")) < 200


def test_every_cloud_has_a_panel_with_its_name(cloud):
    picture = draw_clouds([cloud, 100 * cloud + 7, cloud[:40]], names=["one", "large", "few"])
    drawn = [len(axes.collections[0].get_offsets()) for axes in picture.axes if axes.collections]
    assert drawn == [150, 150, 40]
    texts = [text.get_text() for text in picture.texts]
    assert {"one", "large", "few"} <= set(texts)
    first, second = (axes.collections[0].get_offsets() for axes in picture.axes[:2] if axes.collections)
    np.testing.assert_allclose(first, second, atol=1e-6)
    assert ink(picture).any()


def test_the_up_axis_is_up(cloud):
    turned = draw_clouds([cloud[:, [0, 2, 1]]], camera=Camera(up="y"))
    heights = turned.axes[-1].collections[0].get_offsets()[:, 1]
    assert np.ptp(heights) > np.ptp(turned.axes[-1].collections[0].get_offsets()[:, 0])


@pytest.mark.parametrize(("clouds", "names"), [([], None), ([np.zeros((3, 3))], ["a", "b"])])
def test_clouds_and_names_must_go_together(clouds, names):
    with pytest.raises(PointsetError, match="at least one cloud and one name each"):
        draw_clouds(clouds, names=names)
