"""Labels per point: the parts of shapes10, columns of clouds, their pools, batches and augmentations; bad columns."""

from pathlib import Path

import numpy as np
import pytest
import torch
from toy import write_labelled, write_ply

import pointset
from pointset.data.batches import batches, fixed_batches
from pointset.data.loading import load_like, with_point_classes
from pointset.data.mixing import recipe_augmentations
from pointset.data.options import DataOptions
from pointset.data.readers.reading import read_mesh
from pointset.data.sampling import sample_arrays, sample_points
from pointset.data.shapes10 import KINDS, PARTS, build_shapes10, label_faces
from pointset.data.shapes10.build import make_labelled
from pointset.errors import PointsetError


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    return write_labelled(tmp_path / "rooms")


def load(folder: Path, split: str = "train", **options) -> pointset.PointSets:
    return pointset.load_dataset(folder, split, 20, labels="label", progress=False, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_every_face_of_shapes10_belongs_to_a_part_of_its_kind(kind):
    expected = {"chair": {"seat", "leg"}, "lamp": {"shade", "stem"}, "mug": {"vessel"}, "dresser": {"top", "drawer"}}
    meshes, labels = zip(*(make_labelled(kind, "train", number) for number in range(6)), strict=True)
    assert [len(own) for own in labels] == [len(mesh.faces) for mesh in meshes]
    seen = {PARTS[label] for label in np.concatenate(labels)}
    assert expected.get(kind, set()) <= seen
    assert len(seen) > 1


def test_labels_of_sampled_points_are_those_of_the_faces_that_they_lie_on():
    mesh, labels = make_labelled("chair", "train", 0)
    for sampler in ("uniform", "fps"):
        arrays = sample_arrays(mesh, 100, seed=3, sampler=sampler, normals=False, face_labels=labels)
        assert np.array_equal(arrays["points"], sample_points(mesh, 100, seed=3, sampler=sampler))
        corners = mesh.vertices[mesh.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True).clip(min=1e-12)
        size = np.ptp(mesh.vertices, axis=0).max()
        for point, label in zip(arrays["points"].astype(float), arrays["labels"], strict=True):
            own = labels == label
            heights = np.abs(((point - corners[own, 0]) * normals[own]).sum(axis=1))
            assert heights.min() < 1e-6 * size


def test_meshes_of_a_folder_of_shapes10_get_their_parts_back(tmp_path):
    build_shapes10(tmp_path / "shapes10", seed=7, train=2, test=1, progress=False)
    path = tmp_path / "shapes10" / "mug" / "test" / "mug_0003.off"
    assert np.array_equal(label_faces(path, read_mesh(path)), make_labelled("mug", "test", 0, 7)[1])
    other = tmp_path / "shapes10" / "mug" / "train" / "mug_0001.off"
    with pytest.raises(PointsetError, match="other faces"):
        label_faces(path, read_mesh(other))
    moved = tmp_path / "elsewhere" / "mug" / "test" / "mug_0003.off"
    with pytest.raises(PointsetError, match="no labels"):
        label_faces(moved, read_mesh(path))


def test_a_column_of_clouds_is_read_by_name_and_follows_its_points(clouds):
    sets = load(clouds)
    plain = pointset.load_dataset(clouds, "train", 20, progress=False)
    assert torch.equal(sets.points, plain.points)
    assert sets.point_classes == ["2", "6"]
    assert sets.inputs == 3
    assert sets.describe()["point_classes"] == ["2", "6"]
    assert "labels" not in plain.describe()
    assert sets.fingerprint != plain.fingerprint
    labels = sets.point_labels
    assert torch.equal(torch.cat([batch.labels for batch in fixed_batches(sets, 4)]), labels)
    assert labels.shape == sets.points.shape[:2]
    assert labels.unique().tolist() == [-1, 0, 1]
    raw = pointset.load_dataset(clouds, "train", 20, labels="label", normalize="none", progress=False)
    known = labels >= 0
    assert torch.equal(raw.points[known][:, 2] > 0, labels[known] == 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"6": "ceiling", "2": "floor", "9": "door"}', None),
        ('{"2": "floor"}', "label 6"),
        ("[1]", "table of names"),
        ('{"2": "a", "6": "a"}', "its own"),
    ],
)
def test_names_of_labels_come_from_a_file_beside_the_clouds(clouds, content, words):
    (clouds / "labels.json").write_text(content)
    if words is None:
        sets = load(clouds)
        assert sets.point_classes == ["floor", "ceiling", "door"]
        assert sets.point_labels.unique().tolist() == [-1, 0, 1]
        return
    with pytest.raises(PointsetError, match=words):
        load(clouds)


