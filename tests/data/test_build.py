"""Builds: the same bytes however they are run, nothing finished is done twice, and every bad mesh is named."""

import contextlib
import errno
import importlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from joblib import Parallel

from pointset.data import partial_pool, spread
from pointset.data.build import BuildReport, build_dataset
from pointset.data.cache import build_pool, mesh_pool, pool_folder
from pointset.data.folders import list_shapes
from pointset.data.manifest import Plan
from pointset.data.pool_build import UnreadableMeshesError
from pointset.data.shape_jobs import Sampled, Sampling
from pointset.data.spread import Workers
from pointset.errors import PointsetError

TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n{size} 0 0\n0 {size} 0\n0 0 {size}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
COUNT = 60


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def meshes(tmp_path: Path) -> Path:
    folder = tmp_path / "my parts"
    for number in range(COUNT):
        split = "test" if number % 5 == 4 else "train"
        path = folder / f"class{number % 3}" / split / f"shape{number}.off"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TETRAHEDRON.format(size=number + 1))
    return folder


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes from the first mesh on, two meshes to a task, so that small folders have many tasks."""
    monkeypatch.setattr(spread, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(spread, "BATCH", {"uniform": 2, "fps": 1, "poisson": 1})


def build(folder: Path, **options: Any) -> BuildReport:
    return build_dataset(folder, **{"points": 50, "normals": True, "progress": False} | options)


def plan_of(folder: Path, split: str = "train", **options: Any) -> Plan:
    shapes, classes = list_shapes(folder, split)
    return Plan.of(f"{folder.name}-{split}", shapes, classes, Sampling(**{"points": 50, "normals": True} | options))


def contents(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.suffix in (".npy", ".json")
    }


def break_mesh(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("OFF\n3 1 0\n0 0 0\n")
    return path


@pytest.fixture
def undisturbed(home: Path, meshes: Path) -> dict[str, bytes]:
    """What a build in this process writes; taken away again."""
    report = build(meshes, workers=1)
    assert (report.shapes, report.sampled, report.failures) == (COUNT, COUNT, {})
    whole = contents(home)
    assert len(whole) == 6
    shutil.rmtree(home)
    return whole


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_change_no_byte(
    home: Path, meshes: Path, undisturbed: dict[str, bytes], at_once: None, workers: int
) -> None:
    assert build(meshes, workers=workers).sampled == COUNT
    assert contents(home) == undisturbed
    assert build(meshes, workers=workers).sampled == 0


def test_the_order_of_work_changes_no_byte(
    home: Path, meshes: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_all = spread.sample_all

    def shuffled(jobs: list[Any], *rest: Any) -> Iterator[Sampled]:
        yield from sample_all(random.Random(7).sample(jobs, len(jobs)), *rest)

    monkeypatch.setattr("pointset.data.pool_build.sample_all", shuffled)
    build(meshes, workers=1)
    assert contents(home) == undisturbed


@pytest.mark.parametrize("address", [True, False], ids=["address", "client of this process"])
def test_a_dask_cluster_changes_no_byte(
    home: Path, meshes: Path, undisturbed: dict[str, bytes], address: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[cluster]'")
    monkeypatch.setattr(spread, "BATCH", {"uniform": 2})
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        if address:
            report = build(meshes, backend="dask", scheduler=cluster.scheduler_address)
        else:
            with distributed.Client(cluster):
                report = build(meshes, backend="dask")
    assert report.sampled == COUNT
    assert contents(home) == undisturbed


def test_a_dask_cluster_that_does_not_answer_is_named(home: Path, meshes: Path) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[cluster]'")
    with (
        importlib.import_module("dask").config.set({"distributed.comm.timeouts.connect": "0.3s"}),
        pytest.raises(PointsetError, match=r"no dask scheduler answers at tcp://127\.0\.0\.1:9"),
    ):
        build(meshes, backend="dask", scheduler="tcp://127.0.0.1:9")


def test_dask_without_a_cluster_says_what_it_needs(home: Path, meshes: Path) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'pointset[cluster]'")
    with pytest.raises(PointsetError, match="needs scheduler=ADDRESS"):
        build(meshes, backend="dask")


def test_a_ray_cluster_changes_no_byte(home: Path, meshes: Path, undisturbed: dict[str, bytes]) -> None:
    ray = pytest.importorskip("ray", reason="needs ray: pip install ray")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ray's own
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        try:
            assert build(meshes, backend="ray", workers=2).sampled == COUNT
        finally:
            ray.shutdown()
    assert contents(home) == undisturbed


CHILD = """
import sys
from pathlib import Path
from pointset.data import spread
from pointset.data.cache import build_pool
from pointset.data.folders import list_shapes
from pointset.data.manifest import Plan
from pointset.data.shape_jobs import Sampling
shapes, classes = list_shapes(Path(sys.argv[1]), "train")
spread.GRACE_SECONDS = 0
plan = Plan.of("killed", shapes, classes, Sampling(400, "fps", normals=True))
print(build_pool(plan, spread.Workers(int(sys.argv[2])), progress=False).sampled)
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_build_does_nothing_finished_again(home: Path, meshes: Path, workers: int) -> None:
    command = [sys.executable, "-c", CHILD, str(meshes), str(workers)]
    shapes, classes = list_shapes(meshes, "train")
    plan = Plan.of("killed", shapes, classes, Sampling(400, "fps", normals=True))
    build_pool(plan, Workers(1), progress=False)
    whole = contents(home)
    shutil.rmtree(home)
    partial = partial_pool.partial_folder(pool_folder(plan))
    moments = random.Random(workers)
    finished: list[str] = []
    children: list[psutil.Process] = []
    for minimum in (1, 15, 30, 40):
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while len(journal(partial)) < minimum and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.02))
        children.extend(psutil.Process(run.pid).children(recursive=True))
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        now = journal(partial)
        assert now[: len(finished)] == finished  # what was finished stays as it was,
        rows = [json.loads(line)["row"] for line in now]
        assert len(rows) == len(set(rows)) >= minimum  # and is not done a second time
        finished = now
    last = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert int(last.stdout) == len(plan.shapes) - len(finished)
    assert contents(home) == whole
    workers_left = psutil.wait_procs(children, timeout=10)[1]
    assert not workers_left


