"""The layout of the HDF5 release: small copies, and the real data."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from pointset.data.catalogue.released import is_released, read_released
from pointset.data.unusable import UnreadableShapesError
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
    assert is_released(release)
    assert not is_released(release.parent)
    train = read_released(release, "train")
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
    test = read_released(release, "test")
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
        (
            put("test_files.txt", b"a/ply_data_test0.h5\nb/ply_data_test0.h5\n"),
            "ply_data_test0.h5. .*twice in .*test",
        ),
        (
            put("train_files.txt", b"ply_data_test0.h5\n"),
            "ply_data_test0.h5. .*in test_files.txt and in train_files.txt",
        ),
        (put("shape_names.txt", "théière\nbed\nsofa\n".encode("latin-1")), "shape_names.txt .*UTF-8"),
        (break_nothing_but("ply_data_test0.h5", label=GOOD_LABEL), "no dataset 'data': found label"),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2)), "no dataset 'label': found data"),
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
        read_released(release, "test")
    assert str(release) in str(caught.value)


def linked(link: Any) -> Any:
    """Replace `data` by a link."""

    def damage(folder: Path) -> None:
        with h5py.File(folder / "ply_data_test0.h5", "a") as file:
            del file["data"]
            file["data"] = link

    return damage


def made(**how: Any) -> Any:
    """Replace `data` by a dataset created with these arguments."""

    def damage(folder: Path) -> None:
        with h5py.File(folder / "ply_data_test0.h5", "a") as file:
            del file["data"]
            file.create_dataset("data", **how)

    return damage


def virtual(folder: Path) -> None:
    layout = h5py.VirtualLayout((2, 7, 3), "f4")
    layout[:] = h5py.VirtualSource("gone.h5", "data", (2, 7, 3))
    with h5py.File(folder / "ply_data_test0.h5", "a") as file:
        del file["data"]
        file.create_virtual_dataset("data", layout)


def half_written(folder: Path) -> None:
    with h5py.File(folder / "ply_data_test0.h5", "a") as file:
        del file["data"]
        file.create_dataset("data", (2, 7, 3), "f4", chunks=(1, 7, 3))[0] = clouds(1)[0]


def misplaced(folder: Path) -> None:
    """One of two chunks has an offset beyond the array, so HDF5 would read zeros in its place."""
    path = folder / "ply_data_test0.h5"
    with h5py.File(path, "a") as file:
        del file["data"]
        file.create_dataset("data", data=clouds(2), chunks=(1, 7, 3))
    content = path.read_bytes()
    key = np.array([1, 0, 0, 0], "<u8").tobytes()
    assert content.count(key) == 1
    path.write_bytes(content.replace(key, np.array([1, 7 << 40, 0, 0], "<u8").tobytes()))


def of_an_odd_type(folder: Path) -> None:
    """A floating-point type with another exponent bias: HDF5 would read numbers multiplied by a power of two."""
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(120)
    with h5py.File(folder / "ply_data_test0.h5", "a") as file:
        del file["data"]
        made = h5py.h5d.create(file.id, b"data", kind, h5py.h5s.create_simple((2, 7, 3)))
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, clouds(2))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (linked(h5py.SoftLink("/nowhere")), "'data' must be an array in this file"),
        (linked(h5py.ExternalLink("gone.h5", "/data")), "'data' must be an array in this file"),
        (virtual, "'data' must be an array in this file"),
        (made(shape=(2, 7, 3), dtype="f4", external=[("gone.raw", 0, 168)]), "'data' must be an array in this file"),
        (made(shape=(2, 1 << 35, 3), dtype="f8", chunks=(1, 1024, 3)), r"'data' is \[2, 34359738368, 3\], too large"),
        (made(shape=(2, 7, 3), dtype="f4"), "parts of 'data' were never written"),
        (misplaced, "parts of 'data' were never written"),
        (of_an_odd_type, "'data' must be numbers of a usual type"),
        (half_written, "parts of 'data' were never written"),
        (made(data=np.array([[["1.0"] * 3] * 7] * 2, "S3")), "'data' must be numbers of a usual type, got .S3"),
        (made(data=np.zeros((2, 7, 3), [("x", "f4")])), "'data' must be numbers of a usual type, got"),
        (made(data=clouds(2)[0]), r"floats \[N, P, 3\], got float32 \[7, 3\]"),
        (made(data=clouds(2)[:0]), r"floats \[N, P, 3\], got float32 \[0, 7, 3\]"),
        (made(data=clouds(2).astype("f8") * 1e300), "row 0 has a coordinate of .*too large for float32"),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2), label=1), r"'label' must be integers \[2, 1\]"),
        (
            break_nothing_but("ply_data_test0.h5", data=clouds(2), label=np.array([0, 2**64 - 1], np.uint64)),
            "row 1 has label 18446744073709551615",
        ),
        (break_nothing_but("ply_data_test0.h5", data=clouds(2), label=np.zeros((1, 2), int)), "'label' must be"),
        (put("shape_names.txt", b"bed\nsofa\nbed\n"), "shape_names.txt names the class 'bed' twice"),
        (put("shape_names.txt", b"x" * (2 << 20)), "shape_names.txt is too long"),
        (put("test_files.txt", b"\x00\n"), r"'\\x00' is missing in"),
        (put("test_files.txt", b"so\x85fa.h5\n".replace(b"\x85", b"\xc2\x85")), r"'so\\x85fa.h5' is missing"),
        (put("test_files.txt", b"y" * 5000), "y{9}.* is missing in"),
        (put("test_files.txt", b"/\n..\n"), "'..' is missing in"),
    ],
)
def test_what_hdf5_allows_and_clouds_do_not_is_refused(release: Path, damage: Any, words: str) -> None:
    damage(release)
    with pytest.raises(PointsetError, match=words) as caught:
        read_released(release, "test")
    assert str(release) in str(caught.value)
    assert len(str(caught.value)) < 200 + 4 * len(str(release)) + 200


@pytest.fixture
def damaged(release: Path) -> Path:
    """Two of the five training clouds are bad, and a third file is damaged."""
    bad = clouds(3)
    bad[1, 0, 0] = np.inf
    write_file(release / "ply_data_train0.h5", data=bad, label=np.array([[0], [2], [9]], np.uint8))
    (release / "train_files.txt").write_text("ply_data_train0.h5\nply_data_train1.h5\nply_data_train2.h5\n")
    (release / "ply_data_train2.h5").write_bytes(b"no HDF5")
    return release


def test_all_that_cannot_be_used_is_named_together(damaged: Path) -> None:
    with pytest.raises(UnreadableShapesError, match=r"3 of 6 .* cannot be used .*--on-error skip") as caught:
        read_released(damaged, "train")
    assert set(caught.value.failures) == {"ply_data_train0/1", "ply_data_train0/2", "ply_data_train2.h5"}
    assert caught.value.finished == 3
    for reason in caught.value.failures.values():
        assert reason in str(caught.value)


def test_what_cannot_be_used_is_left_out_and_said(damaged: Path) -> None:
    with pytest.warns(UserWarning, match=r"3 clouds or files of them are left out.*ply_data_train2.h5"):
        found = read_released(damaged, "train", on_error="skip")
    assert found.names == ["ply_data_train0/0", "ply_data_train1/0", "ply_data_train1/1"]
    assert found.labels.tolist() == [0, 2, 2]
    assert set(found.skipped) == {"ply_data_train0/1", "ply_data_train0/2", "ply_data_train2.h5"}


def test_a_release_without_usable_clouds_is_refused_even_with_skipping(release: Path) -> None:
    (release / "ply_data_test0.h5").write_bytes(b"")
    with pytest.raises(UnreadableShapesError, match="1 of 1 "):
        read_released(release, "test", on_error="skip")


def test_clouds_of_different_sizes_are_refused(release: Path) -> None:
    write_file(release / "ply_data_train1.h5", data=clouds(2, points=8), label=[[2], [2]])
    with pytest.raises(PointsetError, match=r"different sizes: \[7, 8\]"):
        read_released(release, "train")


def test_the_real_release_has_the_official_counts(real_data: Path) -> None:
    folder = real_data / "modelnet40_ply_hdf5_1024"
    test = read_released(folder, "test")
    assert test.points.shape == (2468, 1024, 3)
    assert len(test.classes) == 40
    counts = np.bincount(test.labels, minlength=40)
    assert (counts[[0, 1, 8]] == [100, 50, 100]).all()
    assert np.abs(np.linalg.norm(test.points, axis=2).max(axis=1) - 1).max() < 1e-4
