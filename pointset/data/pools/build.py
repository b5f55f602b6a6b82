"""Plan, build and open pools: the points of all shapes of a split, on disk.

A pool is built under a lock in a folder beside it, from which an interrupted build is continued: a file for every
finished shape, with a digest, so that a torn file counts as absent. When all are there, the arrays and the manifest
are written in shape order to a new folder. Shapes are sampled in this process, in several, or on a cluster, by joblib:
a worker receives file names and returns points, in any order, and writes nothing. Opening a pool looks at the sizes of
its arrays, and at the sizes and times of the shapes' files; `inspection` reads all bytes.
"""

import contextlib
import hashlib
import itertools
import json
import shlex
import shutil
import time
import warnings
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check
from pointset.data.catalogue.folders import Listing, ShapeFile, list_splits
from pointset.data.catalogue.locate import locate_data, make_folder, pools_home
from pointset.data.catalogue.released import is_released
from pointset.data.options import SPLITS
from pointset.data.pool import Pool
from pointset.data.pools.manifest import MANIFEST_FILE, POOL_FORMAT, Manifest, read_manifest, write_header
from pointset.data.pools.shapes import MadeShape, PoolArrays, PoolEntry, Sampling, make_pool_shape
from pointset.data.sampling import import_open3d
from pointset.data.unusable import OnError, UnreadableShapesError, refuse_or_leave_out
from pointset.errors import PointsetError
from pointset.runs.atomic import full_disk_reported, new_folder, write_text
from pointset.runs.locks import locked
from pointset.runs.progress import progress_bar
from pointset.runs.workers import Workers, run_in_workers

ERRORS = "errors.json"
"""File in the folder of an unfinished pool with the files that could not be used, and the reasons."""
DIGEST = 32
"""Bytes at the start of the file of a finished shape."""
GRACE_SECONDS = 0.5
"""Time for which this process makes shapes before it starts workers, unless a number of workers is given."""
SHAPES_PER_TASK = {"fps": 1, "poisson": 1}
"""Shapes per batch by sampler, default `MANY`: enough to outweigh messages, few enough to lose little when stopped."""
MANY = 16
ROUND = 256
"""Batches that are given out at once, so that few results wait in memory to be written."""


@dataclass(frozen=True)
class PoolPlan:
    """The shapes of a pool, by class and name, and their sampling."""

    name: str
    """Prefix of the folder's name."""
    shapes: tuple[ShapeFile, ...]
    classes: tuple[str, ...]
    sampling: Sampling

    @classmethod
    def of(cls, name: str, listing: Listing, sampling: Sampling) -> Self:
        """Make a plan from the shapes of one split."""
        return cls(name, tuple(listing.shapes), tuple(listing.classes), sampling)

    @property
    def root(self) -> Path:
        """The dataset's folder, to which the shapes' names are relative."""
        shape = self.shapes[0]
        return shape.path.parents[len(PurePosixPath(shape.name).parts) - 1]

    @cached_property  # used several times, and depends on all shapes
    def folder(self) -> Path:
        """The folder of the pool, whose name ends in a hash of the format and of all that distinguishes the pool."""
        identity = {
            "folder": str(self.root),
            "classes": list(self.classes),
            **self.sampling.as_dict(),
            "names": [[shape.name, shape.label, str(shape.path)] for shape in self.shapes],
        }
        key = hashlib.sha256(json.dumps([POOL_FORMAT, identity], sort_keys=True).encode()).hexdigest()[:16]
        return pools_home() / f"{self.name}-{key}"


def build_command(root: str | Path, sampling: Sampling, *flags: str) -> str:
    """The command that builds the pools of a folder of meshes."""
    words = ["pointset", "data", "build", str(root), "--pool-points", str(sampling.points)]
    words += ["--sampler", sampling.sampler, "--data-seed", str(sampling.seed)]
    return shlex.join([*words, *(["--normals"] if sampling.normals else []), *flags])


@dataclass(frozen=True)
class Made:
    """The result of a build of one pool."""

    folder: Path
    shapes: int
    """Shapes in the pool, M."""
    sampled: int
    """Number of them sampled by this call."""
    failures: dict[str, str]
    """The reasons why files cannot be used, by the shape's name."""

    def require(self, on_error: str, report: Path) -> None:
        """Raise an UnreadableShapesError if files failed, unless they may be skipped and other shapes remain."""
        refuse_or_leave_out(
            self.failures,
            self.shapes,
            on_error,
            "files",
            "correct them and run again (finished shapes are kept)",
            reports=[report],
        )


