"""Charts and colours; pages, files for 3D tools, and the modules of pages, which read shapes as Python does."""

import base64
import dataclasses
import html
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh
from matplotlib.colors import to_rgb

from pointset import PointsetError
from pointset.data import Mesh, sample_points
from pointset.explain import AttentionMap
from pointset.viz import Camera, draw_importance, draw_maps, export_cloud, make_page, save
from pointset.viz.charts import Dot, frontier, pair_legend, pair_styles
from pointset.viz.color import attention_scale, scale_for, signed_scale
from pointset.viz.confusion import RIGHT, WRONG, draw_confusions
from pointset.viz.export import refined
from pointset.viz.html_page import WEB

COUNTS = np.array([[8, 2, 0], [0, 5, 0], [1, 3, 6]])


def dot(name: str, cost: float, mean: float, half: float = 0.0) -> Dot:
    return Dot(name, cost, mean, mean - half, mean + half, {"color": "k", "marker": "o"})


def names(dots: list[Dot], **options) -> list[str]:
    return [one.name for one in frontier(dots, **options)]


def test_the_frontier_has_the_dots_that_no_other_dominates():
    dots = [dot("dear and poor", 3, 1), dot("dear and good", 4, 9), dot("cheap", 1, 2), dot("same cost, worse", 1, 1)]
    assert names(dots) == ["cheap", "dear and good"]
    assert names([*dots, dot("as good for less", 2, 9)]) == ["cheap", "as good for less"]
    assert names([*dots, dot("its equal", 4, 9)]) == ["cheap", "dear and good", "its equal"]
    errors = [dot("low", 2, 1), dot("high", 2, 3), dot("cheaper", 1, 2)]
    assert names(errors, higher_is_better=False) == ["cheaper", "low"]


def test_many_rows_have_a_colour_for_each_encoder_and_a_marker_for_each_pooling():
    styles = pair_styles(list(itertools.product(("rff", "isab16"), ("max", "mean", "pma"))))
    assert len({(style["color"], style["marker"]) for style in styles.values()}) == 6
    assert len({styles["rff", other]["color"] for other in ("max", "mean", "pma")}) == 1
    assert list(pair_legend(styles)) == ["rff-", "isab16-", "-max", "-mean", "-pma"]


def test_cells_are_shares_of_the_true_class():
    first, second = draw_confusions({"a": COUNTS, "b": COUNTS.T}, ["cup", "night_stand", "$x"]).axes
    colors = np.asarray(first.images[0].get_array())
    for (true, taken), count in np.ndenumerate(COUNTS):
        assert colors[true, taken, :3] == pytest.approx(to_rgb(RIGHT if true == taken else WRONG))
        assert colors[true, taken, 3] == pytest.approx(np.sqrt(count / COUNTS[true].sum()))
    assert sorted(text.get_text() for text in first.texts) == sorted(["80", "20", "100", "10", "30", "60"])
    assert [text.get_text() for text in first.get_yticklabels()] == ["cup  10", "night_stand  5", r"\$x  10"]
    assert (np.asarray(second.images[0].get_array())[..., 3] > 0).tolist() == (COUNTS.T > 0).tolist()


LONG = "a model with every option in its name, width 256, 3 layers, batch norm in its head"
MANY = {"a": 5 * np.eye(69, dtype=int)}, [f"range_hood {i}" for i in range(69)]
NO_SHAPES = {LONG: np.zeros((2, 2), int), "b": COUNTS[:2, :2]}, ["cup", "bowl"]
LONG_NAMES = {f"{i} {'x' * 250}": COUNTS for i in range(2)}, ["bowl", "x" * 120, f"{'y' * 119}$"]


