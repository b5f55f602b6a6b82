"""Builds: the same bytes however they run, no finished work repeated, and every bad mesh named."""

import errno
import os
import random
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from building import TETRAHEDRON, TRAINING, break_mesh, build, contents, plan_of
from damage import flip, kill_at

from pointset.data.dataset import load_dataset
from pointset.data.pools import build as pools_build
from pointset.data.pools.build import MadeShape, build_pool, read_shape, unfinished_folder
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError
from pointset.runs.workers import Workers

BAD = ("class0/train/shape0.off", "class1/train/shape1.off", "class1/train/shape22.off")


@pytest.mark.slow
def test_neither_order_nor_workers_change_a_byte(home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(meshes, workers=1).sampled == TRAINING
    whole, make_shapes = contents(home), pools_build.make_shapes
    assert len(whole) == 3

    def shuffled(jobs: list[Any], *rest: Any) -> Iterator[MadeShape]:
        yield from make_shapes(random.Random(7).sample(jobs, len(jobs)), *rest)

    monkeypatch.setattr(pools_build, "make_shapes", shuffled)
    for workers in (1, 2):
        shutil.rmtree(home)
        assert build(meshes, workers).sampled == TRAINING
        assert contents(home) == whole, workers


def finished(folder: Path) -> set[int]:
    """The rows of the finished shapes of a pool that is being built."""
    return {int(file.stem) for file in unfinished_folder(folder).glob("*.shape") if read_shape(file)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("owner", "name", "calls"),
    [
        (Path, "write_bytes", (1, 4, 6)),
        (os, "fsync", (1, 2, 4)),
        (Path, "replace", (1,)),
        (shutil, "rmtree", (1, 2)),
    ],
)
def test_a_build_that_is_killed_is_taken_up(
    home: Path, few: Path, owner: Any, name: str, calls: tuple[int, ...]
) -> None:
    break_mesh(few, "class0/train/shape0.off")
    plan = plan_of(few)
    build_few = partial(build_pool, plan, Workers(1), on_error="skip", progress=False)
    build_few()
    whole = contents(home)
    for call in calls:
        shutil.rmtree(home)
        kill_at(call, owner, name, build_few)
        kept = finished(plan.folder)
        made = build_few()
        assert contents(home) == whole, call
        assert made in (0, 5 - len(kept)), call


@pytest.mark.parametrize("cut", [True, False])
def test_damaged_and_outdated_shapes_are_made_again(home: Path, meshes: Path, cut: bool) -> None:
    """As after a power cut or on a bad disk: the end of a file is missing, or a bit has changed."""
    plan = plan_of(meshes)
    bad = break_mesh(meshes, "class0/train/shape0.off")
    with pytest.raises(UnreadableShapesError):
        build_pool(plan, Workers(1), progress=False)
    assert finished(plan.folder) == set(range(1, 48))
    file = unfinished_folder(plan.folder) / "20.shape"
    if cut:
        os.truncate(file, file.stat().st_size - 100)
    else:
        flip(file, -100)
    assert finished(plan.folder) == set(range(1, 48)) - {20}
    bad.write_text(TETRAHEDRON.format(size=1))
    (meshes / "class2/train/shape47.off").write_text(TETRAHEDRON.format(size=99))
    outdated = {
        row for row, shape in enumerate(plan.listing.shapes) if shape.path.name in ("shape0.off", "shape47.off")
    }
    assert build_pool(plan, Workers(1), progress=False) == len({20} | outdated)
    resumed = contents(home)
    shutil.rmtree(home)
    build_pool(plan, Workers(1), progress=False)
    assert contents(home) == resumed


@pytest.mark.slow
def test_bad_meshes_stop_nothing_and_are_all_named(home: Path, meshes: Path) -> None:
    paths = [break_mesh(meshes, name) for name in BAD]
    with pytest.raises(UnreadableShapesError, match=r"^3 of 48 files cannot be used.*--on-error skip") as caught:
        build(meshes, workers=2)
    error = caught.value
    assert all(str(path) in str(error) for path in paths)
    assert (set(error.failures), error.finished) == (set(BAD), TRAINING - 3)
    for path in paths:
        path.write_text(TETRAHEDRON.format(size=5))
    assert build(meshes, workers=1).sampled == 3


def test_skipped_meshes_are_left_out_and_listed(home: Path, meshes: Path) -> None:
    build(meshes)
    whole = load_dataset(meshes, points=50, pool_points=50, features="normals").source_pool
    shutil.rmtree(home)
    for name in BAD:
        break_mesh(meshes, name)
    made = build(meshes, on_error="skip")
    assert (made.shapes, made.sampled, set(made.failures)) == (TRAINING - 3, TRAINING - 3, set(BAD))
    with pytest.warns(UserWarning, match="lacks 3 of 48 shapes"):
        pool = load_dataset(meshes, points=50, pool_points=50, features="normals", on_error="skip").source_pool
    kept = [row for row, name in enumerate(whole.names) if name not in BAD]
    assert set(pool.skipped) == set(BAD)
    assert pool.names == [whole.names[row] for row in kept]
    assert pool.fingerprint(range(len(pool)), ["normals"]) == whole.fingerprint(kept, ["normals"])
    # They are reported later too, and a mesh that was corrected is noticed.
    assert build(meshes, on_error="skip").failures == made.failures
    with pytest.raises(UnreadableShapesError, match="3 of 48"):
        build(meshes)
    (meshes / BAD[0]).write_text(TETRAHEDRON.format(size=1))
    with pytest.warns(UserWarning, match=r"is made again: .*shape0.off has changed"):
        assert len(build(meshes, on_error="skip").failures) == 2


def test_a_data_set_without_one_good_mesh_makes_no_pool(home: Path, few: Path) -> None:
    for path in few.rglob("*.off"):
        path.write_text("OFF\n3 1 0\n0 0 0\n1 1 1\n2 2 2\n3 0 1 2\n")
    with pytest.raises(UnreadableShapesError, match=r"6 of 6 files cannot be used .*no area"):
        build(few, on_error="skip")


def test_a_mesh_that_changes_while_it_is_read_is_not_kept(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = pools_build.read_mesh

    def meddle(path: Path) -> Any:
        mesh = read(path)
        if path.name == "shape7.off":
            path.write_text(TETRAHEDRON.format(size=123), encoding="utf-8")
        return mesh

    monkeypatch.setattr(pools_build, "read_mesh", meddle)
    with pytest.raises(UnreadableShapesError, match=r"^1 of 48 .*shape7.off: changed while it was read"):
        build(meshes, workers=1)


def test_a_full_disk_is_one_sentence_and_loses_nothing(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pools_build.write_shape

    def full(file: Path, *shape: Any) -> None:
        write(file, *shape)
        if file.stem == "20":
            os.truncate(file, file.stat().st_size - 40)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(pools_build, "write_shape", full)
        with pytest.raises(PointsetError, match=r"cannot be written .*No space left") as caught:
            build(meshes, workers=1)
    assert "\n" not in str(caught.value)
    assert build(meshes, workers=1).sampled == TRAINING - 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers.*0"),
        ({"on_error": "ignore"}, "on_error.*'skip'.*'ignore'"),
        ({"points": 0}, "points.*0"),
        ({"sampler": "random"}, "uniform.*'random'"),
    ],
)
def test_wrong_options_are_refused(home: Path, meshes: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        build(meshes, **options)
    assert not home.exists()


@pytest.mark.slow
def test_a_killed_worker_is_named_and_the_next_run_continues(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        patch.setattr(pools_build, "make_pool_shape", die)
        with pytest.raises(PointsetError, match=r"worker process was stopped.*fewer workers"):
            build(meshes, workers=2)
    assert build(meshes, workers=2).sampled == TRAINING


def test_two_builds_at_once_make_one_pool(home: Path, meshes: Path) -> None:
    """In threads, which a lock of a file separates like processes."""
    with ThreadPoolExecutor(2) as threads:
        builds = [threads.submit(build_pool, plan_of(meshes), Workers(1), progress=False) for _ in range(2)]
    assert sorted(made.result() for made in builds) == [0, 48]
    assert len([path for path in (home / "pools").iterdir() if path.is_dir()]) == 1


def test_remarks_of_many_files_are_one_warning(home: Path, few: Path) -> None:
    for path in few.rglob("*.off"):
        path.write_text(path.read_text().replace("4 4 6", "4 5 6") + "2 0 1\n")
    with pytest.warns(UserWarning, match=r"6 of 6 files are read with a remark: .*1 of 5 faces") as warned:
        assert len(load_dataset(few, points=5, pool_points=20, progress=False)) == 6
    assert len(warned) == 1
    assert len(load_dataset(few, points=5, pool_points=20, progress=False)) == 6