def load_pool(
    plan: PoolPlan, *, workers: Workers | None = None, on_error: str = "raise", progress: bool = True
) -> Pool:
    """Open the pool of a plan, memory-mapped, after building it if it is missing: ragged for clouds.

    A pool without some of the shapes is opened with a warning; for clouds, only if `on_error` is "skip", because such a
    pool is never built by an explicit command. If a pool is damaged, or older than its files, it is rebuilt for
    clouds, but refused for meshes, because models may have been trained on it.
    """
    clouds = plan.sampling.points is None
    if not plan.folder.is_dir():
        build_pool(plan, workers, on_error=on_error, progress=progress)
    try:
        manifest, arrays = open_pool(plan)
    except PointsetError:
        if not clouds:
            raise
        build_pool(plan, workers, on_error=on_error, rebuild=True, progress=progress)
        manifest, arrays = open_pool(plan)
    kept, failures = manifest.kept, manifest.failures
    if failures:
        if clouds:
            Made(plan.folder, len(kept), 0, failures).require(on_error, plan.folder / MANIFEST_FILE)
        warnings.warn(
            f"{plan.name} lacks {len(failures)} of {len(manifest.entries)} shapes, whose files could not be "
            f"used: {plan.folder / MANIFEST_FILE} says why",
            UserWarning,
            stacklevel=5,  # the caller of load_dataset
        )
    return Pool(
        arrays.pop("points"),
        [entry.name for entry in kept],
        np.array([entry.label for entry in kept], np.int64),
        list(manifest.classes),
        plan.sampling.sampler,
        arrays=arrays,
        checksums=tuple(entry.checksums["points"] for entry in kept),
        skipped=tuple(failures),
        offsets=manifest.offsets if clouds else None,
    )


def open_pool(plan: PoolPlan) -> tuple[Manifest, dict[str, NDArray[Any]]]:
    """Check a finished pool and its shapes' files, and memory-map its arrays; a PointsetError if one has changed."""
    try:
        manifest = read_manifest(plan.folder)
        manifest.require_current()
        return manifest, manifest.open_arrays(plan.folder)
    except PointsetError as error:
        raise PointsetError(
            f"the pool of points {plan.folder} cannot be used: {error}; make it again with "
            f"`{build_command(plan.root, plan.sampling, '--rebuild')}`, or delete that folder and run again"
        ) from error


def build_pool(
    plan: PoolPlan,
    workers: Workers | None = None,
    *,
    on_error: str = "raise",
    rebuild: bool = False,
    progress: bool = True,
) -> Made:
    """Build a pool, or finish one that an interrupted run left; an existing pool is only checked.

    A second process that builds the same pool waits for the first. If files cannot be used, after all have been tried,
    `on_error` "raise" keeps the finished shapes for the next run, and "skip" finishes the pool without the others.
    """
    check("on_error", on_error, OnError)
    folder, unfinished = plan.folder, unfinished_folder(plan.folder)
    if rebuild or not folder.is_dir() or unfinished.exists():
        make_folder(folder.parent)
        with full_disk_reported(folder), locked(folder.with_name(folder.name + ".lock")):
            if rebuild and folder.is_dir():
                shutil.rmtree(folder)
            if (rebuild or folder.is_dir()) and unfinished.is_dir():
                shutil.rmtree(unfinished)
            if not folder.is_dir():
                return _make_pool(plan, workers or Workers(), on_error, progress)
    manifest, _ = open_pool(plan)
    made = Made(folder, len(manifest.kept), 0, manifest.failures)
    made.require(on_error, folder / MANIFEST_FILE)
    return made


def unfinished_folder(folder: Path) -> Path:
    """The folder of the finished shapes of a pool that is being built."""
    return folder.with_name(folder.name + ".partial")


def _make_pool(plan: PoolPlan, workers: Workers, on_error: str, progress: bool) -> Made:
    """Make the missing shapes, then write the pool; the caller holds the lock."""
    folder = unfinished_folder(plan.folder)
    folder.mkdir(exist_ok=True)
    files = {shape.name: folder / f"{row}.shape" for row, shape in enumerate(plan.shapes)}
    entries = dict[str, PoolEntry]()
    for name, file in files.items():
        if (finished := read_shape(file)) and finished[0].is_current:
            entries[name] = finished[0]
    before = len(entries)
    missing = [shape for shape in plan.shapes if shape.name not in entries]
    bar = progress_bar(f"making {plan.name}", "shape", len(plan.shapes), show=progress, done=before)
    with bar, contextlib.closing(make_shapes(missing, plan.sampling, workers)) as results:
        for entry, arrays in results:
            entries[entry.name] = entry
            if not entry.skipped:
                write_shape(files[entry.name], entry, arrays)
            bar.update()
    manifest = Manifest(str(plan.root), plan.classes, plan.sampling, tuple(entries[name] for name in files))
    if remarks := [entry.remarks for entry in manifest.kept if entry.remarks]:
        warnings.warn(f"{len(remarks):,} of {len(entries):,} files are read with a remark: {remarks[0]}", stacklevel=5)
    made = Made(plan.folder, len(manifest.kept), len(manifest.kept) - before, manifest.failures)
    write_text(folder / ERRORS, json.dumps(made.failures, indent=1, ensure_ascii=False) + "\n")
    made.require(on_error, folder / ERRORS)
    _write_pool(plan.folder, manifest, (files[entry.name] for entry in manifest.kept))
    shutil.rmtree(folder)
    return made


