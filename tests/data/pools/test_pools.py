"""Pools on disk: built once and opened again; changes and damage are found and named."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from building import TETRAHEDRON, build, plan_of, write_mesh
from damage import flip

from pointset.data.dataset import load_dataset
from pointset.data.pool import Pool
from pointset.data.pools.build import build_pool, load_pool
from pointset.data.pools.inspection import verify_dataset
from pointset.data.pools.manifest import POOL_FORMAT, faults_of_pool
from pointset.errors import PointsetError
from pointset.runs.workers import Workers


def pool_of(folder: Path, *, points: int = 11, normals: bool = False, **options: object) -> Pool:
    return load_pool(plan_of(folder, points=points, normals=normals, **options), workers=Workers(1), progress=False)


def pools(home: Path) -> list[Path]:
    return sorted(path for path in (home / "pools").iterdir() if path.is_dir())


def test_a_pool_is_made_once_and_then_mapped(home: Path, few: Path) -> None:
    first = pool_of(few)
    assert first.points.shape == (6, 11, 3)
    assert isinstance(first.points, np.memmap)
    assert not first.points.flags.writeable
    assert first.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert build_pool(plan_of(few, points=11, normals=False)) == 0
    np.testing.assert_array_equal(first.points, pool_of(few).points)
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
def test_the_pool_of_a_changed_mesh_is_made_again(home: Path, few: Path, same_time: bool) -> None:
    before = pool_of(few)
    path = few / "class0" / "train" / "shape2.off"
    os.utime(path, (1, 1))
    pool_of(few)  # without a warning: another time alone is not a change
    facts = path.stat()
    path.write_text(TETRAHEDRON.format(size=99 if same_time else 9))
    assert (path.stat().st_size != facts.st_size) == same_time
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + (0 if same_time else 1)))
    with pytest.warns(UserWarning, match=r"is made again: .*shape2.off has changed"):
        after = pool_of(few)
    same = [np.array_equal(*pair) for pair in zip(before.points, after.points, strict=True)]
    assert [name for name, equal in zip(after.names, same, strict=True) if not equal] == ["class0/train/shape2.off"]


def test_other_parameters_and_other_shapes_make_another_pool(home: Path, few: Path) -> None:
    for options in ({}, {"points": 12}, {"seed": 1}, {"sampler": "fps"}, {"normals": True}):
        pool_of(few, **options)  # type: ignore[arg-type]
    (few / "class1/train/shape1.off").unlink()
    pool_of(few)
    (few / "class0/train/shape0.off").rename(few / "class0/train/other.off")
    pool_of(few)
    assert len(pools(home)) == 7


def test_a_pool_of_another_version_is_used(home: Path, few: Path) -> None:
    pool_of(few)
    path = pools(home)[0] / "manifest.json"
    path.write_text(path.read_text().replace('"version": "', '"version": "99.'))
    pool_of(few)


CLOUD = "ply\nformat ascii 1.0\nelement vertex {size}\n{columns}property int label\nend_header\n{rows}"
COLUMNS = ("x", "y", "z", "nx", "ny", "nz", "intensity")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of meshes and of clouds, and the home of their pools."""
    root = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSET_HOME", str(root / "home"))
        for number in range(12):
            place = Path(f"class{number % 2}", "test" if number > 7 else "train")
            write_mesh(root / "meshes" / place, number)
            rows = np.random.default_rng(number).uniform(1, 2, size=(8 + number, len(COLUMNS))).tolist()
            lines = "".join(f"{' '.join(map(str, row))} {index % 2}\n" for index, row in enumerate(rows))
            columns = "".join(f"property float {name}\n" for name in COLUMNS)
            (root / "clouds" / place).mkdir(parents=True, exist_ok=True)
            content = CLOUD.format(size=len(rows), columns=columns, rows=lines)
            (root / "clouds" / place / f"{number}.ply").write_text(content)
        yield root


def load(folder: Path) -> dict[str, np.ndarray]:
    clouds = {"features": ("normals", "intensity")}
    options = clouds if folder.name == "clouds" else {"features": "normals", "pool_points": 11}
    pool = load_dataset(folder, points=8, progress=False, **options).source_pool
    return {name: np.array(array) for name, array in {"points": pool.points, **pool.arrays}.items()}


