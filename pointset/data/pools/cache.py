"""Pools of points sampled on meshes, kept on disk and mapped into memory.

A pool is a folder `home()/pools/<name>-<key>` with `points.npy`, float32 [M, P, 3], the same for `normals.npy` on
request, and `manifest.json`. The key is a hash of what was asked for: names and places of the meshes, classes,
sampler, points, seed. A pool is made in `<name>-<key>.partial` under a lock and renamed when it is whole, so a pool
that is there is whole, and a run that was stopped leaves its finished shapes to the next.

Opening compares the manifest, the sizes of the arrays, and the size and time of every mesh with what they should be
(a mesh with another time is read to be sure); `pointset.data.pools.verify` also reads every byte.
"""

import contextlib
import dataclasses
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pointset.data.catalogue.folders import ShapeFile
from pointset.data.catalogue.home import make_folder, pools_home
from pointset.data.pools.manifest import FILE, Manifest, Plan, read_manifest
from pointset.data.pools.mesh_pool import Made, discard, make_pool
from pointset.data.pools.partial_pool import is_whole, npy_header, publish, told_plainly, write_text
from pointset.data.pools.pool import Pool
from pointset.data.pools.shape_jobs import Sampling
from pointset.data.pools.sources import recheck
from pointset.errors import PointsetError
from pointset.runs.workers import Workers


def mesh_pool(
    name: str,
    shapes: Sequence[ShapeFile],
    classes: Sequence[str],
    *,
    points: int,
    sampler: str = "uniform",
    seed: int = 0,
    progress: bool = True,
    normals: bool = False,
    workers: int | None = None,
) -> Pool:
    """Open the pool of some shapes; make it first if it is not there.

    A pool that was finished without some meshes is opened with a warning that says how many.

    Args:
        name: begins the folder's name, for people who look.
        shapes: the mesh files, N of them, in any order.
        classes: names of the classes.
        points: points per shape, P.
        sampler: see `pointset.data.sampling.sample_points`.
        seed: each shape is sampled with its own seed, made from this one and the shape's name.
        progress: show a bar, if the output is a terminal.
        normals: with the unit normal at each point.
        workers: processes that sample; one per core when not given. Changes no byte.

    Returns:
        A pool whose points [M, P, 3], by class and name, are mapped from disk, read-only.

    Raises:
        MeshError: files cannot be read or sampled; the message names the first of them.
        PointsetError: an option is wrong, the disk is full or read-only, or a pool on disk is damaged or older than
            its meshes; the message says what to do.
    """
    plan = Plan.of(name, shapes, classes, Sampling(points, sampler, seed, normals))
    if not pool_folder(plan).is_dir():
        build_pool(plan, Workers(workers), progress=progress)
    manifest, arrays = open_pool(pool_folder(plan), plan)
    kept = manifest.kept
    if manifest.skipped:
        warnings.warn(
            f"{name} lacks {len(manifest.skipped)} of {len(manifest.entries)} shapes, whose meshes could not be used: "
            f"{pool_folder(plan) / FILE} says why",
            UserWarning,
            stacklevel=4,  # whoever called load_dataset
        )
    return Pool(
        arrays["points"],
        [entry.name for entry in kept],
        np.array([entry.label for entry in kept], np.int64),
        list(manifest.classes),
        sampler,
        normals=arrays.get("normals"),
        checksums=tuple(entry.checksums["points"] for entry in kept),
        skipped=tuple(entry.name for entry in manifest.skipped),
    )


