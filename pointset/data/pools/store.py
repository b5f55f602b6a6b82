"""Pools on disk: opened if they are there, made if they are not.

A pool is made beside its place under a lock and renamed when it is whole, so a pool that is there is whole, and a run
that was stopped leaves its finished shapes to the next. Opening compares the manifest, the sizes of the arrays, and the
size and time of every shape's file with what they should be (a file with another time is read to be sure);
`pointset.data.pools.verify` also reads every byte.
"""

import contextlib
import dataclasses
import json
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pointset.data.catalogue.home import disk_errors_told, locked, make_folder
from pointset.data.pools.manifest import FILE, Manifest, read_manifest
from pointset.data.pools.partial import PartialPool, partial_folder
from pointset.data.pools.plan import Plan
from pointset.data.pools.pool import Pool
from pointset.data.pools.shapes import Job, Result, make_shapes
from pointset.data.pools.sources import recheck
from pointset.errors import PointsetError
from pointset.runs.atomic import write_text
from pointset.runs.workers import Workers

ERRORS = "errors.json"
"""Beside the finished shapes: the files that could not be used, and why."""
NAMED = 3
"""Files that an error message names; the report names them all."""


class UnreadableShapesError(PointsetError, ValueError):
    """Some files of a data set cannot be used; all were tried.

    Attributes:
        failures: the reason for each, by the shape's name.
        reports: the files that list them.
        finished: how many shapes are kept for the next run.
        remedy: what to do.
    """

    def __init__(self, failures: dict[str, str], finished: int, reports: Sequence[Path], remedy: str) -> None:
        self.failures, self.finished, self.reports, self.remedy = failures, finished, list(reports), remedy
        named = "; ".join(list(failures.values())[:NAMED])
        more = f"; and {len(failures) - NAMED} more" if len(failures) > NAMED else ""
        total = finished + len(failures)
        super().__init__(
            f"{len(failures)} of {total} files cannot be used ({named}{more}; all in "
            f"{', '.join(map(str, reports))}): {remedy}"
        )


@dataclass(frozen=True)
class Made:
    """What was done for one pool."""

    folder: Path
    shapes: int
    """In the pool, M."""
    sampled: int
    """Of them, by this call; the others were there."""
    failures: dict[str, str]
    """Why a file could not be used, by the shape's name."""

    def require(self, on_error: str, plan: Plan, reports: Path) -> None:
        """Raise if files failed and that is not to be passed over, or none is left."""
        if self.failures and (on_error == "raise" or not self.shapes):
            skip = bool(self.shapes) and plan.sampling.points is not None
            leave_out = f", or leave them out with `{plan.command('--on-error', 'skip')}`" if skip else ""
            remedy = f"mend them and run again, finished shapes are kept{leave_out}"
            raise UnreadableShapesError(self.failures, self.shapes, [reports / ERRORS], remedy)


