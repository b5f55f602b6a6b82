"""Sample or read the points of shapes, in this process, in several, or on a cluster, by joblib.

A worker may be on another machine: it receives file names and returns points, in any order, and writes nothing.
"""

import itertools
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pointset.data.catalogue.folders import ShapeFile
from pointset.data.pool import digest_of
from pointset.data.pools.plan import ARRAY_TYPES, PoolEntry, Sampling, Source
from pointset.data.readers.reading import read_cloud, read_mesh
from pointset.data.sampling import import_open3d, sample_arrays, seed_for
from pointset.errors import PointsetError
from pointset.runs.workers import Workers, run_in_workers

GRACE_SECONDS = 0.5
"""Time for which this process makes shapes before it starts workers, unless a number of workers is given."""
SHAPES_PER_TASK = {"fps": 1, "poisson": 1}
"""Shapes per batch by sampler, default `MANY`: enough to outweigh messages, few enough to lose little when stopped."""
MANY = 16
ROUND = 256
"""Batches that are given out at once, so that few results wait in memory to be written."""

PoolArrays = dict[str, NDArray[Any]]
"""Points float32 [n, 3] and, if wanted, normals [n, 3] and features [n, f], by name."""
MadeShape = tuple[PoolEntry, PoolArrays]
"""The entry of a shape in the manifest, and its points; none if the entry is skipped."""


def make_pool_shape(shape: ShapeFile, sampling: Sampling) -> MadeShape:
    """Make the points of one file; after any failure, the entry is skipped and has the reason."""
    source, arrays, reason = Source(-1, -1, None), PoolArrays(), ""
    try:
        source = Source.of(shape.path)
        arrays = _arrays(shape, sampling)
        if not source.is_current(shape.path):
            raise PointsetError("changed while it was read: run again")
    except Exception as error:  # readers can raise many errors, which must not stop the other files
        arrays, reason = {}, _reason(error, shape.path)
    entry = PoolEntry(
        shape.name,
        shape.label,
        str(shape.path),
        source,
        checksums={name: digest_of(array) for name, array in arrays.items()},
        skipped=reason,
        size=len(arrays["points"]) if arrays and sampling.points is None else None,
        width=arrays["features"].shape[1] if "features" in arrays else None,
    )
    return entry, arrays


def _arrays(shape: ShapeFile, sampling: Sampling) -> PoolArrays:
    if sampling.points is None:
        arrays = read_cloud(shape.path, normals=sampling.normals, features=sampling.features).arrays
    else:
        seed, mesh = seed_for(sampling.seed, shape.name), read_mesh(shape.path)
        how: dict[str, Any] = {"seed": seed, "sampler": sampling.sampler, "normals": sampling.normals}
        arrays = sample_arrays(mesh, sampling.points, **how)
    return {name: arrays[name].astype(ARRAY_TYPES[name], copy=False) for name in sampling.arrays}


def _reason(error: Exception, path: Path) -> str:
    if isinstance(error, OSError) and error.filename == str(path):
        return f"{path}: cannot be read: {error.strerror}"
    words = " ".join(str(error).split())
    if not isinstance(error, PointsetError):
        words = f"{type(error).__name__}: {words}"
    return words if str(path) in words else f"{path}: {words}"


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
