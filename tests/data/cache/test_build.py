"""Point caches: the same bytes however they are built, no work repeated, and bad meshes, changes and damages named."""

import errno
import json
import os
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from toy import TETRAHEDRON, flip, kill_at, write_mesh

from pointset import DataOptions, PointsetError, load_dataset
from pointset.data import PointCache, read_mesh, sample_points
from pointset.data.cache import build as cache_build
from pointset.data.cache.build import SampledShape, load_cache, open_cache, read_shape
from pointset.data.cache.inspection import verify_cache, verify_dataset
from pointset.data.cache.manifest import CachePlan
from pointset.data.catalogue.folders import list_folder
from pointset.data.sampling import seed_for
from pointset.data.unusable import UnreadableShapesError
from pointset.runs.workers import Workers

BAD = ("class0/train/shape0.off", "class1/train/shape1.off", "class1/train/shape22.off")
COUNT, TRAINING = 60, 48
"""Shapes of `meshes`."""


class Built(NamedTuple):
    folder: Path
    shapes: int
    sampled: int
    failures: dict[str, str]


def build(folder: Path, workers: int | None = None, *, on_error: str = "raise", **options: Any) -> Built:
    plan = plan_of(folder, **options)
    opened = open_cache(plan, Workers(workers), on_error=on_error, progress=False)
    return Built(plan.folder, len(opened.manifest.kept), opened.sampled, opened.manifest.failures)


def plan_of(folder: Path, split: str = "train", **options: Any) -> CachePlan:
    chosen = DataOptions(**{"cache_points": 50, "features": ("normals",)} | options)
    return CachePlan(list_folder(folder), split, chosen)


def faults(cache: Path, folder: Path) -> tuple[str, ...]:
    verified = verify_cache(cache, folder, progress=False)
    assert verified is not None
    return verified.problems


def contents(home: Path) -> dict[str, bytes]:
    return {str(one.relative_to(home)): one.read_bytes() for one in home.rglob("*") if one.suffix in (".npy", ".json")}