def write_shape(file: Path, entry: PoolEntry, arrays: PoolArrays) -> None:
    """Write a finished shape after a digest."""
    content = msgspec.msgpack.encode((entry, {name: array.tobytes() for name, array in arrays.items()}))
    file.write_bytes(hashlib.sha256(content).digest() + content)


def read_shape(file: Path) -> tuple[PoolEntry, dict[str, bytes]] | None:
    """Read what `write_shape` wrote; None if there is no file, or a kill, a full disk or a power cut damaged it."""
    content = file.read_bytes() if file.exists() else b""
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        return None
    return msgspec.msgpack.decode(content[DIGEST:], type=tuple[PoolEntry, dict[str, bytes]])


def _write_pool(target: Path, manifest: Manifest, files: Iterable[Path]) -> None:
    """Write the pool of the finished shapes, whose files are in their order."""
    with new_folder(target) as folder:
        with contextlib.ExitStack() as opened:
            names = manifest.sampling.arrays
            arrays = {name: opened.enter_context((folder / f"{name}.npy").open("wb")) for name in names}
            for name, array in arrays.items():
                write_header(array, name, manifest.shape(name))
            for file in files:
                if not (finished := read_shape(file)):
                    raise PointsetError(f"{file} is damaged: run the command again, which makes its shape again")
                for name, array in arrays.items():
                    array.write(finished[1][name])
        (folder / MANIFEST_FILE).write_bytes(manifest.as_json())


def build_dataset(
    name_or_folder: str | Path,
    sampling: Sampling,
    *,
    workers: Workers | None = None,
    on_error: str = "raise",
    rebuild: bool = False,
    split_seed: int = 0,
    progress: bool = True,
) -> dict[str, Made]:
    """Sample every mesh of a dataset into pools of points on disk.

    Shapes finished by an earlier build, even an interrupted one, are not sampled again. The result does not depend on
    the workers. On a cluster, they need the mesh files under the same paths; only this process writes.

    The arguments are those of `build_pool` and `load_dataset`. Returns the pools by split.
    """
    workers = workers or Workers()
    workers.check()
    _, folder = locate_data(name_or_folder, progress=progress)
    if is_released(folder):
        raise PointsetError(f"{name_or_folder} holds sampled points already ({folder}): there is nothing to build")
    listings = list_splits(folder, seed=split_seed)
    if any(listing.kind == "clouds" for listing in listings.values()):
        raise PointsetError(f"{folder} holds point clouds, which need no sampling: load them with load_dataset")
    if not {*SPLITS} & {*listings}:
        raise PointsetError(f"{folder} has neither train nor test shapes: found {', '.join(listings)}")
    pools: dict[str, Made] = {}
    errors: list[UnreadableShapesError] = []
    for split in [split for split in SPLITS if split in listings]:
        plan = PoolPlan.of(f"{folder.name}-{split}", listings[split], sampling)
        try:
            pools[split] = build_pool(plan, workers, on_error=on_error, rebuild=rebuild, progress=progress)
        except UnreadableShapesError as error:  # raised below, after the other splits
            errors.append(error)
    if errors:
        failures = {name: reason for error in errors for name, reason in error.failures.items()}
        finished = sum(error.finished for error in errors) + sum(made.shapes for made in pools.values())
        reports = [report for error in errors for report in error.reports]
        raise UnreadableShapesError(failures, finished, reports, errors[0].remedy)
    return pools


def make_shapes(shapes: Sequence[ShapeFile], sampling: Sampling, workers: Workers) -> Generator[MadeShape, None, None]:
    """Make the points of many files, in any order.

    Raises:
        PointsetError: the cluster cannot be reached, its library is missing, or a worker process died.
    """
    from joblib import delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left, batch = iter(shapes), SHAPES_PER_TASK.get(sampling.sampler, MANY)
    if not workers.scheduler:
        if sampling.sampler == "poisson" and shapes:
            import_open3d()  # raises here rather than for every mesh
        end = time.monotonic() + (GRACE_SECONDS if workers.count is None else 0)
        while workers.cores == 1 or time.monotonic() < end:
            if (shape := next(left, None)) is None:
                return
            yield make_pool_shape(shape, sampling)
    try:
        while tasks := [delayed(make_pool_shape)(shape, sampling) for shape in itertools.islice(left, ROUND * batch)]:
            yield from run_in_workers(tasks, workers, workers.cores, batch=batch)
    except BrokenProcessPool as error:
        raise PointsetError(
            "a worker process was stopped, most often because memory ran out: run again with fewer workers; finished "
            "shapes are kept"
        ) from error
