"""Point features besides coordinates: from files and arrays, through sampling and augmentation, to models."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data import augmentation_from_names, read_cloud
from pointset.data.augmentations import CutMix
from pointset.data.options import DataOptions
from pointset.errors import PointsetError

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(9, 3))
NORMALS = POINTS / np.linalg.norm(POINTS, axis=1, keepdims=True)
COLORS = RNG.integers(0, 256, (9, 3)).astype(np.uint8)
RISING = np.arange(9.0)
BESIDE = {"normals": NORMALS, "colors": COLORS / 255, "intensity": RISING[:, None], "columns": RISING[:, None]}
"""What the files hold beside the points, by the names of features."""
PLY = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("intensity", "f8"), ("red", "u1"), ("green", "u1"), ("blue", "u1")]
PCD = "VERSION 0.7\nFIELDS x y z intensity\nSIZE 4 4 4 4\nTYPE F F F F\nWIDTH 9\nHEIGHT 1\nPOINTS 9\nDATA {}\n"
PLAIN = np.hstack([POINTS, NORMALS * 5, RISING[:, None]])


def write(path: Path) -> Path:
    """Write the points and what the format can hold beside them; as text if the file is called so."""
    text = "text" in path.name
    if path.suffix == ".npy":
        np.save(path, PLAIN)
    elif path.suffix == ".npz":
        np.savez(path, allow_pickle=False, points=POINTS, normals=NORMALS * 5, columns=RISING, colors=COLORS)
    elif path.suffix == ".txt":
        np.savetxt(path, PLAIN, delimiter=",")
    else:
        rows = [(*map(float, point), float(RISING[i]), *map(int, COLORS[i])) for i, point in enumerate(POINTS)]
        names = {"f4": "float", "f8": "double", "u1": "uchar"}
        fields = "".join(f"property {names[kind]} {name}\n" for name, kind in PLY)
        form, kind = ("ascii", "ascii") if text else ("binary_little_endian", "binary")
        head = f"ply\nformat {form} 1.0\nelement vertex 9\n{fields}end_header\n"
        table = np.array(rows, PLY)
        if path.suffix == ".pcd":
            rows, head = [row[:4] for row in rows], PCD.format(kind)
            table = np.column_stack([POINTS, RISING]).astype("<f4")
        lines = "".join(" ".join(map(repr, row)) + "\n" for row in rows)
        path.write_bytes(head.encode() + (lines.encode() if text else table.tobytes()))
    return path


@pytest.mark.parametrize(
    ("name", "features"),
    [
        *((f"{kind}.ply", ["colors", "intensity"]) for kind in ("text", "binary")),
        *((f"{kind}.pcd", ["intensity"]) for kind in ("text", "binary")),
        *((f"a.{kind}", ["normals", "columns"]) for kind in ("npy", "npz", "txt")),
    ],
)
def test_features_are_read_from_files(name: str, features: list[str], tmp_path: Path) -> None:
    path, expected = write(tmp_path / name), np.hstack([POINTS, *(BESIDE[feature] for feature in features)])
    further = [feature for feature in features if feature != "normals"]
    cloud = read_cloud(path, normals="normals" in features, features=further)
    arrays = [array for array in (cloud.points, cloud.normals, cloud.features) if array is not None]
    np.testing.assert_allclose(np.hstack(arrays), expected, atol=1e-6)
    with pytest.raises(PointsetError, match=rf"{name}.*'density'"):
        read_cloud(path, features=["density"])


def cloud_folder(folder: Path) -> Path:
    for number in range(8):
        place = folder / "clouds" / f"class{number % 2}" / ("test" if number > 5 else "train")
        place.mkdir(parents=True, exist_ok=True)
        write(place / f"{number}.ply")
    return folder / "clouds"


def test_a_folder_of_clouds_trains_a_model_of_its_features(tmp_path: Path, home: Path) -> None:
    folder = cloud_folder(tmp_path)
    train = pointset.load_dataset(folder, points=5, features=["colors", "intensity"], progress=False)
    assert (train.inputs, train.options.features, train.points.shape) == (7, ("colors", "intensity"), (6, 5, 7))
    places = {tuple(row) for row in np.column_stack([COLORS / 255, RISING]).astype(np.float32).tolist()}
    drawn = train.draw([0, 1], torch.Generator().manual_seed(0))
    assert {tuple(row) for row in drawn[0, :, 3:].tolist()} <= places
    again = pointset.load_dataset(folder, points=5, features=["colors", "intensity"], progress=False)
    plain = pointset.load_dataset(folder, points=5, progress=False)
    assert torch.equal(again.points, train.points)
    assert torch.equal(plain.points, train.points[..., :3])
    assert plain.describe()["features"] == []
    assert len({train.fingerprint, again.fingerprint, plain.fingerprint}) == 2
    model = pointset.create_model("isab4-pma", classes=2, inputs=7, dim=8, heads=2)
    pointset.fit(model, train, pointset.Recipe(epochs=1, batch_size=3, augment=("jitter", "cutmix-r")), progress=False)
    assert pointset.evaluate(model, again).logits.shape == (6, 2)
    for use in (pointset.fit, pointset.evaluate):
        with pytest.raises(PointsetError, match=r"takes 7 numbers .* have 3: create the model with inputs=3"):
            use(model, plain)


def test_normals_of_meshes_stand_behind_the_coordinates(few: Path, home: Path) -> None:
    sets = pointset.load_dataset(few, points=9, pool_points=30, features="normals", progress=False)
    assert sets.inputs == 6
    lengths = sets.points[..., 3:].norm(dim=2)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))
    plain = pointset.load_dataset(few, points=9, pool_points=30, progress=False)
    assert plain.inputs == 3
    torch.testing.assert_close(plain.points, sets.points[..., :3])
    with pytest.raises(PointsetError, match=r"meshes.*colors"):
        pointset.load_dataset(few, features="colors", progress=False)
    shape = sets.preparation.prepare(few / "class0" / "train" / "shape0.off")
    assert shape.points.shape == (9, 6)


def test_features_of_arrays() -> None:
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
def test_points_keep_their_features(change: Any) -> None:
    places = torch.rand(3, 8, 3)
    given = torch.cat([places, 10 * places], dim=2)
    changed = change(given, torch.Generator().manual_seed(0))
    rows = changed if isinstance(changed, torch.Tensor) else changed.points
    assert not torch.equal(rows, given)
    torch.testing.assert_close(rows[..., 3:], 10 * rows[..., :3])


def test_options_put_normals_first() -> None:
    options = DataOptions.from_dict({"features": ["colors", "normals"]})
    assert (options.features, options.further) == (("normals", "colors"), ("colors",))
    assert DataOptions(features="normals") == DataOptions(features=("normals",))  # type: ignore[arg-type]
    assert DataOptions().as_dict()["features"] == []
    with pytest.raises(PointsetError, match="different"):
        DataOptions(features=("a", "a"))


@pytest.mark.parametrize("sizes", [(9, 9), (9, 4)], ids=["even", "ragged"])
def test_any_array_of_a_pool_follows_its_points(sizes: tuple[int, int], tmp_path: Path) -> None:
    """Here ten times the coordinates."""
    points = RNG.integers(0, 100, (sum(sizes), 3)).astype(np.float32)
    np.save(tmp_path / "normals.npy", 10 * points)
    normals = np.load(tmp_path / "normals.npy", mmap_mode="r")
    even = sizes == (9, 9)
    options = DataOptions(points=7, normalize="none", features=("normals",))
    pool = pointset.data.Pool(
        points.reshape(2, 9, 3) if even else points,
        ["a", "b"],
        np.arange(2),
        ["x", "y"],
        "as released",
        arrays={"normals": np.ascontiguousarray(normals).reshape(2, 9, 3) if even else normals},
        offsets=None if even else np.cumsum([0, *sizes]),
    )
    sets = pickle.loads(pickle.dumps(pointset.data.PointSets(pool, options)))
    for rows in (sets.points, sets.draw([1, 0], torch.Generator().manual_seed(0))):
        assert torch.equal(rows[..., 3:], 10 * rows[..., :3])
    assert (sets.mask is None) == even