def load_pool(plan: Plan, *, workers: Workers | None = None, progress: bool = True) -> Pool:
    """Open the pool of some shapes; make it first if it is not there.

    A pool that was finished without some shapes is opened with a warning that says how many. A pool of clouds that is
    damaged, or older than its files, is read again; one of sampled meshes is an error, because models may
    have been trained on it.

    Args:
        plan: what to open.
        workers: where it is made; changes no byte.
        progress: show a bar, if the output is a terminal.

    Returns:
        A pool whose points, by class and name, are mapped from disk, read-only: [M, P, 3] of meshes, ragged of clouds.

    Raises:
        UnreadableShapesError: files cannot be read or sampled; the message names the first of them.
        PointsetError: the disk is full or read-only, or a pool on disk is damaged or older than its meshes; the
            message says what to do.
    """
    if not plan.folder.is_dir():
        build_pool(plan, workers, progress=progress)
    try:
        manifest, arrays = open_pool(plan)
    except PointsetError:
        if plan.sampling.points is not None:
            raise
        build_pool(plan, workers, rebuild=True, progress=progress)
        manifest, arrays = open_pool(plan)
    kept = manifest.kept
    if manifest.skipped:
        warnings.warn(
            f"{plan.name} lacks {len(manifest.skipped)} of {len(manifest.entries)} shapes, whose files could not be "
            f"used: {plan.folder / FILE} says why",
            UserWarning,
            stacklevel=5,  # the caller of load_dataset
        )
    return Pool(
        arrays["points"],
        [entry.name for entry in kept],
        np.array([entry.label for entry in kept], np.int64),
        list(manifest.classes),
        plan.sampling.sampler,
        normals=arrays.get("normals"),
        checksums=tuple(entry.checksums["points"] for entry in kept),
        skipped=tuple(entry.name for entry in manifest.skipped),
        offsets=None if plan.sampling.points else np.cumsum([0, *manifest.sizes]),
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
        rebuild: make it again, whatever is there.
        progress: show a bar, if the output is a terminal.

    Raises:
        UnreadableShapesError: files cannot be used, and `on_error` is "raise" or none is left.
        PointsetError: as for `load_pool`.
    """
    if on_error not in ("raise", "skip"):
        raise PointsetError(f"on_error must be raise or skip, got {on_error!r}")
    folder = plan.folder
    if rebuild or not folder.is_dir() or partial_folder(folder).exists():
        make_folder(folder.parent)
        with disk_errors_told(folder), locked(folder):
            if rebuild:
                _discard(folder)
            if not folder.is_dir():
                return _make_pool(plan, workers or Workers(), on_error, progress)
            shutil.rmtree(partial_folder(folder), ignore_errors=True)
    manifest, _ = open_pool(plan)
    made = Made(folder, len(manifest.kept), 0, {entry.name: entry.skipped for entry in manifest.skipped})
    made.require(on_error, plan, folder)
    return made


def _make_pool(plan: Plan, workers: Workers, on_error: str, progress: bool) -> Made:
    """Make what is missing, then the pool; the caller holds the lock."""
    partial = PartialPool(plan)
    before, failed = len(partial.finished), list[Result]()
    jobs = [Job(row, one.name, one.path) for row, one in enumerate(plan.shapes) if row not in partial.finished]
    bar = tqdm(
        total=len(plan.shapes),
        initial=before,
        desc=f"making {plan.name}",
        unit="shape",
        disable=None if progress else True,
    )
    with bar, contextlib.closing(make_shapes(jobs, plan.sampling, workers)) as results:
        for result in results:
            if result.reason:
                failed.append(result)
            else:
                partial.write(result)
            bar.update()
    failures = {plan.shapes[one.row].name: one.reason for one in sorted(failed, key=lambda one: one.row)}
    made = Made(plan.folder, len(partial.finished), len(partial.finished) - before, failures)
    write_text(partial.folder / ERRORS, json.dumps(failures, indent=1, ensure_ascii=False) + "\n")
    made.require(on_error, plan, partial.folder)
    partial.publish(failed)
    return made


def _discard(folder: Path) -> None:
    """Take away a pool and what is left of an unfinished one; the caller holds the lock."""
    for found in (folder, partial_folder(folder)):
        if found.exists():
            # Renamed first: half a folder under its own name would look like a damaged pool.
            dead = folder.with_name(folder.name + ".discarded")
            shutil.rmtree(dead, ignore_errors=True)
            shutil.rmtree(found.replace(dead))


def open_pool(plan: Plan) -> tuple[Manifest, dict[str, NDArray[np.float32]]]:
    """Map the arrays of a finished pool, once they and the shapes' files are what they should be.

    Raises:
        PointsetError: they are not; the message names what differs and the command that makes the pool again.
    """
    folder = plan.folder
    try:
        manifest = read_manifest(folder)
        manifest.check(plan)
        manifest.check_arrays(folder)
        current = _require_unchanged_files(manifest)
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in manifest.sampling.arrays}
    except (PointsetError, OSError, ValueError) as error:
        raise PointsetError(
            f"the pool of points {folder} cannot be used: {error}; make it again with "
            f"`{plan.command('--rebuild')}`, or delete that folder and run again"
        ) from error
    if current != manifest:  # files with a new time and their old contents need not be read again the next time
        with contextlib.suppress(OSError):
            write_text(folder / FILE, current.as_text())
    return current, arrays


def _require_unchanged_files(manifest: Manifest) -> Manifest:
    """The manifest with the files' present times."""
    now = [recheck(Path(entry.file), entry.source) for entry in manifest.entries]
    changed = [entry.file for entry, source in zip(manifest.entries, now, strict=True) if source is None]
    if changed:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise PointsetError(f"{changed[0]}{more} has changed since the pool was made")
    pairs = zip(manifest.entries, now, strict=True)
    return dataclasses.replace(
        manifest, entries=tuple(dataclasses.replace(entry, source=source) for entry, source in pairs if source)
    )