def build_pool(
    plan: Plan,
    workers: Workers | None = None,
    *,
    on_error: str = "raise",
    rebuild: bool = False,
    progress: bool = True,
) -> Made:
    """Make a pool, or go on with one that a stopped run left; one that is there and right is left alone.

    A second process that wants the same pool waits and uses it.

    Args:
        plan: what to make.
        workers: where the work is done.
        on_error: what to do, after all files have been tried, when some could not be used: "raise", which keeps the
            finished shapes for the next run, or "skip", which finishes the pool without them.
        rebuild: begin anew, whatever is there.
        progress: show a bar, if the output is a terminal.

    Returns:
        What was done.

    Raises:
        UnreadableMeshesError: meshes cannot be used, and `on_error` is "raise" or none is left.
        PointsetError: as for `mesh_pool`.
    """
    if on_error not in ("raise", "skip"):
        raise PointsetError(f"on_error={on_error!r} is unknown: choose raise or skip")
    folder = pool_folder(plan)
    if rebuild or not folder.is_dir():
        make_folder(folder.parent)
        with _locked(folder):
            if rebuild:
                discard(folder)
            if not folder.is_dir() and not publish(folder):
                return make_pool(folder, plan, workers or Workers(), on_error, progress)
    manifest, _ = open_pool(folder, plan)
    failures = {entry.name: entry.skipped for entry in manifest.skipped}
    made = Made(folder, len(manifest.kept), 0, failures)
    made.require(on_error, plan, folder)
    return made


def pool_folder(plan: Plan) -> Path:
    """Where a pool is, or will be."""
    return pools_home() / f"{plan.name}-{plan.key}"


def open_pool(folder: Path, plan: Plan) -> tuple[Manifest, dict[str, NDArray[np.float32]]]:
    """Map the arrays of a finished pool [M, P, 3], once they and the meshes are what they should be.

    Raises:
        PointsetError: they are not; the message names what and the command that makes the pool anew.
    """
    try:
        manifest = read_manifest(folder)
        if not manifest.is_of(plan):
            raise PointsetError(f"its {FILE} describes other shapes than its name")
        check_arrays(folder, manifest)
        current = _require_unchanged_meshes(manifest)
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in manifest.sampling.arrays}
    except (PointsetError, OSError, ValueError) as error:
        raise PointsetError(
            f"the pool of points {folder} cannot be used: {error}; make it anew with "
            f"`{plan.command('--rebuild')}`, or delete that folder and run again"
        ) from error
    if current != manifest:  # files with a new time and their old contents need not be read again the next time
        with contextlib.suppress(OSError):
            write_text(folder / FILE, current.as_text())
    return current, arrays


def check_arrays(folder: Path, manifest: Manifest) -> None:
    """Compare the arrays' shapes and sizes with the manifest.

    Raises:
        PointsetError: one is missing, cut off or of another shape.
    """
    shape = (len(manifest.kept), manifest.sampling.points, 3)
    header = npy_header(shape)
    size = len(header) + shape[0] * shape[1] * 3 * 4
    for name in manifest.sampling.arrays:
        path = folder / f"{name}.npy"
        if not path.is_file():
            raise PointsetError(f"{path.name} is missing")
        if not is_whole(path, header, size):
            found = path.stat().st_size
            raise PointsetError(
                f"{path.name} is damaged: expected float32 {list(shape)} in {size} bytes, found {found} bytes"
                + (" and another beginning" if found == size else "")
            )


def _require_unchanged_meshes(manifest: Manifest) -> Manifest:
    """The manifest with the files' present times."""
    entries = []
    changed = []
    for entry in manifest.entries:
        source = recheck(Path(entry.file), entry.source)
        if source is None:
            changed.append(entry.file)
        elif source is not entry.source:
            entry = dataclasses.replace(entry, source=source)
        entries.append(entry)
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise PointsetError(f"the mesh {changed[0]}{more} has changed since it was sampled")
    return dataclasses.replace(manifest, entries=tuple(entries))


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from making the same pool; they wait."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder.with_name(folder.name + ".lock"))
    with told_plainly(folder.parent):
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if sys.stderr.isatty():
                tqdm.write(f"another process is making {folder.name}: waiting for it", file=sys.stderr)
            lock.acquire()
    try:
        yield
    finally:
        lock.release()