@pytest.mark.parametrize(("counts", "classes"), [MANY, NO_SHAPES, LONG_NAMES], ids=["69", "no shapes", "long names"])
def test_names_in_confusion_matrices_are_apart_and_inside(counts, classes):
    """Long names are shortened, and titles have several lines."""
    picture = draw_confusions(counts, classes)
    picture.draw_without_rendering()
    for axes, label in zip(picture.axes, counts, strict=True):
        title = axes.get_title(loc="left")
        assert title.replace("\n", " ") == label if len(label) < 100 else "…" in title
        assert title.count("\n") < 4
        assert axes.get_position().width > 0.2
        boxes = [text.get_window_extent() for text in [*axes.get_yticklabels(), *axes.get_xticklabels()]]
        assert all(one.y0 >= other.y1 - 1.5 for one, other in itertools.pairwise(boxes[: len(classes)]))
        assert min(box.x0 for box in boxes) >= 0
        assert min(box.y0 for box in boxes) >= 0
        assert max(text.get_window_extent().y1 for text in axes.findobj(type(axes.title))) <= picture.bbox.y1 + 1


LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("reach", [2.0, 8.0, 64.0])
def test_ticks_stand_at_their_values(reach):
    scale = attention_scale(reach)
    positions, labels = zip(*scale.ticks, strict=True)
    values = [1 / float(text[2:]) if text.startswith("1/") else float(text) for text in labels]
    np.testing.assert_allclose(positions, scale.positions(np.array(values)))
    assert positions[labels.index("1")] == 0.5
    assert len(labels) in (3, 5, 7)
    assert scale.positions(np.array([0.0, 1e-9, 1 / reach, reach, 1e9])).tolist() == [0, 0, 0, 1, 1]


def test_the_middle_of_a_signed_scale_is_grey_and_its_ends_differ():
    low, middle, high = signed_scale(0.5).colors_of(np.array([-0.5, 0.0, 0.5]))
    assert 0.8 < middle.min() <= middle.max() < 0.9
    assert np.ptp(middle) < 0.03
    assert low[2] > low[1]
    assert high[0] > high[2]


def content(page: str) -> dict[str, Any]:
    """The data that a page carries."""
    return json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_carries_the_weights(attention, cloud):
    reads, writes = attention("reads"), attention("writes")
    data = content(make_page([reads, writes], cloud).html)
    assert [layer["name"] for layer in data["layers"]] == ["encoder.0.reads", "encoder.0.writes"]
    expected = (reads.weights.numpy() * len(cloud), writes.weights.numpy().swapaxes(1, 2) * 3)
    for layer, values in zip(data["layers"], expected, strict=True):
        codes = np.frombuffer(base64.b64decode(layer["values"]), dtype="<u2").reshape(values.shape)
        decoded = 2 ** (layer["low"] + (layer["high"] - layer["low"]) * codes / 65535)
        large = values > 2**-20
        assert large.mean() > 0.8
        np.testing.assert_allclose(decoded[large], values[large], rtol=1e-3)
    positions = np.frombuffer(base64.b64decode(data["positions"]), dtype="<i2").reshape(-1, 3) / 32767
    ratio = np.ptp(positions, axis=0) / np.ptp(cloud, axis=0)
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)


def test_text_of_the_user_stays_text(attention, cloud):
    nasty = "</script><script>alert(1)</script> & {{ data }} {{ script }}"
    page = make_page(attention(), cloud, title=nasty, prediction=nasty, classes=[(nasty, 1.0)]).html
    data = content(page)
    assert (data["title"], data["note"], data["classes"]) == (nasty, nasty, [[nasty, 1.0]])
    assert "<script>alert" not in page
    assert page.count("</script>") == 2
    # The page names no other address.
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|//cdn|@import|url\(|\ssrc=|\shref=", page)
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)[1]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy


def test_a_notebook_gets_the_page_in_a_sandboxed_frame_and_a_still_picture(attention, cloud):
    page = make_page(attention(), cloud, queries=[0], title="1 & 2 < 3's")
    outputs = page._repr_mimebundle_()
    assert list(outputs) == ["text/html", "image/png", "text/plain"]
    found = re.fullmatch(
        r'<iframe title="[^"]+" srcdoc="([^"]*)" sandbox="allow-scripts" [^<]*></iframe><img [^<]*display: none[^<]*>',
        outputs["text/html"],
    )
    assert html.unescape(found[1]) == page.html
    assert base64.b64decode(outputs["image/png"]).startswith(b"\x89PNG")


