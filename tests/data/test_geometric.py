"""Datasets of torch-geometric as sets."""

from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.transforms import SamplePoints

from pointset.data.dataset import load_dataset
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_points, seed_for
from pointset.errors import PointsetError

CORNERS = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = torch.tensor([[0, 0, 0, 1], [1, 1, 2, 2], [2, 3, 3, 3]])


def meshes(count: int = 6) -> list[Data]:
    return [Data(pos=CORNERS * (i + 1), face=FACES, y=torch.tensor([i % 2])) for i in range(count)]


def clouds(*sizes: int) -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(size, 3, generator=generator) for size in sizes]
    return [
        Data(pos=pos, normal=torch.nn.functional.normalize(pos, dim=1), y=torch.tensor([i % 2]))
        for i, pos in enumerate(made)
    ]


def test_meshes_are_sampled_with_our_sampler_and_seed() -> None:
    data = load_dataset(meshes(), points=5, pool_points=9, data_seed=3, normalize="none")
    assert (len(data), data.classes, data.labels.tolist()) == (6, ["0", "1"], [0, 1, 0, 1, 0, 1])
    mesh = Mesh((CORNERS * 3).numpy(), FACES.T.numpy())
    np.testing.assert_array_equal(data.source_pool.points[2], sample_points(mesh, 9, seed=seed_for(3, data.names[2])))
    assert data.fingerprint == load_dataset(meshes(), points=5, pool_points=9, data_seed=3).fingerprint
    assert data.fingerprint != load_dataset(meshes(), points=5, pool_points=9, data_seed=4).fingerprint


def test_clouds_of_several_sizes_become_ragged_sets() -> None:
    data = load_dataset(clouds(4, 7, 2), points=5, normalize="none")
    assert data.sizes.tolist() == [4, 5, 2]
    assert data.labels.tolist() == [0, 1, 0]
    expected = {tuple(point) for point in clouds(4, 7, 2)[0].pos.tolist()}
    assert {tuple(point) for point in data[0][0].tolist()} == expected


def test_normals_and_features_are_read() -> None:
    items = clouds(4, 7, 9)
    for item in items:
        item.x = item.heat = item.pos[:, 0] * 2
    data = load_dataset(items, points=5, normalize="none", features=["normals", "columns", "heat"])
    assert data.inputs == 8
    for points, _ in (data[row] for row in range(3)):
        torch.testing.assert_close(points[:, 3:6], torch.nn.functional.normalize(points[:, :3], dim=1))
        torch.testing.assert_close(points[:, 6:], 2 * points[:, :1].expand(-1, 2))


class Shapes(InMemoryDataset):  # type: ignore[misc]
    """A dataset of the form of GeometricShapes and ModelNet, without the download."""

    classes = ("a", "b", "c")

    def __init__(self, transform: Any = None) -> None:
        super().__init__(None, transform)
        self.data, self.slices = self.collate(meshes())


def test_torch_geometrics_own_data_sets_are_taken() -> None:
    whole = load_dataset(Shapes(), points=5)
    assert (whole.sizes.tolist(), whole.classes) == ([5] * 6, ["a", "b", "c"])
    assert (whole.name, whole.source) == ("Shapes", "Shapes")
    sampled = load_dataset(Shapes(SamplePoints(12, include_normals=True)), points=7, features="normals")
    assert (sampled.sizes.tolist(), sampled.inputs) == ([7] * 6, 6)


@pytest.mark.parametrize(
    ("dataset", "options", "words"),
    [
        ([], {}, "empty"),
        ([Data(x=CORNERS, y=torch.tensor([0]))], {}, "item 0 .* pos"),
        ([*meshes(1), Data(pos=CORNERS, face=FACES)], {}, "item 1 .* y"),
        ([Data(pos=CORNERS, y=torch.tensor([0.5]))], {}, "item 0 .*one class"),
        ([*meshes(2), *clouds(4)], {}, "2 meshes and 1 clouds"),
        ([Data(pos=CORNERS * float("nan"), y=torch.tensor([0]))], {}, "cloud 0 .*not finite"),
        ([Data(pos=CORNERS * 0, face=FACES, y=torch.tensor([0]))], {}, "item 0 .*no area"),
        ([Data(pos=CORNERS, y=torch.tensor([0]))], {"features": "normals"}, "item 0 .*lacks normals"),
        ([Data(pos=CORNERS, y=torch.tensor([0]))], {"features": "heat"}, "item 0 .*lacks heat"),
        (meshes(), {"features": "heat"}, "item 0 .*leave heat out"),
        (clouds(4), {"sampler": "fps"}, "holds clouds: leave sampler='fps' out"),
        (type("Named", (list,), {"classes": ["only"]})(meshes()), {}, "1 .* 1 classes"),
        (None, {}, "None is neither a name"),
    ],
)
def test_what_cannot_be_used_is_named_by_its_index(dataset: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        load_dataset(dataset, **{"points": 3, **options})
