"""Maps in files and tables: exact round trips, no pickle, damaged files are named."""

import copy

import numpy as np
import pytest
import torch

import pointset
from pointset.errors import PointsetError
from pointset.explain.files import load_maps, save_maps, to_pandas
from pointset.explain.maps import AttentionMap

MODEL = pointset.create_model("isab3-pma2", classes=4, dim=16, heads=2)
POINTS = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
MASK = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("points", "mask"), [(POINTS[0], None), (POINTS, None), (POINTS, MASK)])
def test_what_is_saved_comes_back(points, mask, dtype, tmp_path):
    maps = pointset.attention_maps(copy.deepcopy(MODEL).to(dtype), points.to(dtype), mask)
    assert {found.weights.dtype for found in maps} == {torch.float32}
    assert same(load_maps(save_maps(maps, tmp_path / "maps.npz")), maps)


@pytest.mark.parametrize("how", ["cut", "missing", "other", "format", "pickle"])
def test_a_file_that_is_not_one_is_named(how, tmp_path):
    path = save_maps(pointset.attention_maps(MODEL, POINTS), tmp_path / "maps.npz")
    if how == "cut":
        path.write_bytes(path.read_bytes()[:-200])
    elif how == "missing":
        path.unlink()
    elif how == "other":
        np.savez(path, weights=np.zeros(3))
    elif how == "format":
        np.savez(path, about=np.array('{"format": 99, "maps": []}'))
    else:
        np.savez(path, about=np.array({"format": 1}, dtype=object), allow_pickle=True)
    with pytest.raises(PointsetError, match=r"maps\.npz"):
        load_maps(path)


def same(maps: list[AttentionMap], others: list[AttentionMap]) -> bool:
    def content(found: AttentionMap) -> list[object]:
        mask = None if found.mask is None else found.mask.tolist()
        return [found.layer, found.kind, found.points_are, found.weights.dtype, found.weights.tolist(), mask]

    return [content(found) for found in maps] == [content(found) for found in others]


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    maps = pointset.attention_maps(MODEL, POINTS)
    with pytest.raises(PointsetError, match=r"must end in \.npz"):
        save_maps(maps, tmp_path / "maps.json")


def test_the_table_has_a_line_per_weight():
    maps = pointset.attention_maps(MODEL, POINTS[0])
    table = to_pandas(maps)
    assert list(table.columns) == ["layer", "kind", "head", "query", "key", "weight", "relative"]
    assert len(table) == sum(found.weights.numel() for found in maps)
    line = table[
        (table.layer == "encoder.1.reads") & (table["head"] == 1) & (table["query"] == 2) & (table["key"] == 6)
    ]
    assert line.weight.item() == pytest.approx(float(maps[2].weights[1, 2, 6]))
    assert line.relative.item() == pytest.approx(7 * float(maps[2].weights[1, 2, 6]))
    assert table.groupby(["layer", "head", "query"]).weight.sum().to_numpy() == pytest.approx(1.0)
    table = to_pandas(pointset.attention_maps(MODEL, POINTS, MASK)[0])  # padding is omitted
    assert table.groupby("cloud")["key"].max().tolist() == [6, 3]
