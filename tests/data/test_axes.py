"""The upward axis: the default for each kind of file, and turning single files to the axis of a model."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data import Mesh
from pointset.data.axes import turned_up, usual_up
from pointset.data.files.off import write_off
from pointset.data.loading import load_shape_like
from pointset.data.options import DataOptions
from pointset.errors import PointsetError

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 3.0]])
FACES = [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)]


def write_obj(path: Path, corners: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [*("v {} {} {}".format(*corner) for corner in corners), *("f {} {} {}".format(*face) for face in FACES)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def objs(tmp_path: Path, home: Path) -> Path:
    for number in range(4):
        write_obj(tmp_path / "objs" / f"class{number % 2}" / "train" / f"{number}.obj", CORNERS * (number + 1))
    return tmp_path / "objs"


def load(data: Path, **options: Any) -> pointset.PointSets:
    return pointset.load_dataset(data, points=8, pool_points=20, progress=False, **options)


@pytest.mark.parametrize(
    ("names", "up"),
    [(["a.obj", "b/C.GLB"], "y"), (["a.gltf"], "y"), (["a.obj", "a.off"], None), (["a.ply"], None), ([], None)],
)
def test_the_default_axis_of_each_kind_of_file(names: list[str], up: str | None) -> None:
    assert usual_up(names) == up


def test_turning_takes_one_axis_to_the_other_and_back() -> None:
    rows = np.array([[1, 2, 3, 0, 1, 0, 7.0]])
    turned = turned_up(rows, "y", "z", normals=True)
    assert turned.tolist() == [[1, -3, 2, 0, 0, 1, 7]]
    assert turned_up(turned, "z", "y", normals=True).tolist() == rows.tolist()
    assert turned_up(rows, "y", "z")[0, 3:].tolist() == rows[0, 3:].tolist()
    assert turned_up(rows, "z", "z") is rows


def test_a_folder_of_obj_files_is_not_taken_for_z_up_in_silence(objs: Path) -> None:
    with pytest.warns(UserWarning, match=r"objs.*\.obj.*Y up.*--up") as warned:
        sets = load(objs)
    assert (sets.up, sets.describe()["up"], len(warned)) == ("y", "y", 1)
    said = load(objs, up="z")
    assert said.up == "z"
    assert torch.equal(said.points, sets.points)  # pools and points know no axis
    assert said.source_pool.fingerprint([0]) == sets.source_pool.fingerprint([0])
    with pytest.warns(UserWarning, match="Y up"):
        assert load(objs, up="auto").describe() == sets.describe()


def test_obj_files_beside_others_are_not_taken_for_z_up_in_silence(objs: Path) -> None:
    write_off(objs / "class0" / "train" / "5.off", Mesh(CORNERS, np.array(FACES) - 1))
    with pytest.warns(
        UserWarning, match=r"objs holds \.obj files, which usually have Y up, beside others.*--up"
    ) as said:
        assert load(objs).up == "z"
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(objs, up="z")


def test_the_automatic_axis_is_saved_as_in_earlier_versions() -> None:
    assert DataOptions(up="auto").as_dict() == DataOptions().as_dict()


def test_a_file_is_turned_to_the_axis_of_the_model(objs: Path, few: Path) -> None:
    model = load(few).describe()  # OFF files: z
    path = write_obj(objs / "upright.obj", turned_up(CORNERS, "z", "y"))
    upright = load_shape_like(model, write_obj(objs / "z.obj", CORNERS), up="z")
    with pytest.warns(UserWarning, match=r"\.obj files usually have Y up.*Z up.*turned; --up z") as warned:
        turned = load_shape_like(model, path)
    assert len(warned) == 1
    torch.testing.assert_close(turned.points, upright.points)
    np.testing.assert_allclose(turned.raw, upright.raw, atol=1e-6)
    assert turned.mesh is not None
    np.testing.assert_allclose(turned.mesh.vertices, CORNERS)
    with pytest.warns(UserWarning, match=r"declared to have Y up.*they are turned$"):
        assert torch.equal(load_shape_like(model, path, up="y").points, turned.points)
    with pytest.raises(PointsetError, match="'x'"):
        load_shape_like(model, path, up="x")  # type: ignore[arg-type]
    with pytest.raises(PointsetError, match=r"points must be .*got 0"):
        load_shape_like(model, path, points=0)


def test_a_file_of_the_models_own_kind_is_left_as_it_is(objs: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Y up"):
        model = load(objs).describe()
    np.save(tmp_path / "a.npy", CORNERS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load_shape_like(model, objs / "class0" / "train" / "0.obj")
        raw = load_shape_like(model, tmp_path / "a.npy").raw
    with pytest.warns(UserWarning, match="declared to have Z up"):
        turned = load_shape_like(model, tmp_path / "a.npy", up="z").raw
    np.testing.assert_allclose(turned, turned_up(raw, "z", "y"))


def test_a_file_is_upright_as_files_of_its_kind_in_training(objs: Path) -> None:
    model = load(objs, up="z").describe()
    assert (model["up"], model["kinds"]) == ("z", [".obj"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mesh = load_shape_like(model, objs / "class0" / "train" / "0.obj").mesh
    assert mesh is not None
    np.testing.assert_allclose(mesh.vertices, CORNERS)
    with pytest.warns(UserWarning, match="declared to have Y up"):
        load_shape_like(model, objs / "class0" / "train" / "0.obj", up="y")
