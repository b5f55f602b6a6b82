"""Sampling one mesh file, or a batch of them: the work that a worker process does.

A worker may be on another machine: it is told file names and gives back points, and writes nothing. Nothing that is
heavy to import is imported here, because every worker imports it.
"""

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pointset.data.files.mesh_reader import read_mesh
from pointset.data.options import DataOptions
from pointset.data.pools.sources import Source, describe_source, recheck
from pointset.data.sampling import SAMPLERS, sample_points, seed_for
from pointset.errors import PointsetError


@dataclass(frozen=True)
class Sampling:
    """How points are chosen on every mesh of a data set."""

    points: int
    """Per shape, P."""
    sampler: str = "uniform"
    seed: int = 0
    """Each shape is sampled with its own seed, made from this one and the shape's name."""
    normals: bool = False
    """Keep the unit normal at each point too."""

    @classmethod
    def of(cls, options: DataOptions, normals: bool) -> Self:
        """How the sets of some options are sampled."""
        return cls(options.pool_points, options.sampler, options.data_seed, normals)

    def __post_init__(self) -> None:
        if self.points < 1:
            raise PointsetError(f"pool_points={self.points} makes no pool: ask for at least 1 point per shape")
        if self.sampler not in SAMPLERS:
            raise PointsetError(f"sampler={self.sampler!r} is unknown: choose one of {', '.join(SAMPLERS)}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """What is kept of a shape, each float32 [P, 3]."""
        return ("points", "normals") if self.normals else ("points",)


@dataclass(frozen=True)
class Job:
    """One mesh to sample."""

    row: int
    """Its place in the data set."""
    name: str
    path: Path


@dataclass(frozen=True, eq=False)
class Sampled:
    """What became of one mesh."""

    row: int
    source: Source
    arrays: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """float32 [P, 3] under "points" and, if asked for, "normals"; nothing of a mesh that cannot be used."""
    reason: str = ""
    """Why the mesh cannot be used."""


def sample_batch(jobs: Sequence[Job], sampling: Sampling) -> list[Sampled]:
    """Sample some meshes; one that cannot be used stops none of the others."""
    return [sample_shape(job, sampling) for job in jobs]


def end_with(parent: int) -> None:
    """End this process when its parent ends: a worker whose parent was killed would wait for ever to give results."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def sample_shape(job: Job, sampling: Sampling) -> Sampled:
    """Sample one mesh, or say why it cannot be done."""
    try:
        source = describe_source(job.path)
    except OSError as error:
        return Sampled(job.row, Source(-1, -1, None), reason=f"{job.path}: cannot be read: {error.strerror or error}")
    try:
        arrays = _sample(job, sampling)
        if recheck(job.path, source) is not source:
            raise PointsetError("changed while it was read: run again")
    except Exception as error:  # whatever a reader trips over, the other meshes are still to do
        return Sampled(job.row, source, reason=_in_one_line(error, job.path))
    return Sampled(job.row, source, arrays)


def _sample(job: Job, sampling: Sampling) -> dict[str, NDArray[np.float32]]:
    mesh = read_mesh(job.path)
    seed = seed_for(sampling.seed, job.name)
    if sampling.normals:
        points, normals = sample_points(mesh, sampling.points, seed=seed, sampler=sampling.sampler, normals=True)
        return {"points": points, "normals": normals}
    return {"points": sample_points(mesh, sampling.points, seed=seed, sampler=sampling.sampler)}


def _in_one_line(error: Exception, path: Path) -> str:
    """The reason, which names the file."""
    words = " ".join(str(error).split())
    if not isinstance(error, PointsetError):
        words = f"{type(error).__name__}: {words}"
    return words if str(path) in words else f"{path}: {words}"
