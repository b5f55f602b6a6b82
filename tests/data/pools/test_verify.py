"""Verification detects and names all damage to a pool or its meshes."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from building import TETRAHEDRON
from damage import flipped

from pointset.data.pools.build import build_dataset
from pointset.data.pools.verify import verify_dataset, verify_pool
from pointset.errors import PointsetError


@pytest.fixture
def pool(home: Path, few: Path) -> Path:
    return build_dataset(few, points=20, normals=True, progress=False).pools["train"].folder


def test_a_sound_data_set_has_no_problem(few: Path, pool: Path) -> None:
    build_dataset(few, points=30, progress=False)
    found = verify_dataset(few, progress=False)
    assert len(found) == 2
    assert {one.folder for one in found} > {pool}
    assert all(one.problems == () and one.shapes == 6 and one.skipped == 0 for one in found)


def flip(path: Path, position: int) -> None:
    facts = path.stat()
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda pool, _: flip(pool / "points.npy", -1), ["points.npy", "points of class1/train/shape5.off"]),
        (lambda pool, _: flip(pool / "normals.npy", -240), ["normals.npy", "points of class1/train/shape5.off"]),
        (lambda pool, _: flip(pool / "points.npy", -241), ["points.npy", "points of class1/train/shape3.off"]),
        (lambda pool, _: flip(pool / "points.npy", 3), ["points.npy", "beginning"]),
        (lambda pool, _: (pool / "points.npy").write_bytes((pool / "points.npy").read_bytes()[:-1]), ["found 1567"]),
        (lambda pool, _: (pool / "normals.npy").unlink(), ["normals.npy is missing"]),
        (lambda pool, _: flip(pool / "manifest.json", 0), ["manifest.json has changed since it was written"]),
        (lambda _, folder: flip(folder / "class0/train/shape2.off", 8), ["shape2.off has changed"]),
        (lambda _, folder: (folder / "class0/train/shape2.off").unlink(), ["shape2.off cannot be read any more"]),
    ],
)
def test_damage_is_named(few: Path, pool: Path, damage: Callable[[Path, Path], object], words: list[str]) -> None:
    damage(pool, few)
    found = verify_pool(pool, progress=False)
    assert len(found.problems) == 1
    for word in words:
        assert word in found.problems[0]


@pytest.mark.parametrize("name", ["manifest.json", "SHA256SUMS"])
def test_a_pool_whose_manifest_is_damaged_anywhere_is_not_passed_over(name: str, few: Path, pool: Path) -> None:
    content, random = (pool / name).read_bytes(), np.random.default_rng(0)
    for _ in range(20):
        (pool / name).write_bytes(flipped(content, random))
        (found,) = verify_dataset(few, progress=False)
        assert found.folder == pool
        assert found.problems


def test_the_recommended_command_repairs_the_pool(few: Path, pool: Path) -> None:
    flip(pool / "points.npy", -1)
    assert "--points 20 --sampler uniform --seed 0 --normals --rebuild" in verify_pool(pool, progress=False).remedy
    build_dataset(few, points=20, normals=True, rebuild=True, progress=False)
    assert verify_pool(pool, progress=False).problems == ()


def test_skipped_shapes_do_no_harm_while_their_meshes_stay(home: Path, few: Path) -> None:
    bad = few / "class0" / "train" / "shape0.off"
    bad.write_text("OFF\n")
    build_dataset(few, points=20, on_error="skip", progress=False)
    (found,) = verify_dataset(few, progress=False)
    assert (found.shapes, found.skipped, found.problems) == (5, 1, ())
    bad.write_text(TETRAHEDRON.format(size=1))
    (found,) = verify_dataset(few, progress=False)
    assert "shape0.off has changed" in found.problems[0]
    assert found.remedy.endswith("--rebuild --on-error skip")


def test_a_data_set_without_pools_is_told_how_to_make_one(home: Path, few: Path) -> None:
    with pytest.raises(PointsetError, match=r"has no pool in .*pointset data build"):
        verify_dataset(few, progress=False)
