"""Pictures of attention maps: the values of the maps, the right panels and colours, and attended points in front."""

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import entropy

import pointset
from pointset.data.catalogue.released import read_released
from pointset.errors import PointsetError
from pointset.viz import (
    Camera,
    draw_instances,
    draw_maps,
    draw_pooling_comparison,
    draw_reads_and_writes,
    draw_specialisation,
    export_cloud,
    make_page,
    save,
)
from pointset.viz.color import ColorScale, colors_of
from pointset.viz.rows import PointRows, as_cloud, chosen_rows, point_rows


def rows_of(weights: NDArray[np.float64], cloud: NDArray[np.float64], kind: str = "reads") -> PointRows:
    side = "queries" if kind == "writes" else "keys"
    return point_rows(SimpleNamespace(layer="l", kind=kind, weights=weights, points_are=side), cloud)


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


def test_uniform_attention_is_one_everywhere(cloud: NDArray[np.float64]) -> None:
    n = len(cloud)
    for kind, shape in (("reads", (2, 3, n)), ("writes", (2, n, 3)), ("pools", (2, 1, n))):
        rows = rows_of(np.full(shape, 1 / shape[2]), cloud, kind)
        np.testing.assert_allclose(rows.values, 1.0)
        np.testing.assert_allclose(rows.spread, 1.0)
        assert rows.keys == shape[2]
        assert rows.values.shape == (2, 1 if kind == "pools" else 3, n)


