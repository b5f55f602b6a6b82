"""Open pools on disk, and build them if needed.

A pool is built in a temporary folder under a lock and renamed when it is complete; an interrupted run leaves its
finished shapes to the next. Opening a pool checks the manifest, the sizes of the arrays, and size and time of every
shape's file; `pointset.data.pools.verify` reads every byte.
"""

import contextlib
import glob
import json
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.home import disk_errors_reported, locked, make_folder
from pointset.data.pool import Pool
from pointset.data.pools.manifest import FILE, Entry, Manifest, read_manifest
from pointset.data.pools.plan import Plan, build_command
from pointset.data.pools.shapes import make_shapes
from pointset.data.pools.unfinished import UnfinishedPool, unfinished_folder
from pointset.data.unusable import LEAVE_OUT, check_on_error, refuse_or_leave_out
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.atomic import sweep, write_text
from pointset.runs.progress import progress_bar
from pointset.runs.workers import Workers

ERRORS = "errors.json"
"""File in the temporary folder with the files that could not be used, and the reasons."""
DISCARDED = ".discarded"
"""End of the names of folders that are being removed."""


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

    def require(self, on_error: str, plan: Plan, report: Path) -> None:
        """Raise an UnreadableShapesError if files failed, unless they may be skipped and other shapes remain."""
        command = build_command(plan.root, plan.sampling, "--on-error", "skip")
        refuse_or_leave_out(
            self.failures,
            self.shapes,
            on_error,
            "files",
            "correct them and run again (finished shapes are kept)",
            leave_out=LEAVE_OUT if plan.sampling.points is None else f"leave them out with `{command}`",
            reports=[report],
        )


def load_pool(plan: Plan, *, workers: Workers | None = None, on_error: str = "raise", progress: bool = True) -> Pool:
    """Open the pool of a plan, after building it if it is missing.

    A pool without some of the shapes is opened with a warning; for clouds, only if `on_error` is "skip", because such a
    pool is never built by an explicit command. If a pool is damaged, or older than its files, it is rebuilt for
    clouds, but refused for meshes, because models may have been trained on it.

    Args:
        plan: the plan of the pool.
        workers: workers that build it; the result does not depend on them.
        on_error: when files cannot be used: "raise", or "skip" to leave them out.
        progress: show a bar, or lines if the output is not a terminal.

    Returns:
        A read-only, memory-mapped pool, sorted by class and name: [M, P, 3] for meshes, ragged for clouds.

    Raises:
        UnreadableShapesError: files cannot be read or sampled.
        PointsetError: the disk is full or read-only, or the pool is damaged or older than its meshes.
    """
    if not plan.folder.is_dir():
        build_pool(plan, workers, on_error=on_error, progress=progress)
    try:
        manifest, arrays = open_pool(plan)
    except PointsetError:
        if plan.sampling.points is not None:
            raise
        build_pool(plan, workers, on_error=on_error, rebuild=True, progress=progress)
        manifest, arrays = open_pool(plan)
    kept = manifest.kept
    if manifest.skipped:
        if plan.sampling.points is None:
            _existing(plan, manifest).require(on_error, plan, plan.folder / FILE)
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
        arrays={name: array for name, array in arrays.items() if name != "points"},
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
    """Build a pool, or finish one that an interrupted run left; an existing pool is only checked.

    A second process that builds the same pool waits for the first.

    Args:
        plan: the plan of the pool.
        workers: workers that build it.
        on_error: when files cannot be used, after all have been tried: "raise", which keeps the finished shapes for the
            next run, or "skip", which finishes the pool without them.
        rebuild: build an existing pool again.
        progress: show a bar, or lines if the output is not a terminal.

    Raises:
        UnreadableShapesError: files cannot be used, and `on_error` is "raise" or no file is usable.
        PointsetError: as for `load_pool`.
    """
    check_on_error(on_error)
    folder = plan.folder
    if rebuild or not folder.is_dir() or unfinished_folder(folder).exists():
        make_folder(folder.parent)
        with disk_errors_reported(folder), locked(folder):
            for left in folder.parent.glob(f"{glob.escape(folder.name)}*{DISCARDED}"):  # by a killed process
                shutil.rmtree(left, ignore_errors=True)
            if rebuild:
                _discard(folder, unfinished_folder(folder))
            if not folder.is_dir():
                return _make_pool(plan, workers or Workers(), on_error, progress)
            _discard(unfinished_folder(folder))
    manifest, _ = open_pool(plan)
    made = _existing(plan, manifest)
    made.require(on_error, plan, folder / FILE)
    return made


def _existing(plan: Plan, manifest: Manifest) -> Made:
    """The result for an existing pool, with no shape sampled now."""
    return Made(plan.folder, len(manifest.kept), 0, {entry.name: entry.skipped for entry in manifest.skipped})


def _make_pool(plan: Plan, workers: Workers, on_error: str, progress: bool) -> Made:
    """Make the missing shapes, then write the pool; the caller holds the lock."""
    unfinished, failed = UnfinishedPool(plan), dict[int, Entry]()
    before = len(unfinished.entries)
    jobs = [job for job in enumerate(plan.shapes) if job[0] not in unfinished.entries]
    bar = progress_bar(f"making {plan.name}", "shape", len(plan.shapes), show=progress, done=before)
    with bar, contextlib.closing(make_shapes(jobs, plan.sampling, workers)) as results:
        for row, entry, arrays in results:
            if entry.skipped:
                failed[row] = entry
            else:
                unfinished.add(row, entry, arrays)
            bar.update()
    failures = {entry.name: entry.skipped for _, entry in sorted(failed.items())}
    made = Made(plan.folder, len(unfinished.entries), len(unfinished.entries) - before, failures)
    write_text(unfinished.folder / ERRORS, json.dumps(failures, indent=1, ensure_ascii=False) + "\n")
    made.require(on_error, plan, unfinished.folder / ERRORS)
    unfinished.publish(failed)
    return made


def _discard(*folders: Path) -> None:
    """Remove folders; renamed first, because a half-removed pool would look like a damaged one."""
    for folder in folders:
        if folder.exists():
            shutil.rmtree(folder.replace(folder.with_name(folder.name + DISCARDED)))


def open_pool(plan: Plan) -> tuple[Manifest, dict[str, NDArray[Any]]]:
    """Check a finished pool and its shapes' files, and memory-map its arrays.

    Raises:
        PointsetError: the pool is damaged or outdated; the message has the command that builds it again.
    """
    folder = plan.folder
    try:
        manifest = read_manifest(folder)
        manifest.check(plan)
        manifest.check_arrays(folder)
        current = manifest.current()
        arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in manifest.sampling.arrays}
    except (PointsetError, OSError, ValueError) as error:
        raise PointsetError(
            f"the pool of points {folder} cannot be used: {error}; make it again with "
            f"`{build_command(plan.root, plan.sampling, '--rebuild')}`, or delete that folder and run again"
        ) from error
    if current != manifest:  # saves new times of unchanged files, so that they are not hashed again next time
        _save_manifest(folder, current)
    return current, arrays


def _save_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace a pool's manifest, unless the pool is read-only or locked by another process."""
    from filelock import FileLock

    with (
        contextlib.suppress(OSError, PointsetError),
        FileLock(folder.with_name(folder.name + ".lock"), timeout=0),
    ):
        sweep(folder)
        digests.write_text(folder / FILE, manifest.as_text())
