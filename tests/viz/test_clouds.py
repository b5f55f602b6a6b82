"""Pictures of clouds without attention, and tiles: each cloud is there, upright, and scaled to its panel."""

import numpy as np
from scipy.ndimage import find_objects, label

from pointset.viz import Camera, draw_clouds
from pointset.viz.clouds import draw_tile


def dots(axes):
    return axes.collections[0].get_offsets()


def test_every_cloud_has_a_panel_with_its_name(cloud):
    picture = draw_clouds(
        [cloud, 100 * cloud + 7, cloud[:40]], names=["one", "large", "x" * 120], title="a title " * 30
    )
    assert [len(dots(axes)) for axes in picture.axes] == [150, 150, 40]
    np.testing.assert_allclose(dots(picture.axes[0]), dots(picture.axes[1]), atol=1e-6)
    assert [axes.get_title(loc="left") for axes in picture.axes[:2]] == ["one", "large"]
    picture.draw_without_rendering()
    texts = [*picture.texts, *picture.axes[2].findobj(type(picture.axes[2].title))]
    assert max(text.get_window_extent().x1 for text in texts) <= picture.bbox.x1, "long names are shortened"


def test_the_up_axis_is_up(cloud):
    turned = dots(draw_clouds([cloud[:, [0, 2, 1]]], camera=Camera(up="y")).axes[-1])
    assert np.ptp(turned[:, 1]) > np.ptp(turned[:, 0])


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
