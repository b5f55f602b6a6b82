"""Clouds of several sizes: drawn, padded, masked, trained on; and their pool on disk."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from pointset.data.batches import batches, batches_of_rows, fixed_batches
from pointset.data.dataset import load_dataset, load_like
from pointset.data.point_sets import PointSets
from pointset.data.pool import Pool
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError

SIZES = (3, 9, 5, 20, 1, 12, 7, 9, 9, 4)


@pytest.fixture
def folder(home: Path, tmp_path: Path) -> Path:
    """Two classes of clouds in five formats; every cloud is far from zero, where padding would show."""
    rng = np.random.default_rng(0)
    for number, size in enumerate(SIZES):
        cloud = rng.normal([50, 60, 70, 0, 0, 0], size=(size, 6))
        cloud[:, 3:] /= np.linalg.norm(cloud[:, 3:], axis=1, keepdims=True)
        place = tmp_path / "scans" / f"class {number % 2}" / ("test" if number > 6 else "train") / str(number)
        place.parent.mkdir(parents=True, exist_ok=True)
        if number % 3 == 0:
            np.save(place.with_suffix(".npy"), cloud)
        elif number % 3 == 1:
            np.savetxt(place.with_suffix(".txt"), cloud, delimiter=",", fmt="%.9g")
        else:
            np.savez(place.with_suffix(".npz"), points=cloud[:, :3], normals=cloud[:, 3:])
    return tmp_path / "scans"


def test_a_set_has_at_most_n_points_and_keeps_all_if_it_has_fewer(folder: Path) -> None:
    data = load_dataset(folder, points=8, normalize="none")
    by_name = dict(zip((int(Path(name).stem) for name in data.names), range(len(data)), strict=True))
    assert by_name.keys() == set(range(7))
    for number, row in by_name.items():
        points, label = data[row]
        assert (len(points), label) == (min(8, SIZES[number]), number % 2)
        whole = {tuple(point) for point in data.source_pool.cloud(row).tolist()}
        assert {tuple(point) for point in points.tolist()} <= whole
        assert len(set(map(tuple, points.tolist()))) == len(points)
    assert data.points.shape == (7, 8, 3)
    assert data.mask is not None
    assert data.mask.sum(1).tolist() == data.sizes.tolist()
    assert data.describe()["pool_points"] == 20


def test_clouds_without_points_do_not_decide_whether_a_pool_is_centred() -> None:
    points = np.array([[1, 0, 0], [-1, 0, 0], [5, 0, 0]], np.float32)
    pool = Pool(points, ["empty", "centred", "off"], np.zeros(3, np.int64), ["a"], "", offsets=np.array([0, 0, 2, 3]))
    assert [pool.is_centred(np.array(rows)) for rows in ([0, 1], [0, 2], [1, 2])] == [True, False, False]


def test_batches_are_padded_with_zeros_and_masked(folder: Path) -> None:
    data = load_dataset(folder, points=8, normalize="none")
    for batch in [*batches(data, 4, seed=0, epoch=0), *fixed_batches(data, 4)]:
        if batch.mask is None:
            assert (batch.points.abs() > 10).all(), "no padding without a mask"
            continue
        assert batch.points.shape[:2] == batch.mask.shape
        assert batch.points.shape[1] == batch.mask.sum(1).max() <= 8
        assert (batch.points[~batch.mask] == 0).all()
        assert (batch.points[batch.mask].abs() > 10).all()
        assert (batch.mask.int().diff(dim=1) <= 0).all(), "real points come first"
    assert next(fixed_batches(data, 4)).mask is not None
    seen = torch.cat([batch.labels for batch in batches(data, 4, seed=0, epoch=0)])
    assert sorted(seen.tolist()) == sorted(data.labels.tolist())


def test_the_pool_on_disk_follows_its_files(folder: Path, home: Path) -> None:
    before = load_dataset(folder, points=8)
    pools = list((home / "pools").glob("*/points.npy"))
    assert len(pools) == 1
    modified = pools[0].stat().st_mtime_ns
    assert load_dataset(folder, points=8).fingerprint == before.fingerprint
    assert pools[0].stat().st_mtime_ns == modified, "read again for nothing"
    np.save(folder / "class 0" / "train" / "0.npy", np.ones((4, 3)) * [[1], [2], [3], [4]])
    with pytest.warns(UserWarning, match=r"is made again: .*0.npy has changed"):
        after = load_dataset(folder, points=8)
    assert after.fingerprint != before.fingerprint
    assert sorted(after.sizes.tolist()) == [1, 4, 5, 7, 8, 8, 8]
    pools[0].write_bytes(b"cut")
    with pytest.warns(UserWarning, match="is made again: points.npy cannot be read"):
        assert load_dataset(folder, points=8).fingerprint == after.fingerprint


@pytest.fixture
def bad(folder: Path) -> Path:
    """The folder with three more training files that cannot be used, of several kinds."""
    (folder / "class 1" / "train" / "bad.txt").write_text("0 0 0\n1 2\n")
    (folder / "class 0" / "train" / "empty.npy").write_bytes(b"")
    (folder / "class 0" / "train" / "gone.npz").symlink_to(folder / "nowhere.npz")
    return folder


BAD = {"class 0/train/empty.npy", "class 0/train/gone.npz", "class 1/train/bad.txt"}


def test_all_bad_clouds_are_named_together(bad: Path) -> None:
    (bad / "class 1" / "train" / "heap.txt").write_text("1 2 3\n" * 4)
    for _ in range(2):
        with pytest.raises(UnreadableShapesError, match=r"^4 of 11 files cannot be used .*--on-error skip") as caught:
            load_dataset(bad, points=8)
        assert set(caught.value.failures) == BAD | {"class 1/train/heap.txt"}
        assert "no extent: all its 4 points are at [1.0, 2.0, 3.0]" in caught.value.failures["class 1/train/heap.txt"]


def test_bad_clouds_are_left_out_and_that_is_kept(bad: Path, tmp_path: Path) -> None:
    data = load_skipping(bad)
    assert (len(data), data.describe()["skipped"]) == (7, 3)
    assert set(data.describe()["left_out"]) == BAD
    with pytest.raises(UnreadableShapesError, match=r"^3 of 10 "):
        load_dataset(bad, points=8)  # who does not accept it is told, also later
    # A run on these sets does without them too, and says so.
    with pytest.warns(UserWarning, match="lacks 3 of 10 shapes"):
        assert load_like(data.describe(), "train").fingerprint == data.fingerprint
    (bad / "class 1" / "train" / "bad.txt").write_text("0 0 0\n1 2 3\n4 4 5\n")
    mended = load_skipping(bad)
    assert mended.describe()["left_out"] == sorted(BAD - {"class 1/train/bad.txt"})
    assert mended.fingerprint != data.fingerprint
    for name in BAD - {"class 1/train/bad.txt"}:
        (bad / name).unlink()
    sound = load_dataset(bad, points=8)
    assert "left_out" not in sound.describe()
    assert sound.fingerprint == mended.fingerprint


def load_skipping(folder: Path) -> PointSets:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        data = load_dataset(folder, points=8, on_error="skip")
    assert re.search("scans-train lacks [23] of 10 shapes", str(warned[-1].message))
    return data


def test_sets_larger_than_every_cloud_are_refused(folder: Path) -> None:
    with pytest.raises(
        PointsetError, match=r"points=21 is more than the 20 .*'class 0/train/4.txt', has 1.*--points 20"
    ):
        load_dataset(folder, points=21)
    assert load_dataset(folder, points=20).points.shape[1] == 20
    assert load_dataset(folder, "test", points=20).points.shape[1] == 9, "clouds to test on may all be smaller"


def test_batches_are_of_neighbours_in_size_and_have_every_set_once():
    sizes = torch.randint(1, 5000, (1000,), generator=torch.Generator().manual_seed(0))

    def rows(seed: int) -> list[torch.Tensor]:
        return batches_of_rows(sizes, 32, torch.Generator().manual_seed(seed))

    def padded(batches: list[torch.Tensor]) -> int:
        return sum(len(batch) * int(sizes[batch].max()) for batch in batches)

    assert torch.cat(rows(1)).sort().values.equal(torch.arange(1000))
    assert padded(rows(1)) < 1.1 * sizes.sum()
    assert padded(list(torch.randperm(1000).split(32))) > 1.8 * sizes.sum()
    assert all(map(torch.equal, rows(1), rows(1)))
    assert not torch.equal(rows(1)[0], rows(2)[0])


def test_sets_of_one_size_keep_their_random_order():
    batches = batches_of_rows(torch.full((70,), 5), 32, torch.Generator().manual_seed(3))
    assert torch.cat(batches).equal(torch.randperm(70, generator=torch.Generator().manual_seed(3)))
