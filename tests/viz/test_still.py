"""Still pictures: the right panels, colours of the weights, and attended points in front."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz import (
    Camera,
    draw_instances,
    draw_maps,
    draw_pooling_comparison,
    draw_reads_and_writes,
    draw_specialisation,
    save,
)
from pointset.viz.color import ColorScale, colors_of
from pointset.viz.writing import still_svg


def clouds_of(picture: Any) -> list[Any]:
    """The axes of a picture that hold a cloud, in the order of drawing."""
    return [axes for axes in picture.axes if axes.collections]


def texts_of(picture: Any) -> str:
    return "\n".join(text.get_text() for text in picture.texts)


def colors_at(axes: Any, cloud: NDArray[np.float64]) -> NDArray[np.float64]:
    """The fill colours [n, 4] of the dots, in the order of the points of the cloud."""
    (dots,) = axes.collections
    order = {tuple(np.round(dot, 9)): i for i, dot in enumerate(np.asarray(dots.get_offsets()))}
    return dots.get_facecolors()[[order[tuple(np.round(dot, 9))] for dot in Camera().project(cloud)[0]]]


def pixels(picture: Any) -> NDArray[np.int16]:
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("RGB"), dtype=np.int16)


@pytest.mark.slow
def test_one_panel_per_head_and_inducing_point_with_one_scale(attention: Callable, cloud: NDArray[np.float64]) -> None:
    for kind, panels in (("reads", 6), ("writes", 6), ("pools", 6), ("self", 16)):
        picture = draw_maps(attention(kind), cloud)
        assert len(clouds_of(picture)) == panels
        assert len(picture.axes) == panels + 1  # one colour bar for all
        limits = {(axes.get_xlim(), axes.get_ylim()) for axes in clouds_of(picture)}
        assert len(limits) == 1
        assert {axes.get_aspect() for axes in clouds_of(picture)} == {1.0}
        labels = [label.get_text() for label in picture.axes[-1].get_xticklabels()]
        assert "1 = uniform" in labels
    assert len(clouds_of(draw_maps(attention(rows=20), cloud, heads=[1], queries=[3, 19]))) == 2

    def columns(picture: Any) -> int:
        return len({round(axes.get_position().x0, 6) for axes in clouds_of(picture)})

    assert columns(draw_maps(attention(rows=8), cloud)) == 8
    assert columns(draw_maps(attention(rows=20), cloud)) == 7  # three lines of 7, 7 and 6
    one_each = draw_maps(attention(rows=8), cloud, queries=[5])
    assert columns(one_each) == 2
    assert "differ" not in texts_of(one_each)
    assert "one panel per head, inducing point 5;" in texts_of(one_each)
    assert "differ" in texts_of(draw_maps(attention(rows=8), cloud, heads=[1]))


def test_a_weight_of_exactly_zero_is_a_ring_and_the_picture_says_so(
    attention: Callable, cloud: NDArray[np.float64]
) -> None:
    """A small weight is a pale dot; a weight of 0, as in sparse weights, is a hollow dot."""
    reads = attention()
    assert "exactly 0" not in texts_of(draw_maps(reads, cloud, heads=[1], queries=[2]))
    reads.weights[1, 2, ::2] = 0
    picture = draw_maps(reads, cloud, heads=[1], queries=[2])
    assert colors_at(clouds_of(picture)[0], cloud)[:, 3].tolist() == [0.0, 1.0] * (len(cloud) // 2)
    assert "ring: weight exactly 0" in texts_of(picture)


def test_a_dot_has_the_colour_of_its_weight(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads = attention()
    axes = clouds_of(draw_maps(reads, cloud, heads=[1], queries=[2], colors="cividis_r"))[0]
    values = reads.weights[1, 2] * len(cloud)
    reach = 2.0 ** np.ceil(np.log2(np.clip(np.quantile(values, 0.995), 2, 64)) - 0.05)
    expected = colors_of(ColorScale(reach, "cividis_r"), values)
    seen = colors_at(axes, cloud)[:, :3]
    above = values > 1  # dots with less may fade with their depth
    assert 10 < above.sum() < 100
    np.testing.assert_allclose(seen[above], expected[above])
    assert (seen[~above] >= expected[~above] - 1e-9).all()


def test_attended_points_are_drawn_over_points_in_front() -> None:
    side = np.linspace(-1, 1, 41)
    wall = np.array([[1.0, y, z] for y in side for z in side])
    cloud = np.vstack([[[-1.0, 0, 0]], wall])  # the first point lies behind a point of the wall
    weights = np.full((1, 1, len(cloud)), 0.5 / len(cloud))
    weights[0, 0, 0] = 0.5
    behind = SimpleNamespace(layer="l", kind="reads", weights=weights, points_are="keys")
    picture = draw_maps(behind, cloud, camera=Camera(azimuth=0, elevation=0))
    axes = clouds_of(picture)[0]
    place = Camera(azimuth=0, elevation=0).project(cloud)[0][0]
    x, y = axes.transData.transform(place)
    image = pixels(picture)
    assert image[image.shape[0] - 1 - round(y), round(x)].max() < 60  # the dark end of the scale, not the wall


def test_of_points_with_equal_weight_the_nearest_is_drawn_last() -> None:
    cloud = np.array([[0.0, 0, 0], [1, 0, 0], [-1, 0, 0], [0.5, 0, 0]])
    uniform = SimpleNamespace(layer="l", kind="pools", weights=np.full((1, 1, 4), 0.25), points_are="keys")
    camera = Camera(azimuth=0, elevation=0)
    collection = clouds_of(draw_maps(uniform, cloud, camera=camera))[0].collections[0]
    sizes = collection.get_sizes()
    assert (np.diff(sizes) > 0).all()  # nearer is larger, and the order is from far to near


def test_a_point_that_is_the_query_has_a_ring(attention: Callable, cloud: NDArray[np.float64]) -> None:
    places, _ = Camera().project(cloud)
    for axes, point in zip(clouds_of(draw_maps(attention("self"), cloud, queries=[7, 99])), [7, 99] * 2, strict=True):
        dots_drawn, ring = axes.collections
        np.testing.assert_allclose(ring.get_offsets(), places[[point]])
        assert ring.get_sizes()[0] > dots_drawn.get_sizes().max()
    assert len(clouds_of(draw_maps(attention("reads"), cloud))[0].collections) == 1


def test_reads_and_writes_have_a_scale_each(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads, writes = attention("reads"), attention("writes")
    picture = draw_reads_and_writes(reads, writes, cloud, head=1, queries=[2, 0])
    assert len(clouds_of(picture)) == 4
    assert len(picture.axes) == 6
    assert all(words in texts_of(picture) for words in ("head 1", "point 2", "who reads 0"))
    many = draw_reads_and_writes(attention("reads", rows=16), attention("writes", rows=16), cloud)
    assert len(clouds_of(many)) == 12
    with pytest.raises(PointsetError, match="got writes and reads"):
        draw_reads_and_writes(writes, reads, cloud)
    with pytest.raises(PointsetError, match="no head 5"):
        draw_reads_and_writes(reads, writes, cloud, head=5)


def test_instances_in_a_row(attention: Callable, cloud: NDArray[np.float64]) -> None:
    maps, shapes = [attention(seed=seed) for seed in (1, 2, 3)], [cloud, 2 * cloud, cloud[:, [1, 0, 2]]]
    picture = draw_instances(maps, shapes, 1, 2, names=["a", "b", "c"])
    assert len(clouds_of(picture)) == 3
    assert "encoder.0.reads, head 1, inducing point 2, on 3 shapes" in texts_of(picture)
    for wrong, words in (
        (lambda: draw_instances(maps, shapes[:2]), "got 3 maps, 2 clouds"),
        (lambda: draw_instances([], []), "got 0 maps"),
        (lambda: draw_instances(maps, shapes, names=["a"]), "and 1 names"),
        (lambda: draw_instances(maps, shapes, 0, 3), "no inducing point 3"),
        (lambda: draw_instances([maps[0], attention(layer="other")], shapes[:2]), "different layers"),
    ):
        with pytest.raises(PointsetError, match=words):
            wrong()


def test_the_pooling_comparison_says_what_each_panel_counts(cloud: NDArray[np.float64]) -> None:
    n = len(cloud)
    critical, pools, influence = np.zeros(n), np.full(n, 1 / n), np.linspace(-0.1, 0.2, n)
    critical[:7] = 3
    picture = draw_pooling_comparison(
        cloud, critical=critical, pools=pools, influence=influence, notes={"influence": "rank correlation 0.2"}
    )
    assert len(clouds_of(picture)) == 3
    assert all(words in texts_of(picture) for words in ("7 of 150 points", "top 5 % get 5%", "rank correlation 0.2"))
    assert len(clouds_of(draw_pooling_comparison(cloud, influence=np.zeros(n)))) == 1
    for wrong, words in (
        ({}, "critical, pools and influence"),
        ({"critical": critical[:-1]}, r"one value per point, \[150\], got \[149\]"),
        ({"critical": "all"}, "critical must be numbers, got str"),
        ({"pools": 2 * pools}, "pools sums to 2"),
        ({"influence": np.where(influence > 0.1, np.nan, 0)}, "influence has a value that is not finite, at point"),
    ):
        with pytest.raises(PointsetError, match=words):
            draw_pooling_comparison(cloud, **wrong)


def test_specialisation_beside_its_control() -> None:
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
    assert all(words in texts_of(picture) for words in ("entropy", "1 = reads all alike", "head 3"))
    for wrong in ({}, {"entropy": 1}):
        with pytest.raises(PointsetError, match="must have the same measures"):
            draw_specialisation(trained if wrong else {}, wrong)


@pytest.mark.slow
def test_saving(attention: Callable, cloud: NDArray[np.float64], tmp_path: Path) -> None:
    picture = draw_maps(attention(), cloud)
    assert save(picture, tmp_path / "a.png", dpi=50).read_bytes().startswith(b"\x89PNG")
    svg = save(picture, tmp_path / "new" / "a.SVG").read_text()
    assert "<svg" in svg
    assert len(svg) < 150_000  # dots are images, not thousands of elements
    assert "encoder.0.reads: what each inducing point reads</text>" in svg
    assert len(still_svg(picture, 200, most=len(svg) // 2)) < 0.9 * len(svg)
    for path, words in (
        (tmp_path / "a.gif", r"a\.gif.* must end in \.png or \.svg"),
        (tmp_path / "a", "must end in"),
        (tmp_path / "a.png" / "b.png", r"b\.png cannot be written"),
    ):
        with pytest.raises(PointsetError, match=words):
            save(picture, path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "new"]


@pytest.mark.slow
def test_every_text_fits_on_its_picture_and_none_covers_another(
    attention: Callable, cloud: NDArray[np.float64]
) -> None:
    reads, writes, n = attention("reads", rows=16), attention("writes", rows=16), len(cloud)
    measures = {name: np.full((4, 16), 0.5) for name in ("entropy", "overlap", "stability", "augmented")}
    flat = cloud * (1, 1, 0.05)
    for picture in (
        draw_maps(reads, cloud, heads=[0], queries=[0]),
        draw_maps(
            reads,
            cloud,
            heads=[0],
            queries=[0],
            title="a file with a $long$ name.off, predicted: flower_pot (93 %); encoder.0.reads",
        ),
        draw_maps(reads, cloud),
        draw_maps(writes, flat),
        draw_maps(attention("self"), flat),
        draw_maps(attention("pools", rows=1), cloud),
        draw_reads_and_writes(reads, writes, flat),
        draw_instances([reads] * 8, [flat] * 8, names=["night_stand"] * 8),
        draw_pooling_comparison(flat, critical=np.ones(n), pools=np.full(n, 1 / n), influence=np.zeros(n)),
        draw_specialisation(measures, measures),
    ):
        ticks = [label for axes in picture.axes if axes.axison for label in axes.get_xticklabels()]
        renderer = picture.canvas.get_renderer()
        boxes = [(t.get_text(), t.get_window_extent(renderer)) for t in [*picture.texts, *ticks] if t.get_text()]
        width, height = picture.canvas.get_width_height()
        for i, (text, box) in enumerate(boxes):
            assert 0 <= box.x0 < box.x1 <= width, text
            assert 0 <= box.y0 < box.y1 <= height, text
            covered = [other for other, another in boxes[i + 1 :] if box.overlaps(another)]
            assert covered == [], text
