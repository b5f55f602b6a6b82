"""Builds with bad meshes, full disks and killed workers: all named, nothing lost."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from building import CHILD, COUNT, TETRAHEDRON, break_mesh, build

from pointset.data.dataset import load_dataset
from pointset.data.pools import shapes, unfinished
from pointset.data.pools.plan import Sampling
from pointset.data.pools.shapes import Result
from pointset.data.pools.unfinished import UnfinishedPool
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError

BAD = ("class0/train/shape0.off", "class1/train/shape1.off", "class1/train/shape22.off", "class2/test/shape14.off")


@pytest.mark.slow
def test_bad_meshes_stop_nothing_and_are_all_named(home: Path, meshes: Path) -> None:
    paths = [break_mesh(meshes, name) for name in BAD]
    with pytest.raises(UnreadableShapesError, match=r"^4 of 60 files cannot be used") as caught:
        build(meshes, workers=2)
    message = str(caught.value)
    assert all(str(path) in message for path in paths[:3])
    assert "and 1 more" in message
    assert "--on-error skip" in message
    assert set(caught.value.failures) == set(BAD)
    assert caught.value.finished == COUNT - 4
    reported: dict[str, str] = {}
    for report in caught.value.reports:
        assert str(report) in message
        reported |= json.loads(report.read_text())
    assert reported == caught.value.failures
    # Mended, only they are done.
    for path in paths:
        path.write_text(TETRAHEDRON.format(size=5))
    assert build(meshes, workers=1).sampled == 4
    assert not list(home.rglob("errors.json"))


def test_skipped_meshes_are_left_out_and_listed(home: Path, meshes: Path, undisturbed: dict[str, bytes]) -> None:
    assert undisturbed
    build(meshes)
    whole = load_dataset(meshes, points=50, pool_points=50, normals=True).source_pool
    shutil.rmtree(home)
    for name in BAD:
        break_mesh(meshes, name)
    report = build(meshes, on_error="skip")
    assert (report.shapes, report.sampled, set(report.failures)) == (COUNT - 4, COUNT - 4, set(BAD))
    with pytest.warns(UserWarning, match="lacks 3 of 48 shapes"):
        pool = load_dataset(meshes, points=50, pool_points=50, normals=True).source_pool
    kept = [row for row, name in enumerate(whole.names) if name not in BAD]
    assert set(pool.skipped) == set(BAD[:3])
    assert pool.names == [whole.names[row] for row in kept]
    np.testing.assert_array_equal(pool.labels, whole.labels[kept])
    np.testing.assert_array_equal(pool.points, whole.points[kept])
    np.testing.assert_array_equal(pool.arrays["normals"], whole.arrays["normals"][kept])
    # Whoever does not accept it is told, also later; a mesh that was mended since is found.
    assert build(meshes, on_error="skip").failures == report.failures
    with pytest.raises(UnreadableShapesError, match="4 of 60"):
        build(meshes)
    (meshes / BAD[0]).write_text(TETRAHEDRON.format(size=1))
    with pytest.raises(PointsetError, match=r"shape0.off has changed.*--rebuild"):
        build(meshes, on_error="skip")
    assert len(build(meshes, on_error="skip", rebuild=True).failures) == 3


def test_a_data_set_without_one_good_mesh_makes_no_pool(home: Path, few: Path) -> None:
    for path in few.rglob("*.off"):
        path.write_text("OFF\n3 1 0\n0 0 0\n1 1 1\n2 2 2\n3 0 1 2\n")
    with pytest.raises(UnreadableShapesError, match=r"6 of 6 files cannot be used .*no area"):
        build(few, on_error="skip")
    for path in few.rglob("*.off"):
        path.unlink()
    with pytest.raises(PointsetError, match="class0 holds no mesh"):
        build(few)


def test_a_mesh_that_changes_while_it_is_read_is_not_kept(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = shapes.read_mesh

    def meddle(path: Path) -> Any:
        mesh = read(path)
        if path.name == "shape7.off":
            path.write_text(TETRAHEDRON.format(size=123))
        return mesh

    monkeypatch.setattr(shapes, "read_mesh", meddle)
    with pytest.raises(UnreadableShapesError, match=r"^1 of 60 .*shape7.off: changed while it was read"):
        build(meshes, workers=1)


@pytest.mark.parametrize(("workers", "moment"), [(1, "before"), (2, "between")])
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    home: Path, meshes: Path, workers: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if moment == "before":
            usage = namedtuple("usage", "total used free")
            patch.setattr(unfinished.shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 99, 99))
        else:
            patch.setattr(UnfinishedPool, "add", almost_full(10))
        with pytest.raises(PointsetError, match=r"cannot write .*(No space left|MB needed).*POINTSET_HOME") as caught:
            build(meshes, workers=workers)
    assert "\n" not in str(caught.value)
    assert build(meshes, workers=workers).sampled == COUNT - (0 if moment == "before" else 10)


def almost_full(room: int) -> Any:
    """Save shapes on a disk with space for this number of shapes."""
    add = UnfinishedPool.add

    def save(pool: UnfinishedPool, *shape: Any) -> None:
        full = len(pool.entries) == room
        add(pool, *shape)
        if full:
            os.truncate(pool.folder / unfinished.RECORDS, (pool.folder / unfinished.RECORDS).stat().st_size - 40)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return save


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "threads"}, "backend must be one of loky, dask, got 'threads'"),
        ({"workers": 0}, "workers must be .* from 1 to 4,096, got 0"),
        ({"scheduler": "tcp://there:1"}, "scheduler=.tcp://there:1.*set backend to"),
        ({"on_error": "ignore"}, "on_error.*raise or skip.*'ignore'"),
        ({"points": 0}, "points must be .* from 1 to .* got 0"),
        ({"sampler": "random"}, "uniform.*'random'"),
    ],
)
def test_wrong_options_are_refused(home: Path, meshes: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        build(meshes, **options)
    assert not home.exists()


def test_a_worker_that_is_killed_is_one_sentence(home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(batch: Any, sampling: Sampling) -> list[Result]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(shapes, "_make_batch", die)
        with pytest.raises(PointsetError, match=r"worker process was stopped.*fewer workers"):
            build(meshes, workers=2)
    assert build(meshes, workers=2).sampled == COUNT


@pytest.mark.slow
def test_two_builds_at_once_make_one_pool(home: Path, meshes: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(meshes), "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    runs = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]  # type: ignore[call-overload]
    results = sorted(run.communicate(timeout=60) for run in runs)
    assert results == [("0\n", ""), ("48\n", "")], "a bar is for terminals"
    assert len([path for path in (home / "pools").iterdir() if path.is_dir()]) == 1
