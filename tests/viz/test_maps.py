"""Pictures of clouds and of attention maps: the right values, panels and colours, upright and scaled."""

import dataclasses
import io
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.text import Text
from numpy.typing import NDArray
from PIL import Image

import pointset
from pointset import PointsetError
from pointset.data.axes import rotate_up
from pointset.data.options import Preparation
from pointset.explain import AttentionMap
from pointset.viz import (
    Camera,
    draw_clouds,
    draw_importance,
    draw_instances,
    draw_maps,
    draw_reads_and_writes,
    draw_specialisation,
    save,
)
from pointset.viz.color import attention_scale
from pointset.viz.rows import point_rows


def clouds_of(picture: Any) -> list[Any]:
    """The axes of a picture that hold a cloud, in the order of drawing."""
    return [axes for axes in picture.axes if axes.collections and not axes.axison]


def texts_of(picture: Any) -> str:
    """All texts of a picture, without the breaks of their lines."""
    return "; ".join(text.get_text().replace("\n", " ") for text in picture.findobj(Text))


def colors_at(axes: Any, cloud: NDArray[np.float64]) -> NDArray[np.float64]:
    """The fill colours [n, 4] of the dots, in the order of the points of the cloud."""
    (dots,) = axes.collections
    order = {tuple(np.round(dot, 9)): i for i, dot in enumerate(np.asarray(dots.get_offsets()))}
    return dots.get_facecolors()[[order[tuple(np.round(dot, 9))] for dot in Camera().project(cloud)[0]]]


def test_values_are_the_weights_times_their_number_and_entropy_is_over_the_points(attention, cloud):
    reads, writes = attention("reads"), attention("writes")
    rows, others = point_rows(reads, cloud), point_rows(writes, cloud)
    np.testing.assert_allclose(rows.values, reads.relative())
    np.testing.assert_allclose(rows.entropy, reads.entropy())
    assert others.values[1, 2, 17] == pytest.approx(3 * float(writes.weights[1, 17, 2]))
    columns = writes.weights.swapaxes(1, 2)
    over_points = AttentionMap("l", "reads", columns / columns.sum(dim=2, keepdim=True), "keys")
    np.testing.assert_allclose(others.entropy, over_points.entropy())
    one_point = AttentionMap("l", "reads", torch.eye(len(cloud))[None, :1], "keys")
    assert f"{point_rows(one_point, cloud).entropy[0, 0]:.2f}" == "0.00"  # and not -0.00, in a picture


N = 150
FLAT = np.full(N, 1 / N)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda *_, cloud: draw_maps(5, cloud), "got int"),
        (lambda reads, _, cloud: draw_maps(reads, cloud[:-1]), "150 points, but 149"),
        (lambda reads, _, cloud: draw_maps(reads, cloud, heads=[]), "heads of .* empty"),
        (lambda reads, writes, cloud: draw_reads_and_writes(writes, reads, cloud), "got writes and reads"),
        (lambda reads, _, cloud: draw_instances([reads] * 3, [cloud] * 2), "3 maps, 2 clouds"),
        (lambda reads, writes, cloud: draw_instances([reads, writes], [cloud] * 2), "different layers"),
        (lambda *_, cloud: draw_importance(cloud, {}), "values are missing"),
        (lambda *_, cloud: draw_importance(cloud, {"critical": FLAT[1:]}), r"critical .*\[150\], got \[149\]"),
        (lambda *_, cloud: draw_importance(cloud, {"critical": "all"}), "critical must be numbers, got str"),
        (lambda *_, cloud: draw_importance(cloud, {"influence": np.nan * FLAT}), "influence .* not finite"),
    ],
)
def test_what_cannot_be_drawn_is_refused(attention, cloud, draw, words):
    with pytest.raises(PointsetError, match=words):
        draw(attention("reads"), attention("writes"), cloud=cloud)


@pytest.mark.slow
def test_one_panel_per_head_and_inducing_point_with_one_scale(attention, cloud):
    for kind, panels in (("reads", 6), ("self", 16)):
        picture = draw_maps(attention(kind), cloud)
        assert len(clouds_of(picture)) == panels
        assert len(picture.axes) == panels + 1  # one colour bar for all
        assert len({(axes.get_xlim(), axes.get_ylim(), axes.get_aspect()) for axes in clouds_of(picture)}) == 1
        assert "1 = uniform" in picture.axes[-1].get_xlabel()

    def columns(picture: Any) -> int:
        return clouds_of(picture)[0].get_gridspec().ncols

    assert columns(draw_maps(attention(rows=20), cloud)) == 7  # three lines of 7, 7 and 6
    one_each = draw_maps(attention(rows=8), cloud, queries=[5])
    assert columns(one_each) == 2
    assert "inducing point 5;" in texts_of(one_each)


