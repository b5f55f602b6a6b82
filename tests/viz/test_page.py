"""Pages and files for 3D tools: complete, without network access, with the right weights, points and colours."""

import base64
import dataclasses
import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import trimesh

from pointset.data import Mesh, sample_points
from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.viz import draw_maps, draw_pooling_comparison, export_cloud, make_page, save
from pointset.viz.color import scale_for
from pointset.viz.export import refined


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


def test_a_notebook_gets_the_page_and_the_still_picture_as_two_outputs(attention, cloud, monkeypatch):
    display = pytest.importorskip("IPython.display", reason="IPython is not installed: pip install ipython")
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr(display, "display", lambda bundle, raw: outputs.append(bundle))
    page = make_page(attention(), cloud, queries=[0], title="1 & 2 < 3's")
    page._ipython_display_()
    assert [set(bundle) for bundle in outputs] == [{"text/html", "text/plain"}, {"image/png", "text/plain"}]
    frame = re.fullmatch(
        r'<iframe title="[^"]+" srcdoc="([^"]*)" sandbox="allow-scripts" .*></iframe>', outputs[0]["text/html"]
    )
    assert html.unescape(frame[1]) == page.html
    assert base64.b64decode(outputs[1]["image/png"]).startswith(b"\x89PNG")


def test_the_page_opens_with_the_chosen_or_the_most_informative_layer(attention, cloud):
    def first(maps: list[Any], **asked: Any) -> int:
        return content(make_page(maps, cloud, **asked).html)["first"]

    sharp, blurred, pools = (attention(kind, layer) for kind, layer in (("reads", "a"), ("reads", "b"), ("pools", "c")))
    rooted = blurred.weights**0.5
    blurred = dataclasses.replace(blurred, weights=rooted / rooted.sum(dim=2, keepdim=True))
    uniform = dataclasses.replace(pools, weights=torch.full_like(pools.weights, 1 / len(cloud)))
    pooled = dataclasses.replace(attention("self", "head"), points_are="neither")
    assert first([sharp, blurred, pooled]) == 0
    assert first([blurred, sharp]) == 1
    assert first([sharp, pools, blurred]) == 1
    assert first([sharp, pools, blurred], layer="b.reads") == 2
    assert first([sharp, pools, blurred], queries=[0]) == 2
    assert first([sharp, uniform, blurred]) == 0
    with pytest.raises(PointsetError, match=r"'encoder\.7'.* a\.reads, b\.reads"):
        make_page([sharp, blurred], cloud, layer="encoder.7")
    with pytest.raises(PointsetError, match="no map has points"):
        make_page([pooled], cloud)


def test_heads_and_queries_can_be_chosen(attention, cloud):
    data = content(make_page(attention("self"), cloud, heads=[1]).html)
    (layer,) = data["layers"]
    assert data["order"] == "model"
    assert layer["heads"] == [1]
    assert len(set(layer["rows"])) == 16 == len(layer["spread"])
    assert layer["marks"] == layer["rows"]
    both = content(make_page([attention("reads"), attention("pools", rows=1)], cloud, queries=[2]).html)["layers"]
    assert [layer["rows"] for layer in both] == [[2], [0]]
    assert both[0]["marks"] == [-1]


made = trimesh.creation.box((2, 1, 4), transform=trimesh.transformations.translation_matrix((5, 0, 0)))
BOX = Mesh(made.vertices, made.faces)


def read(path: Path) -> Any:
    loaded = trimesh.load(path)
    return next(iter(loaded.geometry.values())) if isinstance(loaded, trimesh.Scene) else loaded


def pools(weights: Any) -> AttentionMap:
    return AttentionMap("l", "pools", torch.as_tensor(weights)[None, None], "keys")


def test_ply_keeps_points_and_colours(attention, cloud, tmp_path):
    reads = attention()
    values = reads.weights[1, 2].numpy() * len(cloud)
    back = read(export_cloud(reads, cloud, tmp_path / "a.ply", 1, 2))
    np.testing.assert_allclose(back.vertices, cloud, atol=1e-6)
    np.testing.assert_allclose(back.colors[:, :3] / 255, scale_for(values).colors_of(values), atol=0.003)
    with pytest.raises(PointsetError, match=r"a\.obj.* must end in \.ply or \.glb"):
        export_cloud(reads, cloud, tmp_path / "a.obj")


def test_glb_has_y_up_and_linear_colours(attention, cloud, tmp_path):
    reads = attention()
    values = reads.weights[0, 1].numpy() * len(cloud)
    back = read(export_cloud(reads, cloud, tmp_path / "a.glb", 0, 1))
    np.testing.assert_allclose(back.vertices, np.c_[cloud[:, 0], cloud[:, 2], -cloud[:, 1]], atol=1e-6)
    linear = back.colors[:, :3] / 255
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    np.testing.assert_allclose(shown, scale_for(values).colors_of(values), atol=0.03)  # 8 bits are coarse in the dark
    y_up = read(export_cloud(reads, cloud, tmp_path / "b.glb", up="y"))
    np.testing.assert_allclose(y_up.vertices, cloud, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2])
def test_the_smallest_clouds_can_be_drawn_and_written(n, tmp_path):
    cloud, one_point = np.zeros((n, 3)), pools(np.eye(n)[0])
    save(draw_maps(one_point, cloud), tmp_path / "a.png")
    make_page(one_point, cloud).save(tmp_path / "a.html")
    draw_pooling_comparison(cloud, critical=np.zeros(n), pools=np.full(n, 1 / n), influence=np.zeros(n))
    for name in ("a.ply", "a.glb"):
        assert len(read(export_cloud(one_point, cloud, tmp_path / name)).vertices) == n


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
        back = read(export_cloud(pools(weights / weights.sum()), points, path, mesh=BOX))
        darkness = 1 - np.asarray(back.visual.vertex_colors)[:, :3].mean(axis=1) / 255
        top, bottom = back.vertices[:, height] > 1.2, back.vertices[:, height] < 0.8
        assert darkness[top].min() > darkness[bottom].max() + 0.2
        assert back.area == pytest.approx(28.0, rel=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(0.3, (0, 0, 0)), (1.3, (5, 0, 0)), (0.05, (5, 0, 0))])
def test_points_that_are_not_on_the_mesh_are_an_error(scale, shift, tmp_path):
    points = np.asarray(sample_points(BOX, 200, seed=0), dtype=np.float64)
    with pytest.raises(PointsetError, match="do not lie on the mesh"):
        export_cloud(pools(np.full(200, 1 / 200)), (points - (5, 0, 0)) * scale + shift, tmp_path / "a.ply", mesh=BOX)
    assert list(tmp_path.iterdir()) == []