@pytest.mark.parametrize("names", [("scale", "rotate-up", "drop", "crop", "uneven"), ("jitter", "cutmix-r")])
def test_augmentations_keep_labels_with_their_points(clouds, names):
    sets = pointset.load_dataset(clouds, "train", 40, labels="label", features="x", normalize="none", progress=False)
    augment, mix = recipe_augmentations(names)
    for batch in batches(sets, 4, seed=0, epoch=0, augment=augment, mix=mix, size=lambda index: 30):
        assert batch.labels.shape == batch.points.shape[:2]
        assert batch.points.shape[2] == 4
        assert batch.mask is None or (batch.labels[~batch.mask] == -1).all()
    heights = pointset.load_dataset(clouds, "train", 40, labels="label", features="z", normalize="none", progress=False)
    for batch in batches(heights, 4, seed=0, epoch=0, augment=augment, mix=mix):
        known = batch.labels >= 0
        assert torch.equal(batch.points[known][:, 3] > 0, batch.labels[known] == 1)


def test_other_splits_get_the_classes_of_training(clouds):
    description = load(clouds).describe()
    test = load_like(description, "test")
    assert test.point_classes == ["2", "6"]
    swapped = with_point_classes(test, ["6", "9", "2"])
    assert torch.equal(swapped.point_labels, torch.tensor([-1, 2, 0])[test.point_labels + 1])
    with pytest.raises(PointsetError, match=r"'6'.*does not know.*2, 9"):
        with_point_classes(test, ["2", "9"])


@pytest.mark.parametrize(
    ("labels", "kind", "name", "words"),
    [
        ([0, 1, 0], "int", "part", "lacks the feature 'label'"),
        ([0, 1.5, 0], "double", "label", "whole number"),
        ([0, np.nan, 0], "double", "label", "not finite"),
        ([-1] * 5, "int", "label", "no point"),
        (range(1500), "int", "label", "1,500 labels"),
    ],
)
def test_columns_that_are_no_labels_are_refused(labels, kind, name, words, clouds):
    points = np.random.default_rng(0).normal(size=(len(labels), 3))
    write_ply(clouds / "bad" / "room" / "train" / "0.ply", points, np.array(labels), kind, name)
    with pytest.raises(PointsetError, match=words):
        load(clouds / "bad")


def test_labels_are_neither_features_nor_of_meshes(tmp_path, few, home):
    with pytest.raises(PointsetError, match="labels must be a column"):
        DataOptions(labels="label", features=("label",))
    with pytest.raises(PointsetError, match="no labels"):
        pointset.load_dataset(few, "train", 10, labels="part", progress=False)
    with pytest.raises(PointsetError, match="without labels per point"):
        _ = pointset.load_dataset(few, "train", 10, progress=False).point_labels


def test_labels_of_points_in_memory():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 3)) for size in (9, 7, 7)]
    labels = [np.where(cloud[:, 0] > 0, 3, 1) for cloud in X]
    labels[0][0] = -1
    sets = pointset.from_arrays(X, point_labels=labels, normalize="none")
    assert sets.point_classes == ["1", "3"]
    known = sets.point_labels >= 0
    assert int(known.sum()) == 22
    assert torch.equal(sets.points[known][:, 0] > 0, sets.point_labels[known] == 1)
    named = pointset.from_arrays(X, ["a", "b", "a"], point_labels=labels, point_classes=["w", "x", "y", "z"])
    assert (named.point_classes, named.classes) == (["w", "x", "y", "z"], ["a", "b"])


def test_labels_of_a_torch_geometric_dataset():
    from torch_geometric.data import Data

    generator = torch.Generator().manual_seed(0)
    places = [torch.randn(size, 3, generator=generator) for size in (9, 7)]
    items = [Data(pos=pos, y=(pos[:, 0] > 0).long(), category=torch.tensor([1])) for pos in places]
    sets = pointset.load_dataset(items, points=6, labels="y", normalize="none")
    assert sets.point_classes == ["0", "1"]
    assert torch.equal(sets.points[..., 0] > 0, sets.point_labels == 1)
    with pytest.raises(PointsetError, match="point_labels"):
        pointset.load_dataset(items, points=6, labels="part")
