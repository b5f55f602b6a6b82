"""Sampling many meshes in this process, in several, or on a cluster: one code, carried by joblib.

Results come back in any order and are handed on as they come. Whoever takes them decides the pace: what is under way
or waiting is never more than a few batches per worker, so memory does not grow with the number of meshes.
"""

import contextlib
import functools
import importlib
import itertools
import os
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pointset.data.open3d_import import import_open3d
from pointset.data.shape_jobs import Job, Sampled, Sampling, end_with, sample_batch, sample_shape
from pointset.errors import PointsetError
from pointset.processes import recycled_quietly

BACKENDS = ("loky", "dask", "ray")
GRACE_SECONDS = 0.5
"""Worker processes take about this long to start: what is done by then needs none."""
BATCH = {"uniform": 16, "fps": 1, "poisson": 1}
"""Meshes per task: enough for a task to outweigh its messages, few enough to lose little when it is stopped."""
IDLE_SECONDS = 20
"""Worker processes without work leave after this time."""
WAITING = 4
"""Batches per worker that may be under way or waiting to be written."""


@dataclass(frozen=True)
class Workers:
    """Where the work is done; it changes no byte of the result."""

    count: int | None = None
    """Worker processes; None takes one per core, or all of a cluster's."""
    backend: str = "loky"
    """"loky" (processes on this machine), "dask" or "ray" (a cluster, whose workers see the same mesh files)."""
    scheduler: str | None = None
    """The cluster's address, such as tcp://host:8786; None takes the dask client, or the ray, of this process."""

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise PointsetError(f"backend={self.backend!r} is unknown: choose one of {', '.join(BACKENDS)}")
        if self.count is not None and self.count < 1:
            raise PointsetError(f"workers={self.count} does no work: ask for at least 1")
        if self.scheduler and self.backend == "loky":
            raise PointsetError(f"scheduler={self.scheduler} is a cluster's address: name its backend, dask or ray")


def sample_all(jobs: Sequence[Job], sampling: Sampling, workers: Workers) -> Generator[Sampled, None, None]:
    """Sample meshes, in any order.

    Raises:
        PointsetError: the cluster cannot be reached, its library is missing, or a worker process died.
    """
    begun = 0
    if workers.backend == "loky":
        if sampling.sampler == "poisson" and jobs:
            import_open3d()  # or say what it lacks once, not for every mesh
        started = time.monotonic()
        alone = _count_cores(workers) == 1
        while begun < len(jobs) and (alone or time.monotonic() < started + GRACE_SECONDS):
            yield sample_shape(jobs[begun], sampling)
            begun += 1
    if begun < len(jobs):
        yield from _sample_in_processes(jobs[begun:], sampling, workers)


def _count_cores(workers: Workers) -> int:
    from joblib import cpu_count

    return int(workers.count or cpu_count())


def _sample_in_processes(jobs: Sequence[Job], sampling: Sampling, workers: Workers) -> Iterator[Sampled]:
    from joblib import Parallel
    from joblib.externals.loky.process_executor import BrokenProcessPool

    size = BATCH[sampling.sampler]
    batches = iter([jobs[start : start + size] for start in range(0, len(jobs), size)])
    try:
        # Ray's backend gives back lists only.
        return_as = "list" if workers.backend == "ray" else "generator_unordered"
        with _backend(workers), Parallel(return_as=return_as, batch_size=1, pre_dispatch="2*n_jobs") as parallel:
            limit = WAITING * parallel._effective_n_jobs()
            task = functools.partial(sample_batch, sampling=sampling)
            yield from _in_rounds(parallel, batches, task, limit)
    except BrokenProcessPool as error:
        raise PointsetError(
            "a worker process was stopped, most often because memory ran out: run again, finished shapes are kept, "
            "with fewer workers"
        ) from error


def _in_rounds(parallel: Any, batches: Iterator[Any], task: Callable[[Any], list[Any]], limit: int) -> Iterator[Any]:
    """Run the batches; a round ends when `limit` results wait, which joblib alone would let grow without end."""
    from joblib import delayed

    taken = given = 0

    def supply() -> Iterator[Any]:
        nonlocal given
        while given - taken < limit and (batch := next(batches, None)):
            given += 1
            yield delayed(task)(batch)

    while True:
        first = next(batches, None)
        if first is None:
            return
        batches = itertools.chain([first], batches)
        with _closed(parallel(supply())) as finished:
            for results in finished:
                yield from results
                taken += 1


@contextlib.contextmanager
def _closed(finished: Any) -> Iterator[Any]:
    """End joblib's generator here and now when its reader gives up, and not when the garbage is collected."""
    try:
        yield finished
    finally:
        if hasattr(finished, "close"):  # Ray's backend gives a list
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*have been cancelled", category=UserWarning)  # as is meant
                finished.close()


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[None]:
    """Make joblib use the backend."""
    from joblib import parallel_config

    if workers.backend == "loky":
        ending = {"idle_worker_timeout": IDLE_SECONDS, "initializer": end_with, "initargs": (os.getpid(),)}
        n_jobs = _count_cores(workers)
        with recycled_quietly(), parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1, **ending):
            yield
        return
    with _cluster(workers), parallel_config(workers.backend, n_jobs=workers.count or -1):
        yield


@contextlib.contextmanager
def _cluster(workers: Workers) -> Iterator[None]:
    """Connect to a cluster."""
    module = {"dask": "distributed", "ray": "ray"}[workers.backend]
    try:
        library: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise PointsetError(f"backend={workers.backend} needs {module}: run `pip install {module}`") from error
    if workers.backend == "ray":
        importlib.import_module("ray.util.joblib").register_ray()
        with contextlib.nullcontext() if library.is_initialized() else library.init(workers.scheduler):
            yield
        return
    try:
        client = library.Client(workers.scheduler) if workers.scheduler else _own_client(library)
    except (OSError, ValueError) as error:
        raise PointsetError(f"no dask scheduler answers at {workers.scheduler}: {error}") from error
    with client if workers.scheduler else contextlib.nullcontext():
        yield


def _own_client(distributed: Any) -> Any:
    try:
        return distributed.get_client()
    except ValueError as error:
        raise PointsetError(
            "backend=dask needs scheduler=ADDRESS, such as tcp://localhost:8786, where `dask scheduler` listens"
        ) from error
