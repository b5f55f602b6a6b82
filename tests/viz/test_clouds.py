"""The camera and pictures of clouds, in tiles too: each cloud is there, upright, and scaled to its panel."""

import numpy as np
import pytest
from scipy.ndimage import find_objects, label

from pointset.viz import Camera, draw_clouds
from pointset.viz.clouds import draw_tile


def dots(axes):
    return axes.collections[0].get_offsets()


def test_every_cloud_has_a_panel_with_its_name(cloud):
    shapes, names = [cloud, 100 * cloud + 7, cloud[:40]], ["one", "large", "x" * 120]
    picture = draw_clouds(shapes, names=names, title="a title " * 30)
    assert [len(dots(axes)) for axes in picture.axes] == [150, 150, 40]
    np.testing.assert_allclose(dots(picture.axes[0]), dots(picture.axes[1]), atol=1e-6)
    assert [axes.get_title(loc="left") for axes in picture.axes[:2]] == ["one", "large"]
    picture.draw_without_rendering()
    texts = [*picture.texts, *picture.axes[2].findobj(type(picture.axes[2].title))]
    assert max(text.get_window_extent().x1 for text in texts) <= picture.bbox.x1, "long names are shortened"


def test_a_tile_has_a_panel_for_each_cloud_and_for_values(cloud):
    assert len(draw_tile([cloud]).axes) == 1
    assert len(draw_tile([cloud, cloud[:50]], up="y").axes) == 2
    values = np.zeros(len(cloud))
    values[:3] = 7
    picture = draw_tile([cloud], "z", values)
    colors = [axes.collections[0].get_facecolor().round(3) for axes in picture.axes]
    heights, looked = (len(np.unique(shades, axis=0)) for shades in colors)
    assert looked < heights


def test_a_dot_at_the_edge_of_its_panel_is_whole():
    """Four distant points have large dots, which the edge of the panel does not cut: width and height are equal."""
    picture = draw_tile([np.array([[-1, 0, -1], [1, 0, -1], [-1, 0, 1], [1, 0, 1]]) / 2.0])
    picture.dpi = 300
    picture.canvas.draw()
    spots, count = label(np.asarray(picture.canvas.buffer_rgba())[..., :3].min(axis=2) < 250)
    sides = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in find_objects(spots)]
    assert count == 4
    assert all(abs(height - width) <= 1 for height, width in sides), sides


BALL = np.random.default_rng(0).normal(size=(4000, 3))
BALL /= np.linalg.norm(BALL, axis=1, keepdims=True)


@pytest.mark.parametrize("azimuth", [-130.0, 0.0, 75.0])
@pytest.mark.parametrize("elevation", [-90.0, 20.0, 90.0])
def test_a_ball_looks_round_from_everywhere(azimuth, elevation):
    places, _ = Camera(azimuth, elevation).project(7 * BALL + 3)
    radii = np.linalg.norm(places, axis=1)
    # The outline of a unit ball seen from distance d has radius d / sqrt(d^2 - 1).
    outline = 4 / np.sqrt(15)
    directions = np.floor(np.arctan2(places[:, 1], places[:, 0]) / (np.pi / 6)).astype(int)
    for direction in range(-6, 6):
        assert radii[directions == direction].max() == pytest.approx(outline, rel=0.02)


def test_the_camera_looks_along_its_azimuth_and_elevation():
    axes = np.vstack([np.eye(3), -np.eye(3)])
    places, nearness = Camera(azimuth=0, elevation=0).project(axes)
    assert nearness[0] == max(nearness) > 1 > nearness[3]  # the camera stands on the x axis
    assert places[1] == pytest.approx([1, 0])  # y to the right
    assert places[2] == pytest.approx([0, 1])  # z to the top
    assert nearness[0] == pytest.approx(4 / 3)
    _, from_above = Camera(azimuth=0, elevation=90).project(axes)
    assert from_above.argmax() == 2


def test_a_cloud_with_y_up_looks_like_its_twin_with_z_up():
    cloud = BALL[:50] * (1, 2, 3)
    y_up = cloud[:, [0, 2, 1]] * (1, 1, -1)
    for seen, twin in zip(Camera(up="y").project(y_up), Camera(up="z").project(cloud), strict=True):
        np.testing.assert_allclose(seen, twin)
    places, nearness = Camera().project(np.array([[3.0, 4.0, 5.0]]))
    assert (places.tolist(), nearness.tolist()) == ([[0.0, 0.0]], [1.0]), "one point is a cloud too"
