"""Clouds in memory as point sets, and point features besides coordinates: from files and arrays to models."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import pointset
from pointset import DataOptions, PointsetError
from pointset.data import CutMix, augmentation_from_names
from pointset.data.preparation import prepare
from pointset.data.unusable import UnreadableShapesError

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(9, 3))
NORMALS = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
COLORS = RNG.integers(0, 256, (9, 3)).astype(np.uint8)
RISING = np.arange(9.0)
PLY = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f8"), ("red", "u1"), ("green", "u1"), ("blue", "u1")]


def write(path: Path) -> None:
    names = {"f4": "float", "f8": "double", "u1": "uchar"}
    fields = "".join(f"property {names[kind]} {name}\n" for name, kind in PLY)
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex 9\n{fields}end_header\n"
    table = np.rec.fromarrays([*POINTS.T, RISING, *COLORS.T], dtype=PLY)
    path.write_bytes(head.encode() + table.tobytes())


def test_a_folder_of_clouds_trains_a_model_of_its_features(tmp_path, home):
    folder = tmp_path / "clouds"
    for number in range(8):
        place = folder / f"class{number % 2}" / ("test" if number > 5 else "train")
        place.mkdir(parents=True, exist_ok=True)
        write(place / f"{number}.ply")
    train = pointset.load_dataset(folder, points=5, features=["colors", "intensity"], progress=False)
    assert (train.inputs, train.options.features, train.points.shape) == (7, ("colors", "intensity"), (6, 5, 7))
    places = {tuple(row) for row in np.column_stack([COLORS / 255, RISING]).astype(np.float32).tolist()}
    drawn = train.draw([0, 1], torch.Generator().manual_seed(0))
    assert {tuple(row) for row in drawn[0, :, 3:].tolist()} <= places
    again = pointset.load_dataset(folder, points=5, features=["colors", "intensity"], progress=False)
    plain = pointset.load_dataset(folder, points=5, progress=False)
    assert torch.equal(again.points, train.points)
    assert torch.equal(plain.points, train.points[..., :3])
    assert plain.preparation.features == ()
    assert len({train.fingerprint, again.fingerprint, plain.fingerprint}) == 2
    model = pointset.create_model("isab4-pma", classes=2, inputs=7, dim=8, heads=2)
    pointset.fit(model, train, pointset.Recipe(epochs=1, batch_size=3, augment=("jitter", "cutmix-r")), progress=False)
    assert pointset.evaluate(model, again).logits.shape == (6, 2)
    for use in (pointset.fit, pointset.evaluate):
        with pytest.raises(PointsetError, match=r"takes 7 values .* has 3: create the model with inputs=3"):
            use(model, plain)


def test_normals_of_meshes_stand_behind_the_coordinates(few, home):
    sets = pointset.load_dataset(few, points=9, cache_points=30, features="normals", progress=False)
    assert sets.inputs == 6
    with pytest.raises(PointsetError, match=r"meshes.*colors"):
        pointset.load_dataset(few, features="colors", progress=False)
    shape = prepare(few / "class0" / "train" / "shape0.off", sets.preparation)
    assert shape.points.shape == (9, 6)


def test_features_of_arrays():
    clouds, normals = np.stack([POINTS, POINTS * 2]), np.stack([NORMALS * 3, NORMALS])
    given = {"shine": np.stack([RISING, RISING]), "normals": normals}
    sets = pointset.from_arrays(clouds, [0, 1], features=given)
    assert (sets.inputs, sets.options.features) == (7, ("normals", "shine"))
    torch.testing.assert_close(sets.points[0, :, 3:6].norm(dim=1), torch.ones(9))
    wide = pointset.from_arrays(np.concatenate([clouds, normals], axis=2), [0, 1])
    apart = pointset.from_arrays(clouds, [0, 1], features=list(normals))
    assert wide.options.features == apart.options.features == ("columns",)
    both = pointset.from_arrays(np.concatenate([clouds, normals], axis=2), [0, 1], features=given)
    assert (both.options.features, both.inputs) == (("normals", "columns", "shine"), 10)
    assert torch.equal(wide.points, apart.points)
    assert wide.fingerprint == apart.fingerprint
    ragged = pointset.from_arrays([clouds[0], clouds[1, :4]], [0, 1], features=[RISING, RISING[:4]])
    assert ragged.points.shape == (2, 9, 4)


@pytest.mark.parametrize("change", [augmentation_from_names(("drop",)), CutMix("random", 1.0), CutMix("nearest", 1.0)])
def test_points_keep_their_features(change):
    places = torch.rand(3, 8, 3)
    given = torch.cat([places, 10 * places], dim=2)
    changed = change(given, torch.Generator().manual_seed(0))
    rows = changed if isinstance(changed, torch.Tensor) else changed.points
    assert not torch.equal(rows, given)
    torch.testing.assert_close(rows[..., 3:], 10 * rows[..., :3])


@pytest.mark.parametrize("sizes", [(9, 9), (9, 4)], ids=["even", "ragged"])
def test_any_array_of_a_cache_follows_its_points(sizes, tmp_path):
    """Here ten times the coordinates."""
    points = RNG.integers(0, 100, (sum(sizes), 3)).astype(np.float32)
    np.save(tmp_path / "normals.npy", 10 * points)
    normals = np.load(tmp_path / "normals.npy", mmap_mode="r")
    even = sizes == (9, 9)
    options = DataOptions(points=7, normalize="none", features=("normals",))
    cache = pointset.data.PointCache(
        points.reshape(2, 9, 3) if even else points,
        ["a", "b"],
        np.arange(2),
        ["x", "y"],
        arrays={"normals": np.ascontiguousarray(normals).reshape(2, 9, 3) if even else normals},
        offsets=None if even else np.cumsum([0, *sizes]),
    )
    sets = pickle.loads(pickle.dumps(pointset.data.PointSets(cache, options)))
    for rows in (sets.points, sets.draw([1, 0], torch.Generator().manual_seed(0))):
        assert torch.equal(rows[..., 3:], 10 * rows[..., :3])
    assert (sets.mask is None) == even


X = RNG.normal(size=(6, 7, 3))
Y = ["b", "a", "b", "a", "c", "c"]


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.astype(np.float32),
        torch.tensor(X, requires_grad=True),
        list(X),
        [torch.tensor(one) for one in X],
        X.tolist(),
        np.array([*X, None], dtype=object)[:-1],
        np.asfortranarray(X),
        X.astype(">f8"),
        *(torch.tensor(10 * X).to(kind) for kind in (torch.float16, torch.bfloat16, torch.int32)),
    ],
)
def test_arrays_and_tensors_of_all_types_give_the_same_sets(given):
    sets = pointset.from_arrays(given, Y, normalize="none")
    assert (sets.classes, sets.labels.tolist(), sets.size) == (["a", "b", "c"], [1, 0, 1, 0, 2, 2], 7)
    clouds = np.array([cloud if isinstance(cloud, list) else cloud.tolist() for cloud in given], np.float32)
    assert sorted(sets[3][0].tolist()) == sorted(clouds[3].tolist())
    assert sets.fingerprint == pointset.from_arrays(clouds, Y).fingerprint


@pytest.mark.parametrize(
    ("y", "classes", "labels", "known"),
    [
        ([10, 9, 10], None, [1, 0, 1], ["9", "10"]),
        (np.array([1, 0, 1], np.uint8), ["cup", "jug", "pot"], [1, 0, 1], ["cup", "jug", "pot"]),
        (["jug", "cup", "jug"], ["pot", "jug", "cup"], [1, 2, 1], ["pot", "jug", "cup"]),
        ([10, 9, 10], ["9", "10"], [1, 0, 1], ["9", "10"]),
        ([10, 9, 10], [10, 9], [0, 1, 0], ["10", "9"]),
        (torch.tensor([2, 0, 2]), None, [1, 0, 1], ["0", "2"]),
        ([0, 1, 0], ["-1", "0", "1"], [1, 2, 1], ["-1", "0", "1"]),
        ([-1, 1, -1], [-1, 1], [0, 1, 0], ["-1", "1"]),
        (np.array([1, -1, 7], np.int8), ["+1", "07", "-1"], [0, 2, 1], ["+1", "07", "-1"]),
        ([-3, 5, -3], None, [0, 1, 0], ["-3", "5"]),
    ],
)
def test_labels_are_places_or_names(y, classes, labels, known):
    sets = pointset.from_arrays(X[:3], y, classes)
    assert (sets.labels.tolist(), sets.classes) == (labels, known)
    if classes is None:  # those of training name those of a test
        assert pointset.from_arrays(X[:1], y[-1:], sets.classes, split="test").labels.tolist() == labels[-1:]


NAN = X.copy()
NAN[4, 2, 1] = np.nan


@pytest.mark.parametrize(
    ("given", "y", "options", "said"),
    [
        (X, Y[:5], {}, ["6 clouds", "got 5"]),
        (NAN, Y, {}, ["cloud 4", "not finite"]),
        (X[..., :2], Y, {}, ["cloud 0", "[n, 3] or more columns", "[7, 2]"]),
        ([X[0], X[1, :0]], [0, 1], {}, ["cloud 1", "no point"]),
        ([X[0], X[1] * 0 + 2], [0, 1], {}, ["cloud 1", "no extent"]),
        ([X[0], X[1] * 1e39], [0, 1], {}, ["cloud 1", "float32"]),
        ([X[0], np.hstack([X[1]] * 2)], [0, 1], {}, ["0 columns in '000000' and 3 in '000001'", "make them"]),
        (X[:2], [0, 3], {"classes": ["a", "b"]}, ["3", "cloud 1", "2 classes"]),
        (X[:2], ["a", "z"], {"classes": ["a", "b"]}, ["'z'", "cloud 1", "'a, b'"]),
        (X[:2], [0.5, 1.0], {"classes": ["a", "b"]}, ["whole numbers or", "names"]),
        (X[:2], [0, 1], {"classes": ["a", "a"]}, ["'a' ", "twice"]),
        (X[:2], [0, 1], {"names": ["a", "a"]}, ["names", "'a' ", "twice"]),
        (X[0], [0], {}, ["X[None]"]),
        ([], [], {}, ["X is empty"]),
        ("chairs", [0], {}, ["X must be", "str"]),
        (X.transpose(0, 2, 1), Y, {}, ["[3, 7]", "looks transposed", "cloud.T"]),
        (np.ma.masked_greater(X, X.max() - 1e-6), Y, {}, ["cloud", "masked entries", "leave those points out"]),
        (X, np.ma.masked_equal([0, 1, 0, 1, 0, 7], 7), {}, ["masked entries"]),
        (torch.tensor(X).to_sparse(), Y, {}, ["dense", "to_dense()"]),
        (X[:2], [0, 1], {"features": [X[0, :, 0], X[0, :4, 0]]}, ["cloud 1", "features"]),
        (X[:2], [0, 1], {"features": [X[0, :, 0]]}, ["2 clouds of X", "got 1"]),
        (X[:2], [0, 1], {"features": 3}, ["features", "int"]),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(given, y, options, said):
    with pytest.raises(PointsetError) as raised:
        pointset.from_arrays(given, y, **options)
    assert all(word in str(raised.value) for word in said), raised.value
    assert "\n" not in str(raised.value)


def test_all_bad_clouds_are_named_and_may_be_left_out():
    with pytest.raises(UnreadableShapesError) as raised:
        pointset.from_arrays([X[0], NAN[4], X[1, :0]], [0, 1, 0])
    assert list(raised.value.failures) == ["000001", "000002"]
    copied = pickle.loads(pickle.dumps(raised.value))
    assert (str(copied), vars(copied)) == (str(raised.value), vars(raised.value))
    with pytest.warns(UserWarning, match="1 of 3 clouds") as warned:
        sets = pointset.from_arrays([X[0], NAN[4], X[1]], ["a", "b", "c"], on_error="skip")
    assert warned[0].filename == __file__
    assert (sets.labels.tolist(), sets.describe()["left_out"]) == ([0, 2], ["000001"])


def frames() -> list[pd.DataFrame]:
    """Tables with the time first, as sensors write them."""
    rising, names = RISING[:7, None], ["time", "x", "Y", "z [m]", "heat"]
    return [pd.DataFrame(np.hstack([rising, cloud, rising + row]), columns=names) for row, cloud in enumerate(X)]


def test_tables_have_their_columns_by_name():
    plain = pointset.from_arrays(X, Y)
    for tables in (frames(), pd.Series(frames())):
        assert torch.equal(pointset.from_arrays(tables, Y).points, plain.points)
    warm = pointset.from_arrays(frames(), Y, features=["heat"])
    assert warm.options.features == ("heat",)
    assert {*warm.points[1, :, 3].tolist()} <= {*(RISING + 1).tolist()}
    with pytest.raises(UnreadableShapesError, match=r"cloud 0 of X .*expected columns x, y and z, found 'time, heat'"):
        pointset.from_arrays([frame[["time", "heat"]] for frame in frames()], Y)
    with pytest.raises(PointsetError, match="lacks the feature 'cold'"):
        pointset.from_arrays(frames(), Y, features=["cold"])


def test_predictions_take_what_point_sets_are_made_of():
    model = pointset.create_model("isab4-pma", classes=3, dim=8, heads=2)
    pointset.fit(model, pointset.from_arrays(X, Y), pointset.Recipe(epochs=1, batch_size=3), progress=False)
    expected = model.predict(X.astype(np.float32)).tolist()
    for clouds in (frames(), pd.Series(frames()), pd.Series([*X.astype(np.float32)])):
        assert model.predict(clouds).tolist() == expected
    assert model.predict(frames()[0]).tolist() == expected[:1]
    for transposed in (X[0].T.copy(), X.transpose(0, 2, 1).copy()):
        with pytest.raises(PointsetError, match="look transposed"):
            model.predict(transposed)