Damage = tuple[str, Callable[[], object]]


def flips(path: Path) -> list[Damage]:
    """A bit of a byte at the start, in the middle, at the end and at three other places of the numbers in a file."""
    start, size = 128, path.stat().st_size
    places = np.random.default_rng(0).integers(start, size, size=3).tolist()
    return [(path.name, partial(flip, path, place)) for place in (start, size // 2, size - 1, *places)]


def damages(folder: Path) -> list[Damage]:
    """Damages that show when a pool is opened."""
    points, manifest = folder / "points.npy", folder / "manifest.json"
    return [
        ("points.npy", points.unlink),
        ("points.npy", partial(os.truncate, points, 150)),
        ("points.npy has", partial(np.save, points, np.zeros((8, 10, 3), np.float32))),
        ("points.npy has", partial(np.save, points, np.zeros((8, 11, 3)))),
        ("manifest.json is missing", manifest.unlink),
        *(("manifest.json cannot be read", partial(manifest.write_text, text)) for text in ("{", "[" * 100_000, "[]")),
        ("manifest.json", partial(manifest.write_text, f'{{"format": {POOL_FORMAT}, "shapes": [{{}}]}}')),
        ("has format 99", partial(manifest.write_text, '{"format": 99}')),
    ]


@pytest.mark.parametrize("kind", ["meshes", "clouds"])
def test_a_damaged_pool_is_made_again(kind: str, root: Path) -> None:
    whole = load(root / kind)
    (folder,) = (root / "home" / "pools").glob(f"{kind}-train-????????????????")
    copy = shutil.copytree(folder, root / f"copy of {kind}")
    for words, damage in damages(folder):
        damage()
        (problem,) = faults_of_pool(folder, progress=False)
        assert re.search(words, problem)
        with pytest.warns(UserWarning, match=f"is made again: .*{words}"):
            loaded = load(root / kind)
        assert all(np.array_equal(loaded[array], whole[array]) for array in whole)
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    assert not [*faults_of_pool(folder, progress=False)]


@pytest.mark.parametrize("kind", ["meshes", "clouds"])
def test_any_flipped_bit_is_found_by_verification(kind: str, root: Path) -> None:
    load(root / kind)
    (folder,) = (root / "home" / "pools").glob(f"{kind}-train-????????????????")
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        for words, damage in flips(path):
            damage()
            (problem,) = faults_of_pool(folder, progress=False)
            assert re.search(words, problem)
            path.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda pool, _: flip(pool / "points.npy", -1), "points.npy.* points of class1/train/shape5.off"),
        (lambda pool, _: flip(pool / "normals.npy", -240), "normals.npy.* points of class1/train/shape5.off"),
        (lambda pool, _: flip(pool / "points.npy", -241), "points.npy.* points of class1/train/shape3.off"),
        (lambda _, folder: flip(folder / "class0/train/shape2.off", 8), "shape2.off has changed"),
        (lambda _, folder: (folder / "class0/train/shape2.off").unlink(), "shape2.off cannot be read any more"),
    ],
)
def test_verification_names_the_shape(
    home: Path, few: Path, damage: Callable[[Path, Path], object], words: str
) -> None:
    built = build(few, points=20).folder
    build(few, points=30)
    assert [(found.shapes, found.problems) for found in verify_dataset(few, progress=False)] == [(6, ()), (6, ())]
    damage(built, few)
    (problem,) = faults_of_pool(built, progress=False)
    assert re.search(words, problem)


def test_skipped_shapes_do_no_harm_while_their_meshes_stay(home: Path, few: Path) -> None:
    with pytest.raises(PointsetError, match="has no pool in"):
        verify_dataset(few, progress=False)
    bad = few / "class0" / "train" / "shape0.off"
    bad.write_text("OFF\n")
    build(few, points=20, on_error="skip")
    (found,) = verify_dataset(few, progress=False)
    assert (found.shapes, found.skipped, found.problems) == (5, 1, ())
    bad.write_text(TETRAHEDRON.format(size=1))
    (found,) = verify_dataset(few, progress=False)
    assert "shape0.off has changed" in found.problems[0]