def test_a_weight_of_exactly_zero_is_a_ring_and_the_picture_says_so(attention, cloud):
    """A small weight is a pale dot; a weight of 0, as in sparse weights, is a hollow dot."""
    reads = attention()
    assert "exactly 0" not in texts_of(draw_maps(reads, cloud, heads=[1], queries=[2]))
    reads.weights[1, 2, ::2] = 0
    picture = draw_maps(reads, cloud, heads=[1], queries=[2])
    assert colors_at(clouds_of(picture)[0], cloud)[:, 3].tolist() == [0.0, 1.0] * (len(cloud) // 2)
    assert "ring: weight exactly 0" in texts_of(picture)


def test_a_dot_has_the_colour_of_its_weight(attention, cloud):
    reads = attention()
    axes = clouds_of(draw_maps(reads, cloud, heads=[1], queries=[2]))[0]
    values = reads.weights[1, 2].numpy() * len(cloud)
    reach = 2.0 ** np.ceil(np.log2(np.clip(np.quantile(values, 0.995), 2, 64)) - 0.05)
    expected = attention_scale(reach).colors_of(values)
    seen = colors_at(axes, cloud)[:, :3]
    above = values > 1  # dots with less may fade with their depth
    assert 10 < above.sum() < 100
    np.testing.assert_allclose(seen[above], expected[above])
    assert (seen[~above] >= expected[~above] - 1e-9).all()


def test_attended_points_are_drawn_over_points_in_front():
    side = np.linspace(-1, 1, 41)
    wall = np.array([[1.0, y, z] for y in side for z in side])
    cloud = np.vstack([[[-1.0, 0, 0]], wall])  # the first point lies behind a point of the wall
    weights = torch.full((1, 1, len(cloud)), 0.5 / len(cloud))
    weights[0, 0, 0] = 0.5
    camera = Camera(azimuth=0, elevation=0)
    picture = draw_maps(AttentionMap("l", "reads", weights, "keys"), cloud, camera=camera)
    picture.draw_without_rendering()  # lays the picture out
    x, y = clouds_of(picture)[0].transData.transform(camera.project(cloud)[0][0])
    image = np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("RGB"), dtype=np.int16)
    assert image[image.shape[0] - 1 - round(y), round(x)].max() < 60  # the dark end of the scale, not the wall


def test_a_point_that_is_the_query_has_a_ring(attention, cloud):
    places, _ = Camera().project(cloud)
    for axes, point in zip(clouds_of(draw_maps(attention("self"), cloud, queries=[7, 99])), [7, 99] * 2, strict=True):
        dots_drawn, ring = axes.collections
        np.testing.assert_allclose(ring.get_offsets(), places[[point]])
        assert ring.get_sizes()[0] > dots_drawn.get_sizes().max()


def test_reads_and_writes_have_one_scale(attention, cloud):
    reads, writes = attention("reads"), attention("writes")
    picture = draw_reads_and_writes(reads, writes, cloud, head=1, queries=[2, 0])
    assert len(clouds_of(picture)) == 4
    assert len(picture.axes) == 5
    assert all(words in texts_of(picture) for words in ("head 1", "reads", "writes"))
    many = draw_reads_and_writes(attention("reads", rows=16), attention("writes", rows=16), cloud)
    assert len(clouds_of(many)) == 12


def test_instances_and_poolings_say_what_each_panel_shows(attention, cloud):
    maps, shapes = [attention(seed=seed) for seed in (1, 2, 3)], [cloud, 2 * cloud, cloud[:, [1, 0, 2]]]
    picture = draw_instances(maps, shapes, 1, 2, names=["a", "b", "c"])
    assert len(clouds_of(picture)) == 3
    assert "encoder.0.reads, head 1, inducing point 2, on 3 shapes" in texts_of(picture)
    critical, influence = np.where(np.arange(N) < 7, 3, 0), np.linspace(-0.1, 0.2, N)
    picture = draw_importance(cloud, {"critical": critical, "pools": FLAT, "influence": influence})
    assert len(clouds_of(picture)) == 3
    assert all(words in texts_of(picture) for words in ("top 5 % get 100%", "top 5 % get 5%", "largest +0.2"))
    assert (colors_at(clouds_of(picture)[0], cloud)[:, 3] == (critical > 0)).all()
    assert len(clouds_of(draw_importance(cloud, {"influence": np.zeros(N)}))) == 1


