"""The HDF5 release's layout, made by hand and for real."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pointset.data.catalogue.hdf5 import is_hdf5_folder, read_hdf5_folder
from pointset.errors import PointsetError

RNG = np.random.default_rng(0)


def write_file(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values


def clouds(count: int, points: int = 7) -> np.ndarray:
    return RNG.standard_normal((count, points, 3)).astype(np.float32)


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """Two training files of 3 and 2 clouds, one test file of 2; three classes."""
    (tmp_path / "shape_names.txt").write_text("airplane\nbathtub\nbed\n")
    (tmp_path / "train_files.txt").write_text("data/elsewhere/ply_data_train0.h5\nC:\\data\\ply_data_train1.h5\n")
    (tmp_path / "test_files.txt").write_text("data/elsewhere/ply_data_test0.h5\n")
    write_file(tmp_path / "ply_data_train0.h5", data=clouds(3), label=np.array([[0], [2], [1]], np.uint8))
    write_file(tmp_path / "ply_data_train1.h5", data=clouds(2), label=np.array([[2], [2]], np.uint8))
    write_file(tmp_path / "ply_data_test0.h5", data=clouds(2), label=np.array([[1], [0]], np.uint8))
    return tmp_path


def test_files_are_read_in_the_order_of_their_list_by_base_name(release: Path) -> None:
    assert is_hdf5_folder(release)
    assert not is_hdf5_folder(release.parent)
    train = read_hdf5_folder(release, "train")
    with h5py.File(release / "ply_data_train0.h5") as first, h5py.File(release / "ply_data_train1.h5") as second:
        np.testing.assert_array_equal(train.points, np.concatenate([first["data"][:], second["data"][:]]))
    assert train.labels.tolist() == [0, 2, 1, 2, 2]
    assert train.labels.dtype == np.int64
    assert train.points.dtype == np.float32
    assert train.classes == ["airplane", "bathtub", "bed"]
    assert train.names[2:4] == ["ply_data_train0/2", "ply_data_train1/0"]
    assert len(set(train.names)) == 5


def test_double_precision_and_flat_labels_are_taken(release: Path) -> None:
    write_file(release / "ply_data_test0.h5", data=clouds(2).astype(np.float64), label=np.array([1, 0]))
    test = read_hdf5_folder(release, "test")
    assert test.points.dtype == np.float32
    assert test.labels.tolist() == [1, 0]


def put(name: str, content: bytes | None) -> Any:
    """Replace a file of the release, or remove it."""
    return lambda folder: (folder / name).unlink() if content is None else (folder / name).write_bytes(content)


def break_nothing_but(name: str, **arrays: Any) -> Any:
    return lambda folder: write_file(folder / name, **arrays)


GOOD_LABEL = np.array([[1], [0]], np.uint8)
WITH_NAN = clouds(2)
WITH_NAN[1, 3, 2] = np.nan


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (put("ply_data_test0.h5", None), "ply_data_test0.h5.*missing"),
        (put("ply_data_test0.h5", b"no HDF5"), "ply_data_test0.h5.*HDF5"),
        (put("shape_names.txt", None), "shape_names.txt is missing.*classes"),
        (put("test_files.txt", None), "test_files.txt is missing.*test files"),
        (put("test_files.txt", b"\n \n"), "test_files.txt is empty"),
        (put("test_files.txt", b"a/ply_data_test0.h5\nb/ply_data_test0.h5\n"), "ply_data_test0.h5 .*twice in .*test_f"),
        (
            put("train_files.txt", b"ply_data_test0.h5\n"),
            "ply_data_test0.h5 .*in test_files.txt and in train_files.txt",
        ),
        (put("shape_names.txt", "théière\nbed\nsofa\n".encode("latin-1")), "shape_names.txt .*UTF-8"),
        (break_nothing_but("ply_data_test0.h5", label=GOOD_LABEL), "no data set 'data': found label"),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2)), "no data set 'label': found data"),
        (
            break_nothing_but("ply_data_test0.h5", data=clouds(3), label=GOOD_LABEL),
            r"'label' must be integers \[3, 1\]",
        ),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2), label=GOOD_LABEL / 2), "'label' must be integers"),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2)[..., :2], label=GOOD_LABEL), r"floats \[N, P, 3\], got"),
        (break_nothing_but("ply_data_test0.h5", data=np.ones((2, 7, 3), int), label=GOOD_LABEL), "must be floats"),
        (
            break_nothing_but("ply_data_test0.h5", data=clouds(2), label=GOOD_LABEL + 2),
            "row 0 has label 3.*only 3 classes",
        ),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2), label=[[0], [-1]]), "row 1 has label -1"),
        (break_nothing_but("ply_data_test0.h5", data=WITH_NAN, label=GOOD_LABEL), "row 1 .*not finite"),
    ],
)
def test_a_damaged_release_is_refused_by_file(release: Path, damage: Any, words: str) -> None:
    damage(release)
    with pytest.raises(PointsetError, match=words) as caught:
        read_hdf5_folder(release, "test")
    assert str(release) in str(caught.value)


def test_clouds_of_different_sizes_are_refused(release: Path) -> None:
    write_file(release / "ply_data_train1.h5", data=clouds(2, points=8), label=[[2], [2]])
    with pytest.raises(PointsetError, match=r"different sizes: \[7, 8\]"):
        read_hdf5_folder(release, "train")


def test_the_real_release_has_the_official_counts(real_data: Path) -> None:
    folder = real_data / "modelnet40_ply_hdf5_1024"
    test = read_hdf5_folder(folder, "test")
    assert test.points.shape == (2468, 1024, 3)
    assert len(test.classes) == 40
    counts = np.bincount(test.labels, minlength=40)
    assert (counts[[0, 1, 8]] == [100, 50, 100]).all()
    assert np.abs(np.linalg.norm(test.points, axis=2).max(axis=1) - 1).max() < 1e-4
