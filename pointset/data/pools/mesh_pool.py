"""Making one pool: every mesh is tried, what cannot be used is reported, and nothing finished is done twice."""

import contextlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from pointset.data.files.meshes import MeshError
from pointset.data.pools.manifest import Plan
from pointset.data.pools.partial_pool import PartialPool, partial_folder, publish, told_plainly, write_text
from pointset.data.pools.shape_jobs import Job, Sampled
from pointset.data.pools.spread import sample_all
from pointset.runs.workers import Workers

ERRORS = "errors.json"
"""Beside the points: the meshes that could not be used, and why."""
NAMED = 3
"""Meshes that an error message names; the file names them all."""


class UnreadableMeshesError(MeshError):
    """Some meshes of a data set cannot be used; all were tried.

    Attributes:
        failures: the reason for each, by the shape's name.
        reports: the files that list them.
        finished: how many shapes are kept for the next run.
    """

    def __init__(self, failures: dict[str, str], finished: int, reports: Sequence[Path], remedy: str) -> None:
        self.failures, self.finished, self.reports, self.remedy = failures, finished, list(reports), remedy
        named = "; ".join(list(failures.values())[:NAMED])
        more = f"; and {len(failures) - NAMED} more" if len(failures) > NAMED else ""
        total = finished + len(failures)
        super().__init__(
            f"{len(failures)} of {total} meshes cannot be used ({named}{more}; all in "
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
    """Why a mesh could not be used, by the shape's name."""

    def require(self, on_error: str, plan: Plan, reports: Path) -> None:
        """Raise if meshes failed and that is not to be passed over, or none is left."""
        if self.failures and (on_error == "raise" or not self.shapes):
            leave_out = f", or leave them out with `{plan.command('--on-error', 'skip')}`" if self.shapes else ""
            remedy = f"mend them and run again, finished shapes are kept{leave_out}"
            raise UnreadableMeshesError(self.failures, self.shapes, [reports / ERRORS], remedy)


def make_pool(folder: Path, plan: Plan, workers: Workers, on_error: str, progress: bool) -> Made:
    """Sample what is still to sample into a neighbouring folder and rename it; the caller holds the lock.

    Raises:
        UnreadableMeshesError: see `pointset.data.pools.cache.build_pool`.
        PointsetError: the disk refuses to be written, or the workers fail.
    """
    partial = partial_folder(folder)
    with PartialPool(partial, plan).opened() as pool:
        before = len(pool.finished)
        failed = _sample_missing(pool, workers, progress)
        failures = {plan.shapes[one.row].name: one.reason for one in failed}
        _report(partial / ERRORS, failures)
        made = Made(folder, len(pool.finished), len(pool.finished) - before, failures)
        made.require(on_error, plan, partial)
        pool.finish(failed)
    publish(folder)
    return made


def discard(folder: Path) -> None:
    """Take away a pool and what is left of an unfinished one; the caller holds the lock."""
    with told_plainly(folder):
        for found in (folder, partial_folder(folder)):
            if found.exists():
                # Renamed first: half a folder under its own name would look like a damaged pool.
                dead = folder.with_name(folder.name + ".discarded")
                shutil.rmtree(dead, ignore_errors=True)
                shutil.rmtree(found.replace(dead))


def _sample_missing(pool: PartialPool, workers: Workers, progress: bool) -> list[Sampled]:
    """Write every shape that is not finished; give back those that cannot be used, by row."""
    shapes = pool.plan.shapes
    jobs = [Job(row, shape.name, shape.path) for row, shape in enumerate(shapes) if row not in pool.finished]
    failed = []
    bar = tqdm(
        total=len(shapes),
        initial=len(pool.finished),
        desc=f"sampling {pool.plan.name}",
        unit="mesh",
        disable=None if progress else True,
    )
    with bar, contextlib.closing(sample_all(jobs, pool.plan.sampling, workers)) as results:
        for sampled in results:
            if sampled.reason:
                failed.append(sampled)
            else:
                pool.write(sampled)
            bar.update()
    return sorted(failed, key=lambda one: one.row)


def _report(path: Path, failures: dict[str, str]) -> None:
    with told_plainly(path.parent):
        if failures:
            write_text(path, json.dumps(failures, indent=1, ensure_ascii=False) + "\n")
        else:
            path.unlink(missing_ok=True)
