"""Plan, build and open caches: the points of all shapes of a split, on disk.

A cache is built under a lock in a folder beside it, from which an interrupted build is continued: a file for every
finished shape, with a digest, so that a torn file counts as absent. When all are there, the arrays and the manifest
are written in shape order to a new folder. Shapes are sampled in this process, or in several, by joblib: a worker
receives file names and returns points, in any order, and writes nothing. Opening a cache looks at the sizes of
its arrays, and at the sizes and times of the shapes' files; `pointset data verify` reads all bytes.
"""

import contextlib
import hashlib
import itertools
import json
import shutil
import time
import warnings
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check
from pointset.data.cache.manifest import (
    CACHE_FORMAT,
    MANIFEST_FILE,
    CacheEntry,
    Manifest,
    Sampling,
    Source,
    read_manifest,
)
from pointset.data.catalogue.folders import Listing, ShapeFile
from pointset.data.catalogue.locate import home, make_folder
from pointset.data.outliers import without_outliers
from pointset.data.point_cache import PointCache, digest_of
from pointset.data.readers.formats import naming
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.sampling import import_open3d, sample_points, seed_for
from pointset.data.unusable import MOST_SAID, OnError, refuse_or_leave_out
from pointset.errors import PointsetError, one_line
from pointset.runs.atomic import full_disk_reported, new_folder
from pointset.runs.locks import locked
from pointset.runs.progress import progress_bar, write_line
from pointset.runs.workers import Workers, run_in_workers

DIGEST = 32
"""Bytes at the start of the file of a finished shape."""
GRACE_SECONDS = 0.5
"""Time for which this process makes shapes before it starts workers, unless a number of workers is given."""
MANY = 16
"""Shapes per batch, but for slow samplers: enough to outweigh messages, few enough to lose little when stopped."""
ROUND = 256
"""Batches that are given out at once, so that few results wait in memory to be written."""


ShapeArrays = dict[str, NDArray[Any]]
"""Points float32 [n, 3] and, if wanted, normals [n, 3] and features [n, f], by name."""
MadeShape = tuple[CacheEntry, ShapeArrays]
"""The entry of a shape in the manifest, and its points; none if the entry is skipped."""


@dataclass(frozen=True)
class CachePlan:
    """The shapes of one split, and their sampling."""

    listing: Listing
    sampling: Sampling

    @property
    def name(self) -> str:
        """Prefix of the folder's name."""
        return f"{self.listing.folder.name}-{self.listing.shapes[0].split}"

    @cached_property  # used several times, and depends on all shapes
    def folder(self) -> Path:
        """The folder of the cache, whose name ends in a hash of the format and of all that distinguishes the cache."""
        identity = {
            "folder": str(self.listing.folder),
            "classes": self.listing.classes,
            **self.sampling.as_dict(),
            "names": [[shape.name, shape.label, str(shape.path)] for shape in self.listing.shapes],
        }
        key = hashlib.sha256(json.dumps([CACHE_FORMAT, identity], sort_keys=True).encode()).hexdigest()[:16]
        return home() / "cache" / f"{self.name}-{key}"


def load_cache(
    plan: CachePlan, *, workers: Workers | None = None, on_error: str = "raise", progress: bool = True
) -> PointCache:
    """Open the cache of a plan, memory-mapped, after building it if it is missing: ragged for clouds.

    A cache that is damaged, or older than its files, is built again, with a warning. One without some of the shapes is
    opened with a warning, if `on_error` is "skip".
    """
    build_cache(plan, workers, on_error=on_error, progress=progress)
    manifest = read_manifest(plan.folder)
    kept, failures, arrays = manifest.kept, manifest.failures, manifest.open_arrays(plan.folder)
    if failures:
        warnings.warn(
            f"{plan.name} lacks {len(failures)} of {len(manifest.entries)} shapes, whose files could not be "
            f"used ({one_line('; '.join(failures.values()), MOST_SAID)}): {plan.folder / MANIFEST_FILE} has all",
            UserWarning,
            stacklevel=5,  # the caller of load_dataset
        )
    return PointCache(
        arrays.pop("points"),
        [entry.name for entry in kept],
        np.array([entry.label for entry in kept], np.int64),
        list(manifest.classes),
        plan.sampling.sampler,
        arrays=arrays,
        checksums=tuple(entry.checksums["points"] for entry in kept),
        skipped=tuple(failures),
        offsets=manifest.offsets if plan.sampling.points is None else None,
    )