def journal(partial: Path) -> list[str]:
    """The whole lines, without the first."""
    path = partial / partial_pool.JOURNAL
    return path.read_text().split("\n")[1:-1] if path.exists() else []


class Stopped(BaseException):
    """The process ends here."""


def stop_before(patch: pytest.MonkeyPatch, step: int) -> None:
    """End the process before it does a number of things with files, other than writing rows."""
    left = iter(range(step, -1, -1))

    def counted(act: Any) -> Any:
        def do(*arguments: Any, **options: Any) -> Any:
            if not next(left):
                raise Stopped
            return act(*arguments, **options)

        return do

    for owner, name in ((Path, "replace"), (Path, "unlink"), (os, "fsync")):
        patch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.parametrize("bad", [0, 2])
def test_a_build_that_ends_at_any_step_is_taken_up(
    home: Path, meshes: Path, bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(bad):
        break_mesh(meshes, f"class{number}/train/shape{number}.off")
    plan = plan_of(meshes)
    build_pool(plan, Workers(1), on_error="skip", progress=False)
    whole = contents(home)
    sampled: list[int] = []
    sample = spread.sample_shape

    def record(*arguments: Any) -> Sampled:
        done = sample(*arguments)
        sampled.extend([] if done.reason else [done.row])
        return done

    monkeypatch.setattr(spread, "sample_shape", record)
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
    assert 8 < step < 99


def test_rows_that_did_not_reach_the_disk_are_sampled_again(home: Path, meshes: Path) -> None:
    """As after a power cut: the journal is there, a row and a half of what it says are not."""
    plan = plan_of(meshes)
    break_mesh(meshes, "class0/train/shape0.off")
    with pytest.raises(UnreadableMeshesError):
        build_pool(plan, Workers(1), progress=False)
    partial = partial_pool.partial_folder(pool_folder(plan))
    with (partial / "points.rows").open("r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(b"\1\2\3\4")
    with (partial / partial_pool.JOURNAL).open("a") as file:
        file.write('{"row": 3}\nno JSON\n{"row": 1, "sour')
    (meshes / "class1/train/shape1.off").write_text(TETRAHEDRON.format(size=99))
    (meshes / "class0/train/shape0.off").write_text(TETRAHEDRON.format(size=1))
    assert build_pool(plan, Workers(1), progress=False).sampled == 3  # damaged, changed, mended
    interrupted = contents(home)
    build_pool(plan, Workers(1), rebuild=True, progress=False)
    assert contents(home) == interrupted


def test_an_unfinished_pool_of_another_format_is_started_again(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = break_mesh(meshes, "class0/train/shape0.off")
    with pytest.raises(UnreadableMeshesError):
        build_pool(plan_of(meshes), Workers(1), progress=False)
    broken.write_text(TETRAHEDRON.format(size=1))
    monkeypatch.setattr(partial_pool, "FORMAT", partial_pool.FORMAT + 1)
    assert build_pool(plan_of(meshes), Workers(1), progress=False).sampled == 48


BAD = ("class0/train/shape0.off", "class1/train/shape1.off", "class1/train/shape22.off", "class2/test/shape14.off")


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_meshes_stop_nothing_and_are_all_named(home: Path, meshes: Path, at_once: None, workers: int) -> None:
    paths = [break_mesh(meshes, name) for name in BAD]
    with pytest.raises(UnreadableMeshesError, match=r"^4 of 60 meshes cannot be used") as caught:
        build(meshes, workers=workers)
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
    assert build(meshes, workers=workers).sampled == 4
    assert not list(home.rglob("errors.json"))


def test_skipped_meshes_are_left_out_and_listed(home: Path, meshes: Path, undisturbed: dict[str, bytes]) -> None:
    assert undisturbed
    build(meshes)
    whole = mesh_pool("my parts-train", *list_shapes(meshes, "train"), points=50, normals=True)
    shutil.rmtree(home)
    for name in BAD:
        break_mesh(meshes, name)
    report = build(meshes, on_error="skip")
    assert (report.shapes, report.sampled, set(report.failures)) == (COUNT - 4, COUNT - 4, set(BAD))
    with pytest.warns(UserWarning, match="lacks 3 of 48 shapes"):
        pool = mesh_pool("my parts-train", *list_shapes(meshes, "train"), points=50, normals=True)
    kept = [row for row, name in enumerate(whole.names) if name not in BAD]
    assert set(pool.skipped) == set(BAD[:3])
    assert pool.names == [whole.names[row] for row in kept]
    np.testing.assert_array_equal(pool.labels, whole.labels[kept])
    np.testing.assert_array_equal(pool.points, whole.points[kept])
    assert pool.normals is not None
    assert whole.normals is not None
    np.testing.assert_array_equal(pool.normals, whole.normals[kept])
    # Whoever does not accept it is told, also later; a mesh that was mended since is found.
    assert build(meshes, on_error="skip").failures == report.failures
    with pytest.raises(UnreadableMeshesError, match="4 of 60"):
        build(meshes)
    (meshes / BAD[0]).write_text(TETRAHEDRON.format(size=1))
    with pytest.raises(PointsetError, match=r"shape0.off has changed.*--rebuild"):
        build(meshes, on_error="skip")
    assert len(build(meshes, on_error="skip", rebuild=True).failures) == 3


def test_a_data_set_without_one_good_mesh_makes_no_pool(home: Path, meshes: Path) -> None:
    for path in meshes.rglob("*.off"):
        path.write_text("OFF\n")
    with pytest.raises(UnreadableMeshesError, match="60 of 60 meshes cannot be used"):
        build(meshes, on_error="skip")


def test_a_reader_that_breaks_down_is_a_bad_mesh(home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_mesh(path: Path) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("pointset.data.shape_jobs.read_mesh", read_mesh)
    with pytest.raises(UnreadableMeshesError, match=r"shape0.off: RecursionError: too deep"):
        build(meshes, workers=1)


def test_a_mesh_that_changes_while_it_is_read_is_not_kept(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pointset.data import shape_jobs

    read = shape_jobs.read_mesh

    def meddle(path: Path) -> Any:
        mesh = read(path)
        if path.name == "shape7.off":
            path.write_text(TETRAHEDRON.format(size=123))
        return mesh

    monkeypatch.setattr(shape_jobs, "read_mesh", meddle)
    with pytest.raises(UnreadableMeshesError, match=r"^1 of 60 .*shape7.off: changed while it was read"):
        build(meshes, workers=1)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("moment", ["before", "between"])
def test_a_full_disk_is_one_sentence_and_loses_nothing(
    home: Path, meshes: Path, at_once: None, workers: int, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if moment == "before":
            usage = namedtuple("usage", "total used free")
            patch.setattr(partial_pool.shutil, "disk_usage", lambda path: usage(10**6, 10**6 - 99, 99))
        else:
            left = iter(range(20, -1, -1))
            patch.setattr(partial_pool.PartialPool, "_open_array", almost_full(left))
        with pytest.raises(PointsetError, match=r"cannot write .*(No space left|MB needed).*POINTSET_HOME") as caught:
            build(meshes, workers=workers)
    assert "\n" not in str(caught.value)
    assert build(meshes, workers=workers).sampled == COUNT - (0 if moment == "before" else 10)


def almost_full(left: Iterator[int]) -> Any:
    """Files on a disk that has room for so many rows."""

    class File(io.BufferedRandom):
        def write(self, block: Any) -> int:
            if not next(left, 0):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(block)

    open_array = partial_pool.PartialPool._open_array
    return lambda pool, name: File(open_array(pool, name).detach())


def test_a_read_only_home_is_one_sentence_and_its_pools_can_be_read(
    home: Path, meshes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(meshes)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for owner, name in ((Path, "mkdir"), (Path, "replace"), (Path, "unlink"), (os, "open")):
        monkeypatch.setattr(owner, name, refuse)
    assert build(meshes).sampled == 0
    with pytest.raises(PointsetError, match=r"cannot (write|create) .*Read-only file system.*POINTSET_HOME"):
        build(meshes, seed=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "threads"}, "backend='threads'.*loky, dask, ray"),
        ({"workers": 0}, "workers=0"),
        ({"scheduler": "tcp://there:1"}, "scheduler=tcp://there:1.*name its backend"),
        ({"on_error": "ignore"}, "on_error='ignore'.*raise or skip"),
        ({"points": 0}, "pool_points=0"),
        ({"splits": ("trial",)}, "no shape in split 'trial'"),
    ],
)
def test_wrong_options_are_refused(home: Path, meshes: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        build(meshes, **options)
    assert not home.exists()


def test_results_that_wait_are_bounded() -> None:
    """A consumer that is slow, as a slow disk makes it, holds the workers back."""
    given, taken = 0, 0

    def supply() -> Iterator[Any]:
        nonlocal given
        for batch in range(100):
            given += 1
            yield [batch]

    with Parallel(n_jobs=2, backend="threading", return_as="generator_unordered", pre_dispatch=4, batch_size=1) as run:
        for _ in spread._in_rounds(run, supply(), list, limit=8):
            taken += 1
            time.sleep(0.003)
            assert given - taken <= 8 + 2  # and one that is looked at ahead
    assert (given, taken) == (100, 100)


def test_a_worker_that_is_killed_is_one_sentence(
    home: Path, meshes: Path, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(batch: Any, sampling: Sampling) -> list[Sampled]:
        os.kill(os.getpid(), signal.SIGKILL)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(spread, "sample_batch", die)
        with pytest.raises(PointsetError, match=r"worker process was stopped.*fewer workers"):
            build(meshes, workers=2)
    assert build(meshes, workers=2).sampled == COUNT


def test_two_builds_at_once_make_one_pool(home: Path, meshes: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(meshes), "1"]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = sorted(int(run.communicate(timeout=60)[0]) for run in runs)
    assert results == [0, 48]
    assert len([path for path in (home / "pools").iterdir() if path.is_dir()]) == 1