def break_mesh(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("OFF\n3 1 0\n0 0 0\n")
    return path


@pytest.fixture
def meshes(tmp_path):
    folder = tmp_path / "my parts.1"
    for number in range(COUNT):
        write_mesh(folder / f"class{number % 3}" / ("test" if number % 5 == 4 else "train"), number)
    return folder


@pytest.mark.slow
def test_neither_order_nor_workers_change_a_byte(home, meshes, monkeypatch):
    assert build(meshes, workers=1).sampled == TRAINING
    whole, sample_shapes = contents(home), cache_build.sample_shapes
    assert len(whole) == 3

    def shuffled(jobs: list[Any], *rest: Any) -> Iterator[SampledShape]:
        yield from sample_shapes(random.Random(7).sample(jobs, len(jobs)), *rest)

    monkeypatch.setattr(cache_build, "sample_shapes", shuffled)
    for workers in (1, 2):
        shutil.rmtree(home)
        assert build(meshes, workers).sampled == TRAINING
        assert contents(home) == whole, workers


def finished(plan: CachePlan) -> set[int]:
    """The rows of the finished shapes of a cache that is being built."""
    return {int(file.stem) for file in plan.unfinished.glob("*.shape") if read_shape(file)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [(Path, "write_bytes", (1, 4, 6)), (os, "fsync", (1, 2, 4)), (Path, "replace", (1,)), (shutil, "rmtree", (1, 2))],
)
def test_a_build_that_is_killed_is_taken_up(home, few, owner, name, calls):
    break_mesh(few, "class0/train/shape0.off")
    plan = plan_of(few)
    build_few = partial(open_cache, plan, Workers(1), on_error="skip", progress=False)
    build_few()
    whole = contents(home)
    for call in calls:
        shutil.rmtree(home)
        kill_at(call, owner, name, build_few)
        kept = finished(plan)
        made = build_few().sampled
        assert contents(home) == whole, call
        assert made in (0, 5 - len(kept)), call


@pytest.mark.parametrize("cut", [True, False])
def test_damaged_and_outdated_shapes_are_made_again(home, meshes, cut):
    """As after a power cut or on a bad disk: the end of a file is missing, or a bit has changed."""
    plan = plan_of(meshes)
    bad = break_mesh(meshes, "class0/train/shape0.off")
    with pytest.raises(UnreadableShapesError):
        open_cache(plan, Workers(1), progress=False)
    assert finished(plan) == set(range(1, 48))
    file = plan.unfinished / "20.shape"
    if cut:
        os.truncate(file, file.stat().st_size - 100)
    else:
        flip(file, -100)
    assert finished(plan) == set(range(1, 48)) - {20}
    bad.write_text(TETRAHEDRON.format(size=1))
    (meshes / "class2/train/shape47.off").write_text(TETRAHEDRON.format(size=99))
    outdated = {row for row, one in enumerate(plan.shapes) if one.path.name in ("shape0.off", "shape47.off")}
    assert open_cache(plan, Workers(1), progress=False).sampled == len({20} | outdated)
    resumed = contents(home)
    shutil.rmtree(home)
    open_cache(plan, Workers(1), progress=False)
    assert contents(home) == resumed


@pytest.mark.slow
def test_bad_meshes_stop_nothing_and_are_all_named(home, meshes):
    paths = [break_mesh(meshes, name) for name in BAD]
    with pytest.raises(UnreadableShapesError, match=r"^3 of 48 files cannot be used.*--on-error skip") as caught:
        build(meshes, workers=2)
    error = caught.value
    assert all(name in str(error) for name in BAD)
    assert (set(error.failures), error.finished) == (set(BAD), TRAINING - 3)
    for path in paths:
        path.write_text(TETRAHEDRON.format(size=5))
    assert build(meshes, workers=1).sampled == 3


def test_skipped_meshes_are_left_out_and_listed(home, meshes):
    build(meshes)
    whole = load_dataset(meshes, points=50, cache_points=50, features="normals").point_cache
    shutil.rmtree(home)
    for name in BAD:
        break_mesh(meshes, name)
    made = build(meshes, on_error="skip")
    assert (made.shapes, made.sampled, set(made.failures)) == (TRAINING - 3, TRAINING - 3, set(BAD))
    with pytest.warns(UserWarning, match="lacks 3 of 48 shapes"):
        cache = load_dataset(meshes, points=50, cache_points=50, features="normals", on_error="skip").point_cache
    kept = [row for row, name in enumerate(whole.names) if name not in BAD]
    assert set(cache.skipped) == set(BAD)
    assert cache.names == [whole.names[row] for row in kept]
    assert cache.fingerprint(range(len(cache)), ["normals"]) == whole.fingerprint(kept, ["normals"])
    # They are reported later too, and a mesh that was corrected is noticed.
    assert build(meshes, on_error="skip").failures == made.failures
    with pytest.raises(UnreadableShapesError, match="3 of 48"):
        build(meshes)
    (meshes / BAD[0]).write_text(TETRAHEDRON.format(size=1))
    with pytest.warns(UserWarning, match=r"is rebuilt: .*shape0.off has changed"):
        assert len(build(meshes, on_error="skip").failures) == 2


def test_a_data_set_without_one_good_mesh_makes_no_cache(home, few):
    for path in few.rglob("*.off"):
        path.write_text("OFF\n3 1 0\n0 0 0\n1 1 1\n2 2 2\n3 0 1 2\n")
    with pytest.raises(UnreadableShapesError, match=r"6 of 6 files cannot be used .*no area"):
        build(few, on_error="skip")


def test_a_mesh_that_changes_while_it_is_read_is_not_kept(home, meshes, monkeypatch):
    read = cache_build.read_mesh

    def meddle(path: Path) -> Any:
        mesh = read(path)
        if path.name == "shape7.off":
            path.write_text(TETRAHEDRON.format(size=123), encoding="utf-8")
        return mesh

    monkeypatch.setattr(cache_build, "read_mesh", meddle)
    with pytest.raises(UnreadableShapesError, match=r"^1 of 48 .*shape7.off: changed while it was read"):
        build(meshes, workers=1)


def test_a_full_disk_is_one_sentence_and_loses_nothing(home, meshes, monkeypatch):
    write = cache_build.write_shape

    def full(file: Path, *shape: Any) -> None:
        write(file, *shape)
        if file.stem == "20":
            os.truncate(file, file.stat().st_size - 40)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(cache_build, "write_shape", full)
        with pytest.raises(PointsetError, match=r"cannot be written .*No space left") as caught:
            build(meshes, workers=1)
    assert "\n" not in str(caught.value)
    assert build(meshes, workers=1).sampled == TRAINING - 20


@pytest.mark.slow
def test_a_killed_worker_is_named_and_the_next_run_continues(home, meshes, monkeypatch):
    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(cache_build, "sample_shape", die)
        with pytest.raises(PointsetError, match=r"worker process was stopped.*fewer workers"):
            build(meshes, workers=2)
    assert build(meshes, workers=2).sampled == TRAINING


def test_two_builds_at_once_make_one_cache(home, meshes):
    """In threads, which a lock of a file separates like processes."""
    with ThreadPoolExecutor(2) as threads:
        builds = [threads.submit(open_cache, plan_of(meshes), Workers(1), progress=False) for _ in range(2)]
    assert sorted(made.result().sampled for made in builds) == [0, 48]
    assert len([path for path in (home / "cache").iterdir() if path.is_dir()]) == 1


def test_remarks_of_many_files_are_one_warning_which_is_repeated(home, few):
    for path in few.rglob("*.off"):
        path.write_text(path.read_text().replace("4 4 6", "4 5 6") + "2 0 1\n")
    with pytest.warns(UserWarning, match=r"6 of 6 files are read with a remark: .*1 of 5 faces") as warned:
        assert len(load_dataset(few, points=5, cache_points=20, progress=False)) == 6
    assert len(warned) == 1
    with pytest.warns(UserWarning, match=r"6 of 6 files are read with a remark"):
        data = load_dataset(few, points=5, cache_points=20, progress=False)
    assert data.describe()["remarks"] == str(warned[0].message)


def cache_of(folder: Path, *, points: int = 11, normals: bool = False, **options: object) -> PointCache:
    return load_cache(
        plan_of(folder, cache_points=points, features=("normals",) * normals, **options),
        workers=Workers(1),
        progress=False,
    )


def caches(home: Path) -> list[Path]:
    return sorted(path for path in (home / "cache").iterdir() if path.is_dir())


def test_a_cache_is_made_once_and_then_mapped(home, few):
    first = cache_of(few)
    assert first.points.shape == (6, 11, 3)
    assert isinstance(first.points, np.memmap)
    assert not first.points.flags.writeable
    assert first.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert open_cache(plan_of(few, cache_points=11, features=())).sampled == 0
    np.testing.assert_array_equal(first.points, cache_of(few).points)
    content = json.loads((caches(home)[0] / "manifest.json").read_text())
    assert {"preparation", "kind", "seed", "classes"} <= content.keys()
    assert content["entries"][0]["source"]["bytes"] == (few / first.names[0]).stat().st_size


def test_points_depend_on_seed_and_name_and_not_on_other_shapes(home, few, tmp_path):
    cache = cache_of(few)
    fewer = tmp_path / "fewer"
    shutil.copytree(few, fewer)
    (fewer / "class0" / "train" / "shape0.off").unlink()
    np.testing.assert_array_equal(cache_of(fewer).points, cache.points[1:])
    assert not np.array_equal(cache_of(few, data_seed=1).points, cache.points)
    shutil.copy(few / "class0" / "train" / "shape0.off", few / "class0" / "train" / "twin.off")
    with_twin = cache_of(few)
    first, twin = (with_twin.points[with_twin.names.index(f"class0/train/{name}.off")] for name in ("shape0", "twin"))
    assert not np.array_equal(first, twin)


def test_points_and_normals_are_those_of_each_shapes_mesh(home, few):
    plain, cache = cache_of(few), cache_of(few, normals=True)
    assert plain.arrays == {}
    assert cache.arrays["normals"].shape == (6, 11, 3)
    np.testing.assert_array_equal(cache.points, plain.points)
    for name, points, normals in zip(cache.names, cache.points, cache.arrays["normals"], strict=True):
        expected = sample_points(read_mesh(few / name), 11, seed=seed_for(0, name), normals=True)
        np.testing.assert_array_equal(points, expected[0])
        np.testing.assert_array_equal(normals, expected[1])


@pytest.mark.parametrize("same_time", [False, True], ids=["other time and contents", "other size"])
def test_the_cache_of_a_changed_mesh_is_made_again(home, few, same_time):
    before = cache_of(few)
    path = few / "class0" / "train" / "shape2.off"
    os.utime(path, (1, 1))
    cache_of(few)  # without a warning: another time alone is not a change
    facts = path.stat()
    path.write_text(TETRAHEDRON.format(size=99 if same_time else 9))
    assert (path.stat().st_size != facts.st_size) == same_time
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + (0 if same_time else 1)))
    with pytest.warns(UserWarning, match=r"is rebuilt: .*shape2.off has changed"):
        after = cache_of(few)
    same = [np.array_equal(*pair) for pair in zip(before.points, after.points, strict=True)]
    assert [name for name, equal in zip(after.names, same, strict=True) if not equal] == ["class0/train/shape2.off"]


