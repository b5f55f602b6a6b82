"""Pools on disk: made once, found again, made anew when anything changed, repaired or refused when damaged."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from building import TETRAHEDRON

from pointset.data.catalogue.folders import list_folder
from pointset.data.dataset import load_dataset
from pointset.data.point_sets import Pool
from pointset.data.pools import manifest, shapes, sources
from pointset.data.pools.plan import Plan, Sampling
from pointset.data.pools.shapes import Job, Result
from pointset.data.pools.store import load_pool
from pointset.errors import PointsetError
from pointset.runs.workers import Workers


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    folder = tmp_path / "meshes"
    for number in range(6):
        path = folder / f"class{number % 2}" / "train" / f"shape{number}.off"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TETRAHEDRON.format(size=number + 1))
    return folder


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
        names.append(job.name)
        return make_shape(job, sampling)

    monkeypatch.setattr(shapes, "make_shape", record)
    return names


def test_a_pool_is_made_once_and_then_mapped(home: Path, meshes: Path, sampled: list[str]) -> None:
    first = pool_of(meshes)
    assert first.points.shape == (6, 11, 3)
    assert isinstance(first.points, np.memmap)
    assert not first.points.flags.writeable
    assert first.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert first.names == sampled
    second = pool_of(meshes)
    assert len(sampled) == 6
    np.testing.assert_array_equal(first.points, second.points)
    assert len(pools(home)) == 1


def test_every_shape_has_points_of_its_own_mesh(home: Path, meshes: Path) -> None:
    pool = pool_of(meshes)
    for name, points in zip(pool.names, pool.points, strict=True):
        size = int(name[-5]) + 1
        assert (points >= -1e-6).all()
        assert (points.sum(1) <= size + 1e-5).all()
        on_a_face = np.minimum(points.min(1), size - points.sum(1)) < 1e-5 * size
        assert on_a_face.all()


def test_points_depend_on_seed_and_name_and_not_on_other_shapes(home: Path, meshes: Path, tmp_path: Path) -> None:
    pool = pool_of(meshes)
    fewer = tmp_path / "fewer"
    shutil.copytree(meshes, fewer)
    (fewer / "class0" / "train" / "shape0.off").unlink()
    np.testing.assert_array_equal(pool_of(fewer).points, pool.points[1:])
    assert not np.array_equal(pool_of(meshes, seed=1).points, pool.points)
    shutil.copy(meshes / "class0" / "train" / "shape0.off", meshes / "class0" / "train" / "twin.off")
    with_twin = pool_of(meshes)
    first, twin = (with_twin.points[with_twin.names.index(f"class0/train/{name}.off")] for name in ("shape0", "twin"))
    assert not np.array_equal(first, twin)


def test_shapes_in_any_order_make_one_pool(home: Path, meshes: Path) -> None:
    listing = list_folder(meshes, "train")
    backwards = dataclasses.replace(listing, shapes=listing.shapes[::-1])
    one, other = (load_pool(Plan.of("meshes", found, Sampling(11)), progress=False) for found in (listing, backwards))
    assert one.names == other.names == [shape.name for shape in listing.shapes]
    assert len(pools(home)) == 1


def test_normals_come_with_the_same_points(home: Path, meshes: Path) -> None:
    plain, pool = pool_of(meshes), pool_of(meshes, normals=True)
    assert plain.normals is None
    assert pool.normals is not None
    assert pool.normals.shape == (6, 11, 3)
    np.testing.assert_array_equal(pool.points, plain.points)
    # Three faces lie in the coordinate planes; on the fourth, x + y + z is the tetrahedron's size.
    for name, points, normals in zip(pool.names, pool.points, pool.normals, strict=True):
        size = int(name[-5]) + 1
        for point, normal in zip(points, np.abs(normals), strict=True):
            axis = int(np.argmin(point))
            expected = np.eye(3)[axis] if point[axis] < size - point.sum() else np.full(3, 3**-0.5)
            np.testing.assert_allclose(normal, expected, atol=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "class1/train/shape1.off").unlink(),
        lambda folder: (folder / "class0/train/shape0.off").rename(folder / "class0/train/other.off"),
    ],
    ids=["removed", "renamed"],
)
def test_other_shapes_make_another_pool(home: Path, meshes: Path, change) -> None:  # type: ignore[no-untyped-def]
    pool_of(meshes)
    change(meshes)
    pool_of(meshes)
    assert len(pools(home)) == 2


@pytest.mark.parametrize("same_time", [False, True], ids=["other time and contents", "other size"])
def test_a_changed_mesh_is_named_with_the_command_that_helps(home: Path, meshes: Path, same_time: bool) -> None:
    pool_of(meshes)
    path = meshes / "class0" / "train" / "shape2.off"
    facts = path.stat()
    path.write_text(TETRAHEDRON.format(size=99 if same_time else 9))
    assert (path.stat().st_size != facts.st_size) == same_time
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + (0 if same_time else 1)))
    with pytest.raises(PointsetError, match=r"shape2.off has changed since .*pointset data build .*--rebuild"):
        pool_of(meshes)


def test_a_mesh_with_another_time_alone_is_read_once(
    home: Path, meshes: Path, sampled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of(meshes)
    os.utime(meshes / "class0" / "train" / "shape0.off", (1, 1))
    read: list[Path] = []
    hash_source = sources.hash_source
    monkeypatch.setattr(sources, "hash_source", lambda path: read.append(path) or hash_source(path))  # type: ignore[func-returns-value]
    for _ in range(3):
        pool_of(meshes)
    assert [path.name for path in read] == ["shape0.off"]
    assert len(sampled) == 6


def test_a_buffer_beside_a_gltf_file_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "part.gltf").write_text('{"buffers": [{"uri": "part.bin"}, {"uri": "data:,abc"}]}')
    (tmp_path / "part.bin").write_bytes(b"1234")
    source = sources.describe_source(tmp_path / "part.gltf")
    assert sources.recheck(tmp_path / "part.gltf", source) is source
    (tmp_path / "part.bin").write_bytes(b"12345")
    assert sources.recheck(tmp_path / "part.gltf", source) is None


def test_other_parameters_make_another_pool(home: Path, meshes: Path) -> None:
    for options in ({}, {"points": 12}, {"seed": 1}, {"sampler": "fps"}, {"normals": True}):
        pool_of(meshes, **options)  # type: ignore[arg-type]
    assert len(pools(home)) == 5


def test_another_format_is_refused_and_another_version_is_not(
    home: Path, meshes: Path, sampled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool_of(meshes)
    path = pools(home)[0] / "manifest.json"
    path.write_text(path.read_text().replace('"version": "', '"version": "99.'))
    pool_of(meshes)
    assert len(sampled) == 6
    monkeypatch.setattr(manifest, "FORMAT", manifest.FORMAT + 1)
    with pytest.raises(PointsetError, match=rf"format {manifest.FORMAT - 1}.*reads {manifest.FORMAT}.*--rebuild"):
        pool_of(meshes)


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
    ],
)
def test_a_damaged_pool_names_the_folder_to_delete(home: Path, meshes: Path, damage) -> None:  # type: ignore[no-untyped-def]
    pool_of(meshes)
    damage(pools(home)[0])
    with pytest.raises(PointsetError, match=r"cannot be used: .*(damaged|missing|cannot be read).*--rebuild") as caught:
        pool_of(meshes)
    assert str(pools(home)[0]) in str(caught.value)


def test_the_manifest_says_what_the_pool_is_made_of(home: Path, meshes: Path) -> None:
    pool_of(meshes)
    content = json.loads((pools(home)[0] / "manifest.json").read_text())
    assert {"format", "version", "sampler", "points", "seed", "classes"} <= content.keys()
    assert content["shapes"][0]["name"] == "class0/train/shape0.off"
    assert content["shapes"][0]["source"]["bytes"] == (meshes / "class0/train/shape0.off").stat().st_size


def test_a_mesh_that_cannot_be_read_is_named(home: Path, meshes: Path) -> None:
    bad = meshes / "class1" / "train" / "shape3.off"
    bad.write_text("OFF\n3 1 0\n0 0 0\n")
    with pytest.raises(PointsetError) as caught:
        pool_of(meshes)
    assert str(bad) in str(caught.value)


def test_a_mesh_without_area_is_named(home: Path, meshes: Path) -> None:
    bad = meshes / "class1" / "train" / "shape3.off"
    bad.write_text("OFF\n3 1 0\n0 0 0\n1 1 1\n2 2 2\n3 0 1 2\n")
    with pytest.raises(PointsetError) as caught:
        pool_of(meshes)
    assert str(bad) in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"points": 0}, "at least 1 point per shape, got 0"), ({"sampler": "random"}, "uniform.*'random'")],
)
def test_wrong_options_are_refused_before_anything_is_written(
    home: Path, meshes: Path, options: dict[str, object], words: str
) -> None:
    with pytest.raises(PointsetError, match=words):
        pool_of(meshes, **options)  # type: ignore[arg-type]
    assert not home.exists()


def test_a_home_that_cannot_be_made_is_named(meshes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "file"))
    with pytest.raises(PointsetError, match=r"cannot write to .*file.*POINTSET_HOME"):
        pool_of(meshes)


def test_two_processes_make_one_pool(home: Path, meshes: Path) -> None:
    code = (
        "import sys; from pointset.data.dataset import load_dataset; "
        "print(load_dataset(sys.argv[1], points=7, pool_points=500).points.sum().item())"
    )
    command = [sys.executable, "-c", code, str(meshes)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    results = [run.communicate(timeout=100) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert len(pools(home)) == 1
    # A bar is for terminals.
    assert [result[1] for result in results] == ["", ""]


def test_a_folder_of_meshes_becomes_a_data_set(home: Path, meshes: Path) -> None:
    data = load_dataset(meshes, points=7, pool_points=40)
    assert data.points.shape == (6, 7, 3)
    assert data.pool.shape == (6, 40, 3)
    assert data.names[0] == "class0/train/shape0.off"
    with pytest.raises(PointsetError, match=r"points=41 is more than the 40 .*pool_points"):
        load_dataset(meshes, points=41, pool_points=40)


def test_the_real_meshes(home: Path, real_data: Path) -> None:
    train = load_dataset(real_data / "modelnet9_obj", points=64, pool_points=256)
    assert (len(train), len(train.classes)) == (144, 9)
    glued = load_dataset(real_data / "modelnet_off", points=64, pool_points=256)
    assert len(glued) == 19
    assert np.isfinite(glued.pool).all()
