"""Build and open point caches: the points of all shapes of a split, on disk.

A cache is built under a lock. During the build, a folder next to the cache has one file per finished shape, from which
an interrupted build resumes. Each of these files has a digest, so that an incomplete file counts as absent. Workers of
joblib read and sample shapes in any order. The main process writes the files and, at the end, the arrays and the
manifest, in the order of the shapes. Opening a cache checks the sizes of its arrays, and the sizes and times of the
source files; `pointset data verify` reads all bytes.
"""

import contextlib
import hashlib
import shutil
import time
import warnings
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check
from pointset.data.axes import upright_mesh
from pointset.data.cache.manifest import (
    MANIFEST_FILE,
    CacheEntry,
    CachePlan,
    Manifest,
    Source,
    read_manifest,
)
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.catalogue.locate import make_folder
from pointset.data.options import Preparation
from pointset.data.outliers import prepare_cloud
from pointset.data.point_cache import PointCache, digest_of
from pointset.data.readers.formats import FileKind, naming
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.sampling import import_open3d, sample_points, seed_for
from pointset.data.unusable import MOST_SAID, OnError, in_kinds, refuse_or_leave_out
from pointset.errors import PointsetError, one_line
from pointset.runs.atomic import full_disk_reported, locked, new_folder
from pointset.runs.progress import progress_bar
from pointset.runs.workers import Workers, run_in_workers

DIGEST = 32
"""Number of bytes of the digest at the start of the file of a finished shape."""
GRACE_SECONDS = 0.5
"""Time for which this process samples shapes before it starts workers, unless the user sets the number of workers."""
BATCH = 16
"""Number of shapes per worker task for fast samplers: larger tasks need fewer messages, but an interrupt loses more
shapes."""

ShapeArrays = Mapping[str, NDArray[Any]]
"""Points float32 [n, 3] and, if requested, normals [n, 3] and features [n, f], by name."""
SampledShape = tuple[CacheEntry, ShapeArrays]
"""The manifest entry of a shape, and the arrays of the shape; a shape that cannot be used has no arrays."""


class OpenCache(NamedTuple):
    """The manifest and the memory-mapped arrays of a finished cache, and the number of shapes sampled by this call."""

    manifest: Manifest
    arrays: dict[str, NDArray[Any]]
    sampled: int = 0


def load_cache(
    plan: CachePlan, *, workers: Workers | None = None, on_error: str = "raise", progress: bool = True
) -> PointCache:
    """Open the cache of a plan, and repeat the warnings from when its files were read; see `open_cache`."""
    opened = open_cache(plan, workers, on_error=on_error, progress=progress)
    manifest, arrays = opened.manifest, dict(opened.arrays)
    kept, failures = manifest.kept, manifest.failures
    remarks = {entry.name: entry.remarks for entry in kept if entry.remarks}
    read = f"{len(remarks):,} of {len(manifest.entries):,} files are read with a remark: {in_kinds(remarks)}"
    if remarks:
        warnings.warn(read, UserWarning, stacklevel=5)  # the caller of load_dataset
    if failures:
        warnings.warn(
            f"{plan.name} lacks {len(failures)} of {len(manifest.entries)} shapes, whose files could not be "
            f"used ({one_line(in_kinds(failures), MOST_SAID)}): {plan.folder / MANIFEST_FILE} lists all",
            UserWarning,
            stacklevel=5,
        )
    return PointCache(
        arrays.pop("points"),
        [entry.name for entry in kept],
        np.array([entry.label for entry in kept], np.int64),
        list(manifest.classes),
        arrays=arrays,
        checksums=tuple(entry.checksums["points"] for entry in kept),
        skipped=failures,
        remarks=read if remarks else "",
        offsets=manifest.offsets if manifest.points is None else None,
    )


def open_cache(
    plan: CachePlan, workers: Workers | None = None, *, on_error: str = "raise", progress: bool = True
) -> OpenCache:
    """Open the cache of a plan, after building it if it is missing, damaged or older than its source files.

    A second process that builds the same cache waits for the first. All files are tried. If some cannot be used,
    on_error="raise" raises an error and keeps the finished shapes for the next run, and on_error="skip" finishes the
    cache without the unusable shapes.
    """
    check("on_error", on_error, OnError)
    opened = _open_current(plan.folder)
    if opened is None:
        make_folder(plan.folder.parent)
        with full_disk_reported(plan.folder), locked(plan.folder.with_name(plan.folder.name + ".lock")):
            # Another process may have built it in the meantime.
            opened = _open_current(plan.folder, remove=True) or _build(plan, workers or Workers(), on_error, progress)
    shutil.rmtree(plan.unfinished, ignore_errors=True)
    _refuse_failures(opened.manifest, on_error)
    return opened


def _open_current(folder: Path, remove: bool = False) -> OpenCache | None:
    """Open a finished cache; None if it is absent or unusable. `remove` removes an unusable cache, with a warning."""
    if not folder.is_dir():
        return None
    try:
        manifest = read_manifest(folder)
        arrays = manifest.open_arrays(folder)
        changed = [entry.file for entry in manifest.entries if not entry.source.is_current(Path(entry.file))]
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise PointsetError(f"{changed[0]}{more} has changed since the cache was built")
    except PointsetError as error:
        if remove:
            warnings.warn(f"the point cache {folder} is rebuilt: {error}", UserWarning, stacklevel=6)
            shutil.rmtree(folder, ignore_errors=True)
        return None
    return OpenCache(manifest, arrays)


def _refuse_failures(manifest: Manifest, on_error: str) -> None:
    remedy = "correct them and run again (finished shapes are kept)"
    refuse_or_leave_out(manifest.failures, len(manifest.kept), on_error, "files", remedy)