def _fault(folder: Path) -> str:
    """Why a finished cache cannot be used: a damage, or a shape's file that has changed; "" if it can."""
    try:
        manifest = read_manifest(folder)
        manifest.open_arrays(folder)
    except PointsetError as error:
        return str(error)
    changed = [entry.file for entry in manifest.entries if not entry.source.is_current(Path(entry.file))]
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"{changed[0]}{more} has changed since" if changed else ""


def _refuse(failures: dict[str, str], finished: int, on_error: str) -> None:
    refuse_or_leave_out(failures, finished, on_error, "files", "correct them and run again (finished shapes are kept)")


def build_cache(
    plan: CachePlan, workers: Workers | None = None, *, on_error: str = "raise", progress: bool = True
) -> int:
    """Build a cache, or finish one that an interrupted run left; an existing one only if it cannot be used.

    A second process that builds the same cache waits for the first. If files cannot be used, after all have been tried,
    `on_error` "raise" keeps the finished shapes for the next run, and "skip" finishes the cache without the others.
    Returns the number of shapes that were sampled.
    """
    check("on_error", on_error, OnError)
    folder, unfinished = plan.folder, unfinished_folder(plan.folder)
    fault = _fault(folder) if folder.is_dir() else ""
    if fault:
        warnings.warn(f"the point cache {folder} is made again: {fault}", UserWarning, stacklevel=6)
    if fault or not folder.is_dir():
        make_folder(folder.parent)
        with full_disk_reported(folder), locked(folder.with_name(folder.name + ".lock")):
            if fault:
                shutil.rmtree(folder, ignore_errors=True)
                shutil.rmtree(unfinished, ignore_errors=True)
            if not folder.is_dir():
                return _make_cache(plan, workers or Workers(), on_error, progress)
    shutil.rmtree(unfinished, ignore_errors=True)
    manifest = read_manifest(folder)
    _refuse(manifest.failures, len(manifest.kept), on_error)
    return 0


def unfinished_folder(folder: Path) -> Path:
    """The folder of the finished shapes of a cache that is being built."""
    return folder.with_name(folder.name + ".partial")


def _make_cache(plan: CachePlan, workers: Workers, on_error: str, progress: bool) -> int:
    """Make the missing shapes, then write the cache; the caller holds the lock."""
    folder = unfinished_folder(plan.folder)
    folder.mkdir(exist_ok=True)
    files = {shape.name: folder / f"{row}.shape" for row, shape in enumerate(plan.listing.shapes)}
    entries = dict[str, CacheEntry]()
    for name, file in files.items():
        if (finished := read_shape(file)) and finished[0].source.is_current(Path(finished[0].file)):
            entries[name] = finished[0]
    before = len(entries)
    missing = [shape for shape in plan.listing.shapes if shape.name not in entries]
    bar = progress_bar(f"making {plan.name}", "shape", len(files), show=progress, done=before)
    with bar, contextlib.closing(make_shapes(missing, plan.sampling, workers)) as results:
        for entry, arrays in results:
            entries[entry.name] = entry
            if not entry.skipped:
                write_shape(files[entry.name], entry, arrays)
            elif progress and sum(bool(each.skipped) for each in entries.values()) == 1:
                write_line(f"{entry.skipped}; the other files are still tried")  # what takes long need not be awaited
            bar.update()
    listing = plan.listing
    manifest = Manifest(
        str(listing.folder), tuple(listing.classes), plan.sampling, tuple(entries[name] for name in files)
    )
    if remarks := [entry.remarks for entry in manifest.kept if entry.remarks]:
        warnings.warn(f"{len(remarks):,} of {len(entries):,} files are read with a remark: {remarks[0]}", stacklevel=5)
    _refuse(manifest.failures, len(manifest.kept), on_error)
    _write_cache(plan.folder, manifest, (files[entry.name] for entry in manifest.kept))
    shutil.rmtree(folder)
    return len(manifest.kept) - before


