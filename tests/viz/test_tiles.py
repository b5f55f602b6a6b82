"""Small pictures of clouds."""

import numpy as np
from scipy.ndimage import find_objects, label

from pointset.viz.color import ColorScale, CountScale
from pointset.viz.shapes import attention_scale, count_scale, draw_looked_at, draw_tile
from pointset.viz.writing import as_png, as_svg


def test_a_tile_has_a_panel_for_each_cloud(cloud):
    assert len(draw_tile([cloud]).axes) == 1
    assert len(draw_tile([cloud, cloud[:50]], up="y").axes) == 2


def test_a_tile_of_values_has_the_colours_of_the_scale(cloud):
    values = np.zeros(len(cloud))
    values[:3] = 7
    scale = count_scale([values, np.zeros(5)])
    assert scale == CountScale(7)
    heights, looked = draw_looked_at(cloud, values, scale).axes
    colors = looked.collections[0].get_facecolor()
    assert len(colors) == len(cloud)
    assert len(np.unique(colors.round(3), axis=0)) < len(np.unique(heights.collections[0].get_facecolor(), axis=0))
    assert count_scale([np.zeros(4)]).top == 1
    assert isinstance(attention_scale([np.ones(4), np.full(3, 5.0)]), ColorScale)


def test_a_dot_at_the_edge_of_its_panel_is_whole():
    """Four distant points have large dots, which the edge of the panel does not cut: width and height are equal."""
    picture = draw_tile([np.array([[-1, 0, -1], [1, 0, -1], [-1, 0, 1], [1, 0, 1]]) / 2.0])
    picture.dpi = 300
    picture.canvas.draw()
    inked = np.asarray(picture.canvas.buffer_rgba())[..., :3].min(axis=2) < 250
    dots, count = label(inked)
    sides = [(rows.stop - rows.start, columns.stop - columns.start) for rows, columns in find_objects(dots)]
    assert count == 4
    assert all(abs(height - width) <= 1 for height, width in sides), sides


def test_few_colours_make_a_small_file(cloud):
    picture = draw_tile([cloud])
    assert len(as_png(picture, dpi=140, colors=64)) < len(as_png(picture, dpi=140)) / 2


def test_an_svg_is_the_same_each_time_and_has_identifiers_of_its_own(cloud):
    picture = draw_tile([cloud])
    assert as_svg(picture, "a") == as_svg(picture, "a")
    assert as_svg(picture, "a").startswith("<svg ")
