"""Pools on disk: built once, found again, rebuilt after changes, repaired or rejected when damaged."""

import json
import os
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from building import TETRAHEDRON

from pointset.data.catalogue.folders import list_folder
from pointset.data.point_sets import Pool
from pointset.data.pools import manifest, shapes
from pointset.data.pools.plan import Plan, Sampling
from pointset.data.pools.shapes import Job, Result
from pointset.data.pools.store import load_pool
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.workers import Workers


def pool_of(folder: Path, *, points: int = 11, **options: object) -> Pool:
    sampling = Sampling(points, **options)  # type: ignore[arg-type]
    return load_pool(Plan.of("meshes", list_folder(folder, "train"), sampling), workers=Workers(1), progress=False)


def pools(home: Path) -> list[Path]:
    return sorted(path for path in (home / "pools").iterdir() if path.is_dir())


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the shapes that are sampled from here on."""
    names: list[str] = []
    make_shape = shapes.make_shape

    def record(job: Job, sampling: Sampling) -> Result:
        names.append(job[1].name)
        return make_shape(job, sampling)

    monkeypatch.setattr(shapes, "make_shape", record)
    return names


def test_a_pool_is_made_once_and_then_mapped(home: Path, few: Path, sampled: list[str]) -> None:
    first = pool_of(few)
    assert first.points.shape == (6, 11, 3)
    assert isinstance(first.points, np.memmap)
    assert not first.points.flags.writeable
    assert first.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert first.names == sampled
    second = pool_of(few)
    assert len(sampled) == 6
    np.testing.assert_array_equal(first.points, second.points)
    content = json.loads((pools(home)[0] / "manifest.json").read_text())
    assert {"format", "version", "sampler", "points", "seed", "classes"} <= content.keys()
    assert content["shapes"][0]["source"]["bytes"] == (few / first.names[0]).stat().st_size


def test_points_depend_on_seed_and_name_and_not_on_other_shapes(home: Path, few: Path, tmp_path: Path) -> None:
    pool = pool_of(few)
    fewer = tmp_path / "fewer"
    shutil.copytree(few, fewer)
    (fewer / "class0" / "train" / "shape0.off").unlink()
    np.testing.assert_array_equal(pool_of(fewer).points, pool.points[1:])
    assert not np.array_equal(pool_of(few, seed=1).points, pool.points)
    shutil.copy(few / "class0" / "train" / "shape0.off", few / "class0" / "train" / "twin.off")
    with_twin = pool_of(few)
    first, twin = (with_twin.points[with_twin.names.index(f"class0/train/{name}.off")] for name in ("shape0", "twin"))
    assert not np.array_equal(first, twin)


def test_points_and_normals_are_those_of_each_shapes_mesh(home: Path, few: Path) -> None:
    plain, pool = pool_of(few), pool_of(few, normals=True)
    assert plain.arrays == {}
    assert pool.arrays["normals"].shape == (6, 11, 3)
    np.testing.assert_array_equal(pool.points, plain.points)
    # Three faces lie in the coordinate planes; on the fourth, x + y + z is the tetrahedron's size.
    for name, points, normals in zip(pool.names, pool.points, pool.arrays["normals"], strict=True):
        size = int(name[-5]) + 1
        assert (points >= -1e-6).all()
        assert (np.minimum(points.min(1), size - points.sum(1)) < 1e-5 * size).all(), "on a face of its own mesh"
        for point, normal in zip(points, np.abs(normals), strict=True):
            axis = int(np.argmin(point))
            expected = np.eye(3)[axis] if point[axis] < size - point.sum() else np.full(3, 3**-0.5)
            np.testing.assert_allclose(normal, expected, atol=1e-6)


@pytest.mark.parametrize("same_time", [False, True], ids=["other time and contents", "other size"])
def test_a_changed_mesh_is_named_with_the_command_that_helps(home: Path, few: Path, same_time: bool) -> None:
    pool_of(few)
    path = few / "class0" / "train" / "shape2.off"
    facts = path.stat()
    path.write_text(TETRAHEDRON.format(size=99 if same_time else 9))
    assert (path.stat().st_size != facts.st_size) == same_time
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + (0 if same_time else 1)))
    with pytest.raises(PointsetError, match=r"shape2.off has changed since .*pointset data build .*--rebuild"):
        pool_of(few)


def test_a_mesh_with_another_time_alone_is_read_once(
    home: Path, few: Path, sampled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of(few)
    os.utime(few / "class0" / "train" / "shape0.off", (1, 1))
    read: list[Path] = []
    hash_source = manifest.hash_source
    monkeypatch.setattr(manifest, "hash_source", lambda path: read.append(path) or hash_source(path))  # type: ignore[func-returns-value]
    for _ in range(3):
        pool_of(few)
    assert [path.name for path in read] == ["shape0.off"]
    assert len(sampled) == 6


@pytest.mark.parametrize("uri", ["my part.bin", "my%20part.bin"])
@pytest.mark.parametrize("suffix", [".gltf", ".glb"])
def test_a_buffer_beside_a_gltf_file_is_part_of_it(tmp_path: Path, uri: str, suffix: str) -> None:
    text = f'{{"buffers": [{{"uri": "{uri}"}}, {{"uri": "data:,abc"}}, {{"byteLength": 4}}]}}'.encode()
    head = struct.pack("<4s2II4s", b"glTF", 2, 20 + len(text), len(text), b"JSON") if suffix == ".glb" else b""
    path = tmp_path / f"part{suffix}"
    path.write_bytes(head + text)
    (tmp_path / "my part.bin").write_bytes(b"1234")
    source = manifest.describe_source(path)
    assert source.current(path) is source
    (tmp_path / "my part.bin").write_bytes(b"12345")
    assert source.current(path) is None


def test_other_parameters_and_other_shapes_make_another_pool(home: Path, few: Path) -> None:
    for options in ({}, {"points": 12}, {"seed": 1}, {"sampler": "fps"}, {"normals": True}):
        pool_of(few, **options)  # type: ignore[arg-type]
    (few / "class1/train/shape1.off").unlink()
    pool_of(few)
    (few / "class0/train/shape0.off").rename(few / "class0/train/other.off")
    pool_of(few)
    assert len(pools(home)) == 7


def test_another_format_is_refused_and_another_version_is_not(
    home: Path, few: Path, sampled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of(few)
    path = pools(home)[0] / "manifest.json"
    digests.write_text(path, path.read_text().replace('"version": "', '"version": "99.'))
    pool_of(few)
    assert len(sampled) == 6
    monkeypatch.setattr(manifest, "FORMAT", manifest.FORMAT + 1)
    with pytest.raises(PointsetError, match=rf"format {manifest.FORMAT - 1}.*reads {manifest.FORMAT}.*--rebuild"):
        pool_of(few)


FAULTS = "damaged|missing|has changed|not listed|cannot be read"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "points.npy").unlink(),
        lambda folder: truncate(folder / "points.npy"),
        lambda folder: (folder / "points.npy").write_bytes(b""),
        lambda folder: np.save(folder / "points.npy", np.zeros((6, 10, 3), np.float32)),
        lambda folder: np.save(folder / "points.npy", np.zeros((6, 11, 3))),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{"),
        lambda folder: (folder / "manifest.json").write_text("{}"),
        lambda folder: digests.write_text(folder / "manifest.json", "{"),
        lambda folder: digests.write_text(folder / "manifest.json", "[" * 100_000),
        lambda folder: digests.write_text(folder / "manifest.json", "[]"),
        lambda folder: digests.write_text(folder / "manifest.json", '{"format": 2, "shapes": [{}]}'),
        lambda folder: (folder / "SHA256SUMS").unlink(),
    ],
)
def test_a_damaged_pool_names_the_folder_to_delete(home: Path, few: Path, damage) -> None:  # type: ignore[no-untyped-def]
    pool_of(few)
    damage(pools(home)[0])
    with pytest.raises(PointsetError, match=rf"cannot be used: .*({FAULTS}).*--rebuild") as caught:
        pool_of(few)
    assert str(pools(home)[0]) in str(caught.value)
