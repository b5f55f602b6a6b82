"""Random subsets in training: uniform, the same with any number of threads, from a file shared by worker processes."""

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pointset.data.batches import batches, collate, fixed_batches
from pointset.data.dataset import load_dataset
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
from pointset.data.pool import random_subsets
from pointset.data.pools.build import build_dataset
from pointset.errors import PointsetError

SHAPES, P = 60, 5000


@pytest.fixture
def mapped(tmp_path: Path) -> PointSets:
    """Sets from a pool of 3.6 MB on disk."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "points.npy", rng.standard_normal((SHAPES, P, 3)).astype(np.float32))
    points = np.load(tmp_path / "points.npy", mmap_mode="r")
    names = [f"shape{row}" for row in range(SHAPES)]
    return PointSets(Pool(points, names, np.arange(SHAPES) % 4, list("abcd"), "uniform"), DataOptions(points=100))


# Random subsets


@pytest.mark.parametrize(("available", "count"), [(6, 1), (6, 2), (6, 3), (6, 4), (7, 6), (5, 2)])
def test_every_subset_is_equally_likely(available: int, count: int) -> None:
    subsets = random_subsets(available, count, 20_000, torch.Generator().manual_seed(0))
    counts = dict.fromkeys(itertools.combinations(range(available), count), 0)
    for row in subsets.tolist():
        counts[tuple(sorted(row))] += 1
    expected = 20_000 / len(counts)
    chi_squared = sum((found - expected) ** 2 / expected for found in counts.values())
    freedom = len(counts) - 1
    assert chi_squared < freedom + 4 * np.sqrt(2 * freedom) + 8, counts  # beyond the 0.1 % level for each of these


@pytest.mark.parametrize(("available", "count"), [(1, 1), (9, 0), (9, 9), (10_000, 5000), (10_000, 9999), (3, 2)])
def test_subsets_of_any_size_have_different_members(available: int, count: int) -> None:
    subsets = random_subsets(available, count, 3, torch.Generator().manual_seed(0))
    assert (subsets.shape, subsets.dtype) == ((3, count), np.int64)
    assert all(len(set(row)) == count and set(row) <= set(range(available)) for row in subsets.tolist())
    assert random_subsets(available, count, 0, torch.Generator()).shape == (0, count)


def test_draws_are_the_same_with_any_number_of_threads(mapped: PointSets) -> None:
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 4):
            torch.set_num_threads(count)
            found.append([batch.points for batch in batches(mapped, 7, seed=1, epoch=2)])
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(one, same) for one, same in zip(found[0], other, strict=True))


# Files and processes


def test_a_mapped_pool_is_pickled_as_its_path(mapped: PointSets) -> None:
    assert mapped.points.shape == (SHAPES, 100, 3)
    pickled = pickle.dumps(mapped)
    assert len(pickled) < 20_000
    back = pickle.loads(pickled)
    assert isinstance(back.source_pool.points, np.memmap)
    assert torch.equal(back.points, mapped.points)
    assert back.fingerprint == mapped.fingerprint
    assert torch.equal(
        back.draw([3, 5], torch.Generator().manual_seed(0)), mapped.draw([3, 5], torch.Generator().manual_seed(0))
    )


def test_a_pool_with_gaps_is_laid_out_once() -> None:
    whole = np.random.default_rng(0).standard_normal((4, 18, 3)).astype(np.float32)
    pool = Pool(whole[:, ::2], list("abcd"), np.arange(4), list("abcd"), "uniform")
    assert pool.points.flags.c_contiguous
    drawn = PointSets(pool, DataOptions(points=9, normalize="none")).draw([2], torch.Generator().manual_seed(0))[0]
    assert sorted(drawn.tolist()) == sorted(whole[2, ::2].tolist())


def test_a_part_of_a_mapped_file_is_not_taken_for_the_file(mapped: PointSets) -> None:
    part = Pool(mapped.source_pool.points[10:12], ["a", "b"], np.array([0, 1]), ["x", "y"], "uniform")
    data = PointSets(part, DataOptions(points=5, normalize="none"))
    assert torch.equal(pickle.loads(pickle.dumps(data)).points, data.points)


@pytest.mark.slow
@pytest.mark.parametrize(("context", "workers"), [("fork", 2), ("spawn", 1)])
def test_worker_processes_give_the_same_sets(mapped: PointSets, context: str, workers: int) -> None:
    loader = torch.utils.data.DataLoader(
        mapped, batch_size=16, num_workers=workers, collate_fn=collate, multiprocessing_context=context
    )
    for found, expected in zip(loader, fixed_batches(mapped, 16), strict=True):
        torch.testing.assert_close(found.points, expected.points)
        assert torch.equal(found.labels, expected.labels)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc to tell resident memory")
def test_an_epoch_leaves_no_pool_in_memory(tmp_path: Path) -> None:
    with (tmp_path / "points.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1500, 10_000, 3)})
        file.truncate(file.tell() + 1500 * 10_000 * 12)  # 180 MB that take no place on disk
    child = """
