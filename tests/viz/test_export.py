"""Files for 3D tools: read back, they contain the points and colours that were written."""

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
