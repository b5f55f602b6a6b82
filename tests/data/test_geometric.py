"""torch-geometric both ways: sets as Data, lists of Data as sets."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import pointset
from pointset.data.dataset import load_dataset
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_points, seed_for
from pointset.data.unusable import UnreadableShapesError
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
    data = load_dataset(meshes(), points=5, pool_points=9, seed=3, normalize="none")
    assert (len(data), data.classes, data.labels.tolist()) == (6, ["0", "1"], [0, 1, 0, 1, 0, 1])
    mesh = Mesh((CORNERS * 3).numpy(), FACES.T.numpy())
    np.testing.assert_array_equal(data.source_pool.points[2], sample_points(mesh, 9, seed=seed_for(3, data.names[2])))
    assert data.fingerprint == load_dataset(meshes(), points=5, pool_points=9, seed=3).fingerprint
    assert data.fingerprint != load_dataset(meshes(), points=5, pool_points=9, seed=4).fingerprint


def test_clouds_of_several_sizes_become_ragged_sets() -> None:
    data = load_dataset(clouds(4, 7, 2), points=5, normalize="none", classes=["1", "0"])
    assert data.sizes.tolist() == [4, 5, 2]
    assert data.labels.tolist() == [1, 0, 1]
    expected = {tuple(point) for point in clouds(4, 7, 2)[0].pos.tolist()}
    assert {tuple(point) for point in data[0][0].tolist()} == expected
    model = pointset.create_model("rff-max", classes=2, dim=8)
    pointset.fit(model, data, pointset.Recipe(epochs=1, batch_size=2), progress=False)
    assert pointset.evaluate(model, data).logits.shape == (3, 2)


@pytest.mark.parametrize("dataset", [meshes(), clouds(4, 7, 9)])
def test_sets_are_given_as_data(dataset: list[Data]) -> None:
    data = load_dataset(dataset, points=5, pool_points=9, normals=True)
    view = data.to_geometric()
    assert (len(view), view.num_classes, view.classes) == (len(dataset), 2, ["0", "1"])
    for row, item in enumerate(view):
        torch.testing.assert_close(item.pos, data[row][0])
        torch.testing.assert_close(item.normal, data.array("normals", row))
        assert item.y.tolist() == [data[row][1]]
    batch = next(iter(DataLoader(view, batch_size=3)))
    assert batch.pos.shape == batch.normal.shape == (int(data.sizes[:3].sum()), 3)
    assert batch.y.tolist() == data.labels[:3].tolist()
    assert batch.validate()


def test_fresh_data_are_new_subsets_each_time() -> None:
    data = load_dataset(clouds(40, 70), points=5)
    fresh = data.to_geometric(fresh=torch.Generator().manual_seed(0))
    assert fresh[1].pos.shape == (5, 3)
    assert not torch.equal(fresh[1].pos, fresh[1].pos)
    again = data.to_geometric(fresh=torch.Generator().manual_seed(0))
    other = data.to_geometric(fresh=torch.Generator().manual_seed(0))
    assert torch.equal(again[0].pos, other[0].pos)


def test_converting_to_torch_geometric_and_back() -> None:
    data = load_dataset(clouds(4, 7, 9), points=5, normalize="none", normals=True)
    back = load_dataset(data.to_geometric(), points=5, normalize="none", normals=True)
    assert back.classes == data.classes
    assert back.sizes.tolist() == data.sizes.tolist()
    for row in range(3):
        assert sorted(back[row][0].tolist()) == sorted(data[row][0].tolist())
        assert sorted(back.array("normals", row).tolist()) == sorted(data.array("normals", row).tolist())


def test_class_names_are_taken() -> None:
    named = type("Named", (list,), {"classes": ["a", "b", "c"]})(meshes())
    data = load_dataset(named, points=5)
    assert (data.classes, data.name, data.source) == (["a", "b", "c"], "Named", "Named")


def test_torch_geometrics_own_data_sets_are_taken(tmp_path: Any) -> None:
    from torch_geometric.data import InMemoryDataset
    from torch_geometric.transforms import SamplePoints

    class Shapes(InMemoryDataset):  # type: ignore[misc]
        """Datasets of the form of GeometricShapes and ModelNet, without the download."""

        def __init__(self, transform: Any = None) -> None:
            super().__init__(None, transform)
            self.data, self.slices = self.collate(meshes())

    assert load_dataset(Shapes(), points=5).sizes.tolist() == [5] * 6
    torch.manual_seed(0)
    sampled = load_dataset(Shapes(SamplePoints(12, include_normals=True)), points=7, normals=True)
    assert sampled.sizes.tolist() == [7] * 6
    assert sampled.has_normals


@pytest.mark.parametrize(
    ("dataset", "options", "words"),
    [
        ([], {}, "is empty"),
        ([Data(x=CORNERS, y=torch.tensor([0]))], {}, "item 0 .* has no pos"),
        ([*meshes(1), Data(pos=CORNERS, face=FACES)], {}, "item 1 .* has y=None"),
        ([Data(pos=CORNERS, y=torch.tensor([0.5]))], {}, "item 0 .*one class"),
        ([Data(pos=CORNERS, y=torch.tensor([0, 1]))], {}, "item 0 .*one class"),
        ([*meshes(2), *clouds(4)], {}, "mixes meshes and clouds: item 2 differs"),
        ([Data(pos=CORNERS * float("nan"), y=torch.tensor([0]))], {}, "item 0 .*cannot be used: point 0.*not finite"),
        ([Data(pos=CORNERS * 0, face=FACES, y=torch.tensor([0]))], {}, "item 0 .*cannot be sampled: .*no area"),
        ([Data(pos=CORNERS * 0 + 2, y=torch.tensor([0]))], {}, r"item 0 .*no extent: all its 4 points are at \[2"),
        ([Data(pos=CORNERS, y=torch.tensor([0]))], {"normals": True}, "item 0 .*there are no normals"),
        (clouds(4), {"sampler": "fps"}, "holds clouds: leave sampler='fps' out"),
        (SimpleNamespace(), {}, "neither a name, a folder nor a torch-geometric"),
        (None, {}, "None is neither a name"),
    ],
)
def test_what_cannot_be_used_is_told_by_its_place(dataset: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        load_dataset(dataset, **{"points": 3, **options})


def test_bad_items_are_named_together_or_left_out() -> None:
    items = clouds(4, 7, 9, 5, 6)
    items[1].pos = items[1].pos * float("nan")
    items[4].y = None
    with pytest.raises(UnreadableShapesError, match=r"2 of 5 items cannot be used .*item 1 .*item 4 ") as caught:
        load_dataset(items, points=4)
    assert set(caught.value.failures) == {"000001", "000004"}
    with pytest.warns(UserWarning, match=r"2 of 5 items .* left out: item 1"):
        data = load_dataset(items, points=4, on_error="skip")
    assert data.names == ["000000", "000002", "000003"]
    assert data.labels.tolist() == [0, 0, 1]
    assert data.describe()["left_out"] == ["000001", "000004"]
    assert [item.pos.shape[0] for item in items if item.y is None] == [6]


def test_too_few_class_names_are_refused() -> None:
    with pytest.raises(PointsetError, match="label 1, and only 1 class names"):
        load_dataset(type("Named", (list,), {"classes": ["only"]})(meshes()))