def test_the_page_opens_with_the_chosen_layer_or_the_last_that_reads_or_pools(attention, cloud):
    def first(maps: list[Any], **asked: Any) -> int:
        return content(make_page(maps, cloud, **asked).html)["first"]

    reads, again, pools = (attention(kind, layer) for kind, layer in (("reads", "a"), ("reads", "b"), ("pools", "c")))
    pooled = dataclasses.replace(attention("self", "head"), points_are="neither")
    assert first([reads, attention("writes"), again, pools, pooled]) == 2
    assert first([attention("self", "b"), pools]) == 1
    assert first([reads, pools, again], layer="c.pools") == 1
    with pytest.raises(PointsetError, match=r"'encoder\.7'.* a\.reads, b\.reads"):
        make_page([reads, again], cloud, layer="encoder.7")
    with pytest.raises(PointsetError, match="no map has points"):
        make_page([pooled], cloud)


def test_heads_and_queries_can_be_chosen(attention, cloud):
    data = content(make_page(attention("self"), cloud, heads=[1]).html)
    (layer,) = data["layers"]
    assert data["order"] == "model"
    assert {head for _, head, _ in layer["maps"]} == {1}
    assert len({row for *_, row in layer["maps"]}) == 16 == len(layer["entropy"])
    assert layer["marks"]
    both = content(make_page([attention("reads"), attention("pools", rows=1)], cloud, queries=[2]).html)["layers"]
    assert [layer["maps"] for layer in both] == [[[0, 0, 2], [0, 1, 2]], [[0, 0, 0], [0, 1, 0]]]
    assert not both[0]["marks"]


def test_maps_of_several_models_are_paired_by_kind_and_place(attention, cloud):
    other = [attention("pools", rows=2), attention("reads", "block"), attention("reads", "encoder.1")]
    page = make_page({"a": [attention("reads"), attention("pools", rows=1)], "b": other}, cloud)
    layers = {layer["name"]: layer for layer in content(page.html)["layers"]}
    assert list(layers) == ["encoder.0.reads / block.reads", "encoder.0.pools", "encoder.1.reads"]
    reads, n = layers["encoder.0.reads / block.reads"], len(cloud)
    codes = np.frombuffer(base64.b64decode(reads["values"]), "<u2").reshape(-1, n)
    values = 2 ** (reads["low"] + (reads["high"] - reads["low"]) * codes / 65535)
    for (_, head, row), found in zip(reads["maps"], values, strict=True):
        np.testing.assert_allclose(found, attention("reads").weights[head, row] * n, rtol=1e-2, atol=1e-6)
    assert [sum(model == own for model, *_ in layers["encoder.0.pools"]["maps"]) for own in (0, 1)] == [2, 4]
    assert {model for model, *_ in layers["encoder.1.reads"]["maps"]} == {1}
    assert "the sharpest maps of each model" in page.draw_still().get_supxlabel().replace("\n", " ")


made = trimesh.creation.box((2, 1, 4), transform=trimesh.transformations.translation_matrix((5, 0, 0)))
BOX = Mesh(made.vertices, made.faces)


def read_back(path: Path) -> Any:
    loaded = trimesh.load(path)
    return next(iter(loaded.geometry.values())) if isinstance(loaded, trimesh.Scene) else loaded


def pools(weights: Any) -> AttentionMap:
    return AttentionMap("l", "pools", torch.as_tensor(weights)[None, None], "keys")


def test_ply_keeps_points_and_colours(attention, cloud, tmp_path):
    reads = attention()
    values = reads.weights[1, 2].numpy() * len(cloud)
    back = read_back(export_cloud(reads, cloud, tmp_path / "a.ply", 1, 2))
    np.testing.assert_allclose(back.vertices, cloud, atol=1e-6)
    np.testing.assert_allclose(back.colors[:, :3] / 255, scale_for(values).colors_of(values), atol=0.003)
    with pytest.raises(PointsetError, match=r"a\.obj.* must end in \.ply or \.glb"):
        export_cloud(reads, cloud, tmp_path / "a.obj")