def test_other_parameters_and_other_shapes_make_another_cache(home, few):
    for options in ({}, {"points": 12}, {"data_seed": 1}, {"sampler": "fps"}, {"normals": True}):
        cache_of(few, **options)  # type: ignore[arg-type]
    (few / "class1/train/shape1.off").unlink()
    cache_of(few)
    (few / "class0/train/shape0.off").rename(few / "class0/train/other.off")
    cache_of(few)
    assert len(caches(home)) == 7


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Folders of meshes and of clouds, and the home of their caches."""
    root = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSET_HOME", str(root / "home"))
        for number in range(12):
            place = Path(f"class{number % 2}", "test" if number > 7 else "train")
            write_mesh(root / "meshes" / place, number)
            rows = np.random.default_rng(number).uniform(1, 2, size=(8 + number, 7))
            (root / "clouds" / place).mkdir(parents=True, exist_ok=True)
            path = root / "clouds" / place / f"{number}.csv"
            np.savetxt(path, rows, delimiter=",", header="x,y,z,nx,ny,nz,intensity", comments="")
        yield root


def load(folder: Path) -> dict[str, np.ndarray]:
    clouds = {"features": ("normals", "intensity")}
    options = clouds if folder.name == "clouds" else {"features": "normals", "cache_points": 11}
    cache = load_dataset(folder, points=8, progress=False, **options).point_cache
    return {name: np.array(array) for name, array in {"points": cache.points, **cache.arrays}.items()}


def damages(folder: Path) -> list[tuple[str, Callable[[], object]]]:
    """Damages that show when a cache is opened."""
    points, manifest = folder / "points.npy", folder / "manifest.json"
    return [
        ("points.npy", points.unlink),
        ("points.npy", partial(os.truncate, points, 150)),
        ("points.npy has", partial(np.save, points, np.zeros((8, 10, 3), np.float32))),
        ("points.npy has", partial(np.save, points, np.zeros((8, 11, 3)))),
        ("manifest.json is missing", manifest.unlink),
        *(("manifest.json cannot be read", partial(manifest.write_text, text)) for text in ("{", "[" * 100_000, "[]")),
        ("manifest.json", partial(manifest.write_text, '{"entries": [{}]}')),
    ]


@pytest.mark.parametrize("kind", ["meshes", "clouds"])
def test_a_damaged_cache_is_made_again(kind, root):
    whole = load(root / kind)
    (folder,) = (root / "home" / "cache").glob(f"{kind}-train-????????????????")
    copy = shutil.copytree(folder, root / f"copy of {kind}")
    for words, damage in damages(folder):
        damage()
        (problem,) = faults(folder, root / kind)
        assert re.search(words, problem)
        with pytest.warns(UserWarning, match=f"is rebuilt: .*{words}"):
            loaded = load(root / kind)
        assert all(np.array_equal(loaded[array], whole[array]) for array in whole)
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    assert faults(folder, root / kind) == ()


@pytest.mark.parametrize("kind", ["meshes", "clouds"])
def test_any_flipped_bit_is_found_by_verification(kind, root):
    load(root / kind)
    (folder,) = (root / "home" / "cache").glob(f"{kind}-train-????????????????")
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        for place in (128, len(whole) // 2, -1):  # in the numbers, behind the header
            flip(path, place)
            (problem,) = faults(folder, root / kind)
            assert path.name in problem
            path.write_bytes(whole)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda cache, _: flip(cache / "points.npy", -1), "points.npy.* points of class1/train/shape5.off"),
        (lambda cache, _: flip(cache / "normals.npy", -240), "normals.npy.* points of class1/train/shape5.off"),
        (lambda cache, _: flip(cache / "points.npy", -241), "points.npy.* points of class1/train/shape3.off"),
        (lambda _, folder: flip(folder / "class0/train/shape2.off", 8), "shape2.off has changed"),
        (lambda _, folder: (folder / "class0/train/shape2.off").unlink(), "shape2.off cannot be read any more"),
    ],
)
def test_verification_names_the_shape(home, few, damage, words):
    built = build(few, cache_points=20).folder
    build(few, cache_points=30)
    assert [(found.shapes, found.problems) for found in verify_dataset(few, progress=False)] == [(6, ()), (6, ())]
    damage(built, few)
    (problem,) = faults(built, few)
    assert re.search(words, problem)


def test_skipped_shapes_do_no_harm_while_their_meshes_stay(home, few):
    bad = few / "class0" / "train" / "shape0.off"
    bad.write_text("OFF\n")
    build(few, cache_points=20, on_error="skip")
    (found,) = verify_dataset(few, progress=False)
    assert (found.shapes, found.skipped, found.problems) == (5, 1, ())
    bad.write_text(TETRAHEDRON.format(size=1))
    (found,) = verify_dataset(few, progress=False)
    assert "shape0.off has changed" in found.problems[0]


def test_a_finished_cache_parses_its_manifest_once(home, few, monkeypatch):
    cache_of(few)
    parsed, read = [], cache_build.read_manifest
    monkeypatch.setattr(cache_build, "read_manifest", lambda folder: parsed.append(folder) or read(folder))
    cache_of(few)
    assert len(parsed) == 1