def _build(plan: CachePlan, workers: Workers, on_error: str, progress: bool) -> OpenCache:
    """Sample the missing shapes, then write the cache; the caller holds the lock."""
    plan.unfinished.mkdir(exist_ok=True)
    files = {shape.name: plan.unfinished / f"{row}.shape" for row, shape in enumerate(plan.shapes)}
    entries = dict[str, CacheEntry]()
    for name, file in files.items():
        if (finished := read_shape(file)) and finished[0].source.is_current(Path(finished[0].file)):
            entries[name] = finished[0]
    before = len(entries)
    missing = [shape for shape in plan.shapes if shape.name not in entries]
    bar = progress_bar(f"sampling {plan.name}", "shape", len(files), show=progress, done=before)
    with bar, contextlib.closing(sample_shapes(missing, plan, workers)) as results:
        for entry, arrays in results:
            entries[entry.name] = entry
            if not entry.skipped:
                write_shape(files[entry.name], entry, arrays)
            bar.update()
    manifest = plan.manifest([entries[name] for name in files])
    _refuse_failures(manifest, on_error)
    _write_cache(plan.folder, manifest, (files[entry.name] for entry in manifest.kept))
    return OpenCache(manifest, manifest.open_arrays(plan.folder), len(manifest.kept) - before)


def sample_shape(shape: ShapeFile, kind: FileKind, preparation: Preparation, seed: int) -> SampledShape:
    """Read or sample the points of one file; if this fails, `skipped` of the entry has the reason."""
    source, reason, caught = Source(-1, -1, None), "", list[warnings.WarningMessage]()
    arrays: ShapeArrays = {}
    try:  # readers and samplers can raise many errors, which must not stop the other files
        with naming(shape.path, PointsetError), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")  # collected here, and repeated when the cache is opened
            source = Source.of(shape.path)
            arrays = _arrays(shape, kind, preparation, seed)
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
        size=len(arrays["points"]) if arrays and kind == "clouds" else None,
        width=arrays["features"].shape[1] if "features" in arrays else None,
        remarks="" if reason else "; ".join(remarks),
    )
    return entry, arrays


def _arrays(shape: ShapeFile, kind: FileKind, how: Preparation, seed: int) -> ShapeArrays:
    if kind == "clouds":
        cloud = read_cloud(shape.path, normals=how.has_normals, features=how.further)
        arrays = prepare_cloud(cloud, str(shape.path), how).arrays
    else:
        mesh, seed = upright_mesh(read_mesh(shape.path)), seed_for(seed, shape.name)
        points, normals = sample_points(mesh, how.cache_points, seed=seed, sampler=how.sampler, normals=True)
        arrays = {"points": points, "normals": normals}
    return {name: arrays[name].astype("<f4", copy=False) for name in how.arrays}


def write_shape(file: Path, entry: CacheEntry, arrays: ShapeArrays) -> None:
    """Write a finished shape, with a digest in front."""
    content = msgspec.msgpack.encode((entry, {name: array.tobytes() for name, array in arrays.items()}))
    file.write_bytes(hashlib.sha256(content).digest() + content)


def read_shape(file: Path) -> tuple[CacheEntry, dict[str, bytes]] | None:
    """Read what `write_shape` wrote; None if the file is missing or damaged."""
    content = file.read_bytes() if file.exists() else b""
    if hashlib.sha256(content[DIGEST:]).digest() != content[:DIGEST]:
        return None
    return msgspec.msgpack.decode(content[DIGEST:], type=tuple[CacheEntry, dict[str, bytes]])


def _write_cache(target: Path, manifest: Manifest, files: Iterable[Path]) -> None:
    """Write the cache from `files`, one for each kept shape of the manifest, in the order of the manifest."""
    with new_folder(target) as folder:
        with contextlib.ExitStack() as opened:
            arrays = {}
            for name in manifest.preparation.arrays:
                arrays[name] = opened.enter_context((folder / f"{name}.npy").open("wb"))
                header = {"descr": "<f4", "fortran_order": False, "shape": manifest.shape(name)}
                np.lib.format.write_array_header_1_0(arrays[name], header)
            for file in files:
                if not (finished := read_shape(file)):
                    raise PointsetError(f"{file} is damaged: run the command again, which samples its shape again")
                for name, array in arrays.items():
                    array.write(finished[1][name])
        (folder / MANIFEST_FILE).write_bytes(msgspec.json.encode(manifest))


def sample_shapes(
    shapes: Sequence[ShapeFile], plan: CachePlan, workers: Workers
) -> Generator[SampledShape, None, None]:
    """Sample many files, and yield the results in any order; a PointsetError if a worker process dies."""
    from joblib import delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    waiting, batch = iter(shapes), BATCH if plan.options.sampler == "uniform" else 1
    if plan.options.sampler == "poisson" and shapes:
        import_open3d()  # one error here rather than one for every mesh
    how = plan.listing.kind, plan.preparation, plan.seed
    end = time.monotonic() + (GRACE_SECONDS if workers.count is None else 0)
    while workers.cores == 1 or time.monotonic() < end:
        if (shape := next(waiting, None)) is None:
            return
        yield sample_shape(shape, *how)
    tasks = (delayed(sample_shape)(shape, *how) for shape in waiting)
    try:
        yield from run_in_workers(tasks, workers, workers.cores, batch=batch)
    except BrokenProcessPool as error:
        raise PointsetError(
            "a worker process was stopped, usually because memory ran out: run again with fewer workers; finished "
            "shapes are kept"
        ) from error