def test_glb_has_y_up_and_linear_colours(attention, cloud, tmp_path):
    reads = attention()
    values = reads.weights[0, 1].numpy() * len(cloud)
    back = read_back(export_cloud(reads, cloud, tmp_path / "a.glb", 0, 1))
    np.testing.assert_allclose(back.vertices, np.c_[cloud[:, 0], cloud[:, 2], -cloud[:, 1]], atol=1e-6)
    linear = back.colors[:, :3] / 255
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    np.testing.assert_allclose(shown, scale_for(values).colors_of(values), atol=0.03)  # 8 bits are coarse in the dark
    y_up = read_back(export_cloud(dataclasses.replace(reads, up="y"), cloud, tmp_path / "b.glb"))
    np.testing.assert_allclose(y_up.vertices, cloud, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_clouds_can_be_drawn_and_written(n, tmp_path):
    cloud, one_point = np.zeros((n, 3)), pools(np.eye(n)[0])
    save(draw_maps(one_point, cloud), tmp_path / "a.png")
    make_page(one_point, cloud).save(tmp_path / "a.html")
    draw_importance(cloud, {"critical": np.zeros(n), "pools": np.full(n, 1 / n), "influence": -np.ones(n)})
    for name in ("a.ply", "a.glb"):
        assert len(read_back(export_cloud(one_point, cloud, tmp_path / name)).vertices) == n


def test_large_triangles_are_cut_and_the_surface_stays():
    points = np.asarray(sample_points(BOX, 500, seed=0), dtype=np.float64)
    fine = refined(BOX, points)
    assert trimesh.Trimesh(fine.vertices, fine.faces, process=False).area == pytest.approx(28.0)
    edges = np.linalg.norm(np.diff(fine.vertices[fine.faces[:, [0, 1, 2, 0]]], axis=1), axis=2)
    assert edges.max() <= np.sqrt(28 / 500) + 1e-9
    assert len(refined(BOX, np.repeat(points, 2000, axis=0)).faces) <= 200_000


def test_attention_goes_back_to_the_surface(tmp_path):
    points = np.asarray(sample_points(BOX, 2000, seed=0), dtype=np.float64)
    weights = np.where(points[:, 2] > 1, 30.0, 0.1)
    for suffix, height in ((".ply", 2), (".glb", 1)):
        path = tmp_path / f"box{suffix}"
        back = read_back(export_cloud(pools(weights / weights.sum()), points, path, mesh=BOX))
        darkness = 1 - np.asarray(back.visual.vertex_colors)[:, :3].mean(axis=1) / 255
        top, bottom = back.vertices[:, height] > 1.2, back.vertices[:, height] < 0.8
        assert darkness[top].min() > darkness[bottom].max() + 0.2
        assert back.area == pytest.approx(28.0, rel=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(0.3, (0, 0, 0)), (1.3, (5, 0, 0)), (0.05, (5, 0, 0))])
def test_points_that_are_not_on_the_mesh_are_an_error(scale, shift, tmp_path):
    points = np.asarray(sample_points(BOX, 200, seed=0), dtype=np.float64)
    with pytest.raises(PointsetError, match="are not on the mesh"):
        export_cloud(pools(np.full(200, 1 / 200)), (points - (5, 0, 0)) * scale + shift, tmp_path / "a.ply", mesh=BOX)
    assert list(tmp_path.iterdir()) == []


def test_the_camera_is_that_of_python(in_node):
    points = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5, 3))
    camera = Camera(azimuth=33, elevation=-12, distance=3)
    given = {"home": {"azimuth": 33, "elevation": -12, "distance": 3}, "points": points.tolist()}
    found = np.array(in_node(WEB / "camera.mjs", "given.points.map(new Camera(given.home).projection())", given))
    local = points @ camera.axes().T
    nearness = 3 / (3 - local[:, 2])
    np.testing.assert_allclose(found, np.column_stack([local[:, :2] * nearness[:, None], local[:, 2]]), atol=1e-9)


@pytest.mark.parametrize(("width", "count", "columns"), [(1240, 4, 4), (360, 4, 2), (360, 64, 3), (1240, 64, 8)])
def test_columns_of_panels_fit_the_width(in_node, width, count, columns):
    found = in_node(WEB / "controls.mjs", f"columnsIn({width}, {count})")
    assert found["columns"] == columns
    assert width / 2 < columns * found["size"] <= width