def test_values_and_spread_are_those_of_the_map(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads, writes = attention("reads"), attention("writes")
    assert point_rows(writes, cloud).values[1, 2, 17] == pytest.approx(3 * writes.weights[1, 17, 2])
    rows = point_rows(reads, cloud)
    np.testing.assert_allclose(rows.spread, entropy(reads.weights, axis=2) / np.log(len(cloud)))
    tensors = SimpleNamespace(**{**vars(reads), "weights": torch.from_numpy(reads.weights)})
    np.testing.assert_array_equal(
        point_rows(tensors, as_cloud(torch.from_numpy(cloud).requires_grad_())).values, rows.values
    )
    one_point = np.zeros((1, 1, len(cloud)))
    one_point[0, 0, 5] = 1
    assert f"{rows_of(one_point, cloud).spread[0, 0]:.2f}" == "0.00"  # and not -0.00, in a picture


def test_maps_that_differ_and_maps_that_do_not(cloud: NDArray[np.float64]) -> None:
    apart = np.zeros((2, 3, len(cloud)))
    for row in range(3):
        apart[0, row, 10 * row : 10 * row + 10] = 0.1  # no two rows look at a common point
        apart[1, row, : 10 * row + 10] = 1 / (10 * row + 10)
    rows = rows_of(apart, cloud)
    between = (1 / 2 + 2 / 3 + 1 / 3) / 3  # total variation of uniform rows over 10, 20 and 30 points
    np.testing.assert_allclose(rows.difference([0, 1, 2]), [1, between])
    np.testing.assert_allclose(rows.difference([1, 1]), [0, 0])
    assert np.isnan(rows.difference([0])).all()


def test_distant_points_are_chosen_if_queries_are_points(attention: Callable, cloud: NDArray[np.float64]) -> None:
    rows = point_rows(attention("self"), cloud)
    chosen = chosen_rows(rows, cloud, None, 8)
    gaps = np.linalg.norm(cloud[chosen][:, None] - cloud[chosen], axis=2)[~np.eye(8, dtype=bool)]
    assert len(chosen) == 8
    assert gaps.min() > 0.6
    assert chosen_rows(rows, cloud, [4, 2], 8) == [4, 2]
    assert chosen_rows(point_rows(attention("reads"), cloud), cloud, None, 8) == [0, 1, 2]


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.zeros((2, 4, 3)), r"\[n, 3\], got \[2, 4, 3\]"),
        (np.zeros((0, 3)), "no points"),
        (np.array([[0.0, 0, 0], [0, np.nan, 0]]), "point 1 .* not finite"),
        ("points", r"\[n, 3\].* got str"),
    ],
)
def test_wrong_clouds_are_named(points: Any, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        as_cloud(points)


def test_heads_and_rows_that_a_map_does_not_have_are_an_error(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads = attention("reads")
    rows = point_rows(reads, cloud)
    for wrong, words in (
        (lambda: point_rows(5, cloud), "attention .*got int"),
        (lambda: point_rows(reads, cloud[:-1]), "weights for 150 points, but 149"),
        (lambda: point_rows(SimpleNamespace(**{**vars(reads), "points_are": "neither"}), cloud), "pooled vectors"),
        (lambda: rows_of(np.ones(3), cloud), r"got \[3\]"),
        (lambda: rows.check(2, 0), "no head 2: give one from 0 to 1"),
        (lambda: rows.check(0, -1), "no inducing point -1: give one from 0 to 2"),
        (lambda: rows.chosen_heads([]), "heads of .* are empty"),
        (lambda: chosen_rows(rows, cloud, [], 8), "queries of .* inducing points from 0 to 2"),
        (lambda: chosen_rows(rows, cloud, [3], 8), "no inducing point 3"),
    ):
        with pytest.raises(PointsetError, match=words):
            wrong()


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
    image = np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("RGB"), dtype=np.int16)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isab4-pma2", "sab-pma", "isab4-max", "rff-pma"])
def test_every_map_over_points_can_be_drawn(name: str, tmp_path: Path) -> None:
    model = pointset.create_model(name, classes=3, dim=8, heads=2)
    points = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    maps = pointset.attention_maps(model, points)
    shown = [found for found in maps if found.points_are != "neither"]
    assert shown
    for found in shown:
        save(draw_maps(found, points), tmp_path / "map.png", dpi=40)
        export_cloud(found, points, tmp_path / "map.ply")
    page = make_page(maps, points)
    assert all(f'"name":"{found.layer}"' in page.html for found in shown)
    assert all(f'"name":"{found.layer}"' not in page.html for found in maps if found.points_are == "neither")


def test_the_numbers_beside_a_picture_are_those_of_the_map() -> None:
    points = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    reads = pointset.attention_maps(pointset.create_model("isab4-max", classes=3, dim=8, heads=2), points)[0]
    rows = point_rows(reads, points.double().numpy())
    np.testing.assert_allclose(rows.values, reads.relative(), rtol=1e-5)
    np.testing.assert_allclose(rows.spread, reads.entropy(), rtol=1e-5)
    np.testing.assert_allclose(rows.difference(range(4)), reads.row_distance(), rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_cloud_of_a_batch_is_drawn_without_its_padding() -> None:
    batch = torch.randn(2, 30, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(30) < torch.tensor([[30], [20]])
    model = pointset.create_model("isab4-pma", classes=3, dim=8, heads=2)
    for found in pointset.attention_maps(model, batch, mask):
        assert len(clouds_of(draw_maps(found[1], batch[1, :20]))) in (2, 8)
        with pytest.raises(PointsetError, match=r"batch.* map\[0\] to map\[1\]"):
            draw_maps(found, batch[1])
        with pytest.raises(PointsetError, match="without padding"):
            draw_maps(found[1], batch[1])


def test_a_real_chair(real_data: Path) -> None:
    clouds = read_released(real_data / "modelnet40_ply_hdf5_1024", "test")
    chair = torch.from_numpy(clouds.points[np.flatnonzero(clouds.labels == clouds.classes.index("chair"))[0]])
    reads, writes = pointset.attention_maps(pointset.create_model("isab16-max", dim=16), chair)[:2]
    picture = draw_reads_and_writes(reads, writes, chair)
    assert len(clouds_of(picture)) == 12
    assert len(make_page([reads, writes], chair).html) < 600_000


@pytest.mark.slow
def test_saving(attention: Callable, cloud: NDArray[np.float64], tmp_path: Path) -> None:
    picture = draw_maps(attention(), cloud)
    assert save(picture, tmp_path / "a.png", dpi=50).read_bytes().startswith(b"\x89PNG")
    svg = save(picture, tmp_path / "new" / "a.SVG").read_text()
    assert "<svg" in svg
    assert len(svg) < 150_000  # dots are images, not thousands of elements
    assert "encoder.0.reads: what each inducing point reads</text>" in svg
    with pytest.raises(PointsetError, match=r"a\.gif.*\.png or \.svg"):
        save(picture, tmp_path / "a.gif")
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