@pytest.mark.slow
def test_a_cloud_of_a_batch_is_drawn_without_its_padding():
    batch = torch.randn(2, 30, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(30) < torch.tensor([[30], [20]])
    model = pointset.create_model("isab4-pma", classes=3, dim=8, heads=2)
    for attention in pointset.attention_maps(model, batch, mask):
        assert len(clouds_of(draw_maps(attention[1], batch[1, :20], heads=[1]))) in (1, 4)
        with pytest.raises(PointsetError, match=r"batch.* map\[0\] to map\[1\]"):
            draw_maps(attention, batch[1])
        with pytest.raises(PointsetError, match="without padding"):
            draw_maps(attention[1], batch[1])


def test_a_figure_for_a_paper_is_as_wide_as_its_column_without_title_and_with_embedded_fonts(
    attention, cloud, tmp_path
):
    maps = [attention(seed=seed) for seed in range(2)]
    for width, inches in (("column", 3.25), ("page", 6.75)):
        picture = draw_instances(maps, [cloud] * 2, 1, [0, 2], names=["a", "b"], width=width)
        assert picture.get_figwidth() == inches
        assert len(clouds_of(picture)) == 4
        assert len(picture.axes) == 5  # one colour bar
        assert [picture.get_suptitle(), picture.get_supxlabel()] == ["", ""]
        assert [axes.get_title(loc="left") for axes in picture.axes[:3]] == ["a", "b", ""]
    pdf = save(picture, tmp_path / "a.pdf").read_bytes()
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf
    with pytest.raises(PointsetError, match="width must be"):
        draw_maps(maps[0], cloud, width="poster")


def test_a_figure_for_a_paper_has_no_empty_band(attention, cloud):
    picture = draw_maps(attention(), cloud, heads=[1], width="page")
    image = np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("L"))
    rows = np.flatnonzero((image < 250).any(axis=1))
    assert np.diff([0, *rows, len(image)]).max() < 0.25 * picture.dpi


@pytest.mark.parametrize("up", ["x", "y"])
def test_pictures_have_the_upward_axis_of_the_preparation(attention, cloud, up):
    turned = rotate_up(cloud, "z", up)
    reads = dataclasses.replace(attention(), up=up)
    one_panel: Any = {"heads": [0], "queries": [0]}
    expected = dots(clouds_of(draw_maps(attention(), cloud, **one_panel))[0])
    for options in ({}, {"camera": Camera(up=up)}, {"up": up, "camera": Camera()}):
        picture = draw_maps(reads, turned, **one_panel, **options)
        np.testing.assert_allclose(dots(clouds_of(picture)[0]), expected, atol=1e-12)
    model = pointset.create_model("rff-pma", classes=2, dim=8)
    model.preparation = Preparation(up="y")
    assert pointset.attention_maps(model, torch.eye(4, 3))[0].up == "y"


def test_saving(attention, cloud, tmp_path):
    picture = draw_maps(attention(), cloud, heads=[0], queries=[0])
    assert save(picture, tmp_path / "a.png", dpi=50).read_bytes().startswith(b"\x89PNG")
    svg = save(picture, tmp_path / "new" / "a.SVG").read_text()
    assert "<svg" in svg
    assert "<image" in svg  # dots are images, not thousands of elements
    assert "encoder.0.reads: what each inducing point reads</text>" in svg
    with pytest.raises(PointsetError, match=r"a\.gif.*\.png or \.svg"):
        save(picture, tmp_path / "a.gif")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "new"]


@pytest.mark.slow
def test_every_text_fits_on_its_picture_and_none_covers_another(attention, cloud):
    reads, writes = attention("reads", rows=8), attention("writes", rows=8)
    measures = {name: np.full((4, 16), 0.5) for name in ("entropy", "overlap", "stability", "augmented")}
    long = "a file with a $long$ name.off, predicted: flower_pot (93 %); encoder.0.reads"
    flat = cloud * (1, 1, 0.05)
    for picture in (
        draw_maps(reads, cloud, heads=[0], queries=[0], title=long),
        draw_maps(writes, flat),
        draw_maps(attention("pools", rows=1), cloud),
        draw_reads_and_writes(reads, writes, flat),
        draw_instances([reads] * 8, [flat] * 8, names=["night_stand"] * 8),
        draw_importance(flat, {"max: critical points": np.ones(N), "PMA": FLAT, "occlusion": -FLAT}),
        draw_specialisation(measures, measures),
    ):
        ticks = [label for axes in picture.axes if axes.axison for label in axes.get_xticklabels()]
        picture.draw_without_rendering()
        titles = [title for axes in picture.axes for title in (axes.title, axes._left_title, axes._right_title)]
        texts = [*picture.texts, *titles, *ticks]
        boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text()]
        width, height = picture.canvas.get_width_height()
        assert [text for text, box in boxes if not (box.x0 >= 0 and box.x1 <= width)] == []
        assert [text for text, box in boxes if not (box.y0 >= 0 and box.y1 <= height)] == []
        for (one, box), (other, another) in itertools.combinations(boxes, 2):
            assert not box.overlaps(another), (one, other)


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


def test_a_dot_at_the_edge_of_its_panel_is_whole():
    picture = draw_clouds([np.array([[-1, 0, -1], [1, 0, -1], [-1, 0, 1], [1, 0, 1]]) / 2.0])
    assert not picture.axes[0].collections[0].get_clip_on()


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
    cloud = np.random.default_rng(0).normal(size=(50, 3)) * (1, 2, 3)
    y_up = cloud[:, [0, 2, 1]] * (1, 1, -1)
    for seen, twin in zip(Camera(up="y").project(y_up), Camera(up="z").project(cloud), strict=True):
        np.testing.assert_allclose(seen, twin)
    places, nearness = Camera().project(np.array([[3.0, 4.0, 5.0]]))
    assert (places.tolist(), nearness.tolist()) == ([[0.0, 0.0]], [1.0]), "one point is a cloud too"