import sys, numpy as np
from pathlib import Path
from pointset.data.batches import batches
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
resident = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3
points = np.load(sys.argv[1], mmap_mode="r")
pool = Pool(points, list(map(str, range(1500))), np.zeros(1500, int), ["a"], "uniform")
data = PointSets(pool, DataOptions(points=100))
next(batches(data, 32, seed=0, epoch=0))
before = resident()
for batch in batches(data, 32, seed=0, epoch=0): pass
data.points
print(resident() - before)
"""
    command = [sys.executable, "-c", child, str(tmp_path / "points.npy")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert float(done.stdout) < 60  # megabytes; 180 if the pages stayed


def test_items_count_from_both_ends_and_end(mapped: PointSets) -> None:
    torch.testing.assert_close(mapped[-1][0], mapped.points[-1])
    with pytest.raises(IndexError):
        mapped[SHAPES]
    assert sum(1 for _ in mapped) == SHAPES


# Normals and pools that were built before


TETRAHEDRON = "OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 0 3 2\n3 1 2 3\n"


@pytest.fixture
def parts(home: Path, tmp_path: Path) -> Path:
    for name in ("a/train/1", "a/test/2", "b/train/3", "b/test/4"):
        path = (tmp_path / "parts" / name).with_suffix(".off")
        path.parent.mkdir(parents=True)
        path.write_text(TETRAHEDRON)
    return tmp_path / "parts"


def test_normals_belong_to_the_points_of_the_fixed_view(parts: Path) -> None:
    data = load_dataset(parts, points=50, pool_points=200, normals=True, normalize="none")
    assert data.normals.shape == (2, 50, 3)
    torch.testing.assert_close(data.normals.norm(dim=2), torch.ones(2, 50))
    for axis in range(3):
        on_face = data.points[..., axis] == 0
        assert on_face.any()
        assert (data.normals[on_face][:, axis] == -1).all()
    picked = data.subset([1])
    torch.testing.assert_close(picked.normals, data.normals[1:], rtol=0, atol=0)
    without = load_dataset(parts, points=50, pool_points=200, normalize="none")
    assert torch.equal(without.points, data.points)
    assert without.fingerprint == data.fingerprint
    with pytest.raises(PointsetError, match="parts was loaded without normals: load it with normals=True"):
        _ = without.normals


@pytest.mark.parametrize(("built", "normals"), [(False, False), (True, True), (True, False)])
def test_a_pool_that_was_built_is_used(parts: Path, home: Path, built: bool, normals: bool) -> None:
    build_dataset(parts, points=300, normals=built, progress=False, workers=1)
    pools = {path: path.stat().st_mtime_ns for path in (home / "pools").iterdir()}
    for split in ("train", "test"):
        data = load_dataset(parts, split, points=50, pool_points=300, normals=normals)
        assert (data.describe()["pool"], data.has_normals) == (300, normals)
    assert {path: path.stat().st_mtime_ns for path in (home / "pools").iterdir()} == pools
