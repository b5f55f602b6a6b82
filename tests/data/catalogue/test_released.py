"""Released clouds other than ModelNet40's: ScanObjectNN and ModelNet40-C, in small copies of their layouts."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from pointset.data.catalogue.released import SCANS, is_released, read_released
from pointset.data.dataset import load_dataset
from pointset.errors import PointsetError

POINTS = 13


def clouds(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, POINTS, 3)).astype(np.float32)


@pytest.fixture
def scans(tmp_path: Path) -> Path:
    """h5_files with every variant except PB_T25; the number of shapes identifies the variant."""
    folder = tmp_path / "h5_files"
    for seed, (variant, (part, ending)) in enumerate(SCANS.items()):
        (folder / part).mkdir(parents=True, exist_ok=True)
        for prefix, count in (("training", 30 + seed), ("test", 15)):
            if variant != "PB_T25":
                with h5py.File(folder / part / f"{prefix}_objectdataset{ending}.h5", "w") as file:
                    file["data"], file["label"] = clouds(count, seed), np.arange(count) % 15
                    file["mask"] = np.zeros((count, POINTS))
    return folder


@pytest.fixture
def corrupted(tmp_path: Path) -> Path:
    folder = tmp_path / "modelnet40_c"
    folder.mkdir()
    np.save(folder / "label.npy", (np.arange(50) % 40)[:, None])
    for seed, name in enumerate(("gaussian_1", "gaussian_2", "density_inc_5", "original")):
        np.save(folder / f"data_{name}.npy", clouds(50, seed).astype(np.float64))
    return folder


def test_scanobjectnn_is_read_by_variant(scans: Path) -> None:
    assert is_released(scans)
    sizes = [len(read_released(scans, "train", variant).points) for variant in (None, "PB_T50_RS", "OBJ_ONLY")]
    assert sizes == [30, 30, 35]
    test = read_released(scans, "test", "OBJ_BG")
    np.testing.assert_array_equal(test.points, clouds(15, list(SCANS).index("OBJ_BG")))
    assert test.classes[:3] == ["bag", "bin", "box"]
    assert test.labels.tolist() == list(range(15))
    assert len(set(test.names)) == 15


def test_scanobjectnn_through_load_dataset(scans: Path) -> None:
    data = load_dataset(scans, "train", 7, variant="OBJ_ONLY")
    assert data.points.shape == (35, 7, 3)
    assert data.describe()["variant"] == "OBJ_ONLY"
    assert data.fingerprint != load_dataset(scans, "train", 7).fingerprint


def test_scanobjectnn_is_found_above_and_named_below(scans: Path) -> None:
    assert len(load_dataset(scans.parent, "train", 7).points) == 30
    with pytest.raises(PointsetError, match=r"main_split_nobg is a part of ScanObjectNN: give the folder that has"):
        load_dataset(scans / "main_split_nobg", "train", 7)


def test_modelnet40c_is_read_by_corruption_and_severity(corrupted: Path) -> None:
    assert is_released(corrupted)
    first, second = (read_released(corrupted, "test", name) for name in ("gaussian_1", "gaussian_2"))
    assert first.points.dtype == np.float32
    assert first.names == second.names
    assert not np.array_equal(first.points, second.points)
    assert first.labels.tolist() == (np.arange(50) % 40).tolist()


@pytest.mark.parametrize(
    ("split", "variant", "words"),
    [
        (
            "train",
            "PB_T25",
            r"_augmented25_norot.h5 is missing: the variants of split 'train' are PB_T50_RS, PB_T50_R",
        ),
        ("train", "PB_T99", "no variant 'PB_T99': choose one of PB_T50_RS"),
        ("validation", None, "no split 'validation': choose train or test"),
    ],
)
def test_what_scanobjectnn_has_not_is_named(scans: Path, split: str, variant: str | None, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        read_released(scans, split, variant)


@pytest.mark.parametrize(
    ("split", "variant", "words"),
    [
        ("test", None, "needs a variant: give one of density_inc, gaussian, original, with its severity, such as 'den"),
        ("test", "gaussian_3", "has no variant 'gaussian_3': did you mean gaussian_2, gaussian_1"),
        ("test", "gaussian-2", "did you mean gaussian_2"),
        ("test", "fog", "has no variant 'fog': give one of density_inc, gaussian"),
        ("train", "gaussian_1", "no split 'train': it is a test set"),
    ],
)
def test_what_modelnet40c_has_not_is_named(corrupted: Path, split: str, variant: str | None, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        read_released(corrupted, split, variant)


def test_damaged_arrays_are_named(corrupted: Path) -> None:
    (corrupted / "data_gaussian_1.npy").write_bytes(b"no array")
    with pytest.raises(PointsetError, match=r"data_gaussian_1.npy cannot be read as an array"):
        read_released(corrupted, "test", "gaussian_1")
    np.save(corrupted / "data_gaussian_2.npy", clouds(49, 0))
    with pytest.raises(PointsetError, match=r"data_gaussian_2.npy: 'label' must be integers \[49, 1\]"):
        read_released(corrupted, "test", "gaussian_2")
    np.save(corrupted / "data_uniform_1.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(PointsetError, match=r"data_uniform_1.npy cannot be read as an array"):
        read_released(corrupted, "test", "uniform_1")


def test_a_cloud_without_extent_is_left_out(corrupted: Path) -> None:
    points = clouds(50, 0)
    points[[3, 7]] = 0.1
    points[8, -1] = points[8, 0]
    np.save(corrupted / "data_gaussian_1.npy", points)
    words = r"^2 of 50 clouds .*row 3 has no extent: all its 13 points are at \[0.1.*row 7 has no extent"
    with pytest.raises(PointsetError, match=words):
        load_dataset(corrupted, "test", 7, variant="gaussian_1")
    with pytest.warns(UserWarning, match="2 clouds .* left out"):
        assert len(load_dataset(corrupted, "test", 7, variant="gaussian_1", on_error="skip")) == 48