def sample_shape(shape: ShapeFile, sampling: Sampling) -> MadeShape:
    """Make the points of one file; after any failure, the entry is skipped and has the reason."""
    source, arrays, reason, caught = Source(-1, -1, None), ShapeArrays(), "", list[warnings.WarningMessage]()
    try:  # readers and samplers can raise many errors, which must not stop the other files
        with naming(shape.path, PointsetError), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # said once for all files, also by other processes
            source = Source.of(shape.path)
            arrays = _arrays(shape, sampling)
            if not source.is_current(shape.path):
                raise PointsetError("changed while it was read: run again")
    except PointsetError as error:
        arrays, reason = {}, str(error)
    remarks = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, UserWarning))
    entry = CacheEntry(
        shape.name,
        shape.label,
        str(shape.path),
        source,
        checksums={name: digest_of(array) for name, array in arrays.items()},
        skipped=reason,
        size=len(arrays["points"]) if arrays and sampling.points is None else None,
        width=arrays["features"].shape[1] if "features" in arrays else None,
        remarks="" if reason else "; ".join(remarks),
    )
    return entry, arrays


def _arrays(shape: ShapeFile, sampling: Sampling) -> ShapeArrays:
    if sampling.points is None:
        cloud = read_cloud(shape.path, normals=sampling.normals, features=sampling.features)
        arrays = (cloud if sampling.keep_outliers else without_outliers(cloud, str(shape.path))).arrays
    else:
        seed, mesh = seed_for(sampling.seed, shape.name), read_mesh(shape.path)
        points, normals = sample_points(mesh, sampling.points, seed=seed, sampler=sampling.sampler, normals=True)
        arrays = {"points": points, "normals": normals}
    return {name: arrays[name].astype("<f4", copy=False) for name in sampling.arrays}


def write_shape(file: Path, entry: CacheEntry, arrays: ShapeArrays) -> None:
    """Write a finished shape after a digest."""
    content = msgspec.msgpack.encode((entry, {name: array.tobytes() for name, array in arrays.items()}))
    file.write_bytes(hashlib.sha256(content).digest() + content)


def read_shape(file: Path) -> tuple[CacheEntry, dict[str, bytes]] | None:
    """Read what `write_shape` wrote; None if there is no file, or a kill, a full disk or a power cut damaged it."""
    content = file.read_bytes() if file.exists() else b""
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        return None
    return msgspec.msgpack.decode(content[DIGEST:], type=tuple[CacheEntry, dict[str, bytes]])


def _write_cache(target: Path, manifest: Manifest, files: Iterable[Path]) -> None:
    """Write the cache of the finished shapes, whose files are in their order."""
    with new_folder(target) as folder:
        with contextlib.ExitStack() as opened:
            names = manifest.sampling.arrays
            arrays = {name: opened.enter_context((folder / f"{name}.npy").open("wb")) for name in names}
            for name, array in arrays.items():
                header = {"descr": "<f4", "fortran_order": False, "shape": manifest.shape(name)}
                np.lib.format.write_array_header_1_0(array, header)
            for file in files:
                if not (finished := read_shape(file)):
                    raise PointsetError(f"{file} is damaged: run the command again, which makes its shape again")
                for name, array in arrays.items():
                    array.write(finished[1][name])
        (folder / MANIFEST_FILE).write_bytes(manifest.as_json())


def make_shapes(shapes: Sequence[ShapeFile], sampling: Sampling, workers: Workers) -> Generator[MadeShape, None, None]:
    """Make the points of many files, in any order; a PointsetError if a worker process dies."""
    from joblib import delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    left, batch = iter(shapes), MANY if sampling.sampler == "uniform" else 1
    if sampling.sampler == "poisson" and shapes:
        import_open3d()  # raises here rather than for every mesh
    end = time.monotonic() + (GRACE_SECONDS if workers.count is None else 0)
    while workers.cores == 1 or time.monotonic() < end:
        if (shape := next(left, None)) is None:
            return
        yield sample_shape(shape, sampling)
    try:
        while tasks := [delayed(sample_shape)(shape, sampling) for shape in itertools.islice(left, ROUND * batch)]:
            yield from run_in_workers(tasks, workers, workers.cores, batch=batch)
    except BrokenProcessPool as error:
        raise PointsetError(
            "a worker process was stopped, most often because memory ran out: run again with fewer workers; finished "
            "shapes are kept"
        ) from error
