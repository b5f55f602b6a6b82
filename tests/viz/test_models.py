"""Attention maps of real models, drawn in every form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data.catalogue.released import read_released
from pointset.errors import PointsetError
from pointset.viz import draw_maps, draw_reads_and_writes, export_cloud, make_page, save
from pointset.viz.rows import point_rows


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
        assert clouds_drawn(draw_maps(found[1], batch[1, :20])) in (2, 8)
        with pytest.raises(PointsetError, match=r"is of a batch: give the map of one cloud, map\[0\] to map\[1\]"):
            draw_maps(found, batch[1])
        with pytest.raises(PointsetError, match="without padding"):
            draw_maps(found[1], batch[1])


def clouds_drawn(picture: Any) -> int:
    return len([axes for axes in picture.axes if axes.collections])


def test_a_real_chair(real_data: Path) -> None:
    clouds = read_released(real_data / "modelnet40_ply_hdf5_1024", "test")
    chair = torch.from_numpy(clouds.points[np.flatnonzero(clouds.labels == clouds.classes.index("chair"))[0]])
    reads, writes = pointset.attention_maps(pointset.create_model("isab16-max", dim=16), chair)[:2]
    picture = draw_reads_and_writes(reads, writes, chair)
    assert clouds_drawn(picture) == 12
    assert len(make_page([reads, writes], chair).html) < 600_000
