"""Builds: the same bytes however they run, no finished work repeated, and every bad mesh named."""

import contextlib
import dataclasses
import importlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from building import CHILD, COUNT, TETRAHEDRON, break_mesh, build, contents, plan_of
from damage import flipped

from pointset.data.pools import shapes as making
from pointset.data.pools import store
from pointset.data.pools.shapes import Result
from pointset.data.pools.store import build_pool
from pointset.data.pools.unfinished import RECORDS, UnfinishedPool, unfinished_folder
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError
from pointset.runs.workers import Workers


@pytest.mark.slow
def test_workers_change_no_byte(home: Path, meshes: Path, undisturbed: dict[str, bytes]) -> None:
    assert build(meshes, workers=2).sampled == COUNT
    assert contents(home) == undisturbed
    assert build(meshes, workers=2).sampled == 0


def test_the_order_of_work_changes_no_byte(
    home: Path, meshes: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_shapes = store.make_shapes

    def shuffled(jobs: list[Any], *rest: Any) -> Iterator[Result]:
        yield from make_shapes(random.Random(7).sample(jobs, len(jobs)), *rest)

    monkeypatch.setattr(store, "make_shapes", shuffled)
    build(meshes, workers=1)
    assert contents(home) == undisturbed


@pytest.mark.slow
def test_a_dask_cluster_changes_no_byte(home: Path, meshes: Path, undisturbed: dict[str, bytes]) -> None:
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[dask]'")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "scheduler_port": 0}
    with distributed.LocalCluster(**options) as cluster:
        assert build(meshes, backend="dask", scheduler=cluster.scheduler_address).sampled == COUNT
        assert contents(home) == undisturbed
        with distributed.Client(cluster):
            assert build(meshes, backend="dask", rebuild=True).sampled == COUNT
    assert contents(home) == undisturbed


def test_an_absent_dask_cluster_is_named(home: Path, meshes: Path) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[dask]'")
    with (
        importlib.import_module("dask").config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(PointsetError, match=r"tcp://127\.0\.0\.1:9"),
    ):
        build(meshes, backend="dask", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(PointsetError, match="needs scheduler=ADDRESS"):
        build(meshes, backend="dask")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_does_nothing_finished_again(home: Path, meshes: Path, workers: int) -> None:
    command = [sys.executable, "-c", CHILD, str(meshes), str(workers)]
    plan = dataclasses.replace(plan_of(meshes, points=400, sampler="fps"), name="killed")
    build_pool(plan, Workers(1), progress=False)
    whole = contents(home)
    shutil.rmtree(home)
    records = unfinished_folder(plan.folder) / RECORDS
    moments = random.Random(workers)
    finished: list[int] = []
    children: list[psutil.Process] = []
    for minimum in (1, 30):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        size = minimum * 2 * 400 * 12  # of points and normals
        while (
            (records.stat().st_size if records.exists() else 0) < size
            and run.poll() is None
            and time.monotonic() < deadline
        ):
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        children.extend(psutil.Process(run.pid).children(recursive=True))
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        now = list(UnfinishedPool(plan).entries)
        assert now[: len(finished)] == finished, "what was finished is not done a second time"
        finished = now
        assert len(finished) >= minimum - 1
    last = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert int(last.stdout) == len(plan.shapes) - len(finished)
    assert contents(home) == whole
    workers_left = psutil.wait_procs(children, timeout=10)[1]
    assert not workers_left


class Stopped(BaseException):
    """The process ends here."""


def stop_before(patch: pytest.MonkeyPatch, step: int) -> None:
    """End the process before its n-th file operation other than writing rows."""
    left = iter(range(step, -1, -1))

    def counted(act: Any) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            if not next(left, 0):
                raise Stopped
            return act(*arguments, **options)

        return do

    for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
        patch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0, 2])
def test_a_build_that_ends_at_any_step_is_taken_up(
    home: Path, few: Path, bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(bad):
        break_mesh(few, f"class{number}/train/shape{number}.off")
    plan = plan_of(few)
    build_pool(plan, Workers(1), on_error="skip", progress=False)
    whole = contents(home)
    sampled: list[int] = []
    make_shape = making.make_shape

    def record(*arguments: Any) -> Result:
        done = make_shape(*arguments)
        sampled.extend([] if done[1].skipped else [done[0]])
        return done

    monkeypatch.setattr(making, "make_shape", record)
    for step in range(100):
        shutil.rmtree(home)
        sampled.clear()
        with monkeypatch.context() as patch:
            stop_before(patch, step)
            with contextlib.suppress(Stopped):
                build_pool(plan, Workers(1), on_error="skip", progress=False)
                break
        build_pool(plan, Workers(1), on_error="skip", progress=False)
        assert contents(home) == whole, step
        assert sorted(sampled) == sorted(set(sampled)), step
    assert 5 < step < 99


@pytest.fixture
def interrupted(home: Path, meshes: Path) -> UnfinishedPool:
    """The 47 finished shapes of 48; the first one could not be used."""
    plan = plan_of(meshes)
    break_mesh(meshes, "class0/train/shape0.off")
    with pytest.raises(UnreadableShapesError):
        build_pool(plan, Workers(1), progress=False)
    return UnfinishedPool(plan)


def test_an_unfinished_pool_has_one_file_of_shapes(interrupted: UnfinishedPool) -> None:
    assert list(interrupted.entries) == list(range(1, 48))
    assert {path.name for path in interrupted.folder.iterdir()} == {RECORDS, "errors.json"}


@pytest.mark.parametrize("seed", range(12))
def test_shapes_after_damage_are_made_again(interrupted: UnfinishedPool, meshes: Path, seed: int) -> None:
    """As after a power cut or on a bad disk: a part of the file is missing or changed."""
    path, random = interrupted.folder / RECORDS, np.random.default_rng(seed)
    content = path.read_bytes()
    place = int(random.integers(len(content)))
    changed = flipped(content[place:], random)
    path.write_bytes(content[:place] + (changed[: random.integers(len(changed))] if seed % 2 else changed))
    (meshes / "class0/train/shape0.off").write_text(TETRAHEDRON.format(size=1))
    (meshes / "class1/train/shape1.off").write_text(TETRAHEDRON.format(size=99))
    intact = set(UnfinishedPool(interrupted.plan).entries)
    assert len(intact) >= place * 47 // len(content) - 1, "shapes before the damage are kept"
    assert build_pool(interrupted.plan, Workers(1), progress=False).sampled == 48 - len(intact)
    resumed = contents(interrupted.folder.parent)
    build_pool(interrupted.plan, Workers(1), rebuild=True, progress=False)
    assert contents(interrupted.folder.parent) == resumed


def test_damage_during_a_build_is_named(interrupted: UnfinishedPool) -> None:
    path = interrupted.folder / RECORDS
    path.write_bytes(flipped(path.read_bytes(), np.random.default_rng(0)))
    with pytest.raises(PointsetError, match=rf"{RECORDS} is damaged: run the command again"):
        interrupted.publish({})
