"""Sampling many meshes in this process, in several, or on a cluster: one code, carried by joblib.

Results come back in any order and are handed on as they come. Whoever takes them decides the pace: what is under way
or waiting is never more than a few batches per worker, so memory does not grow with the number of meshes.
"""

import functools
import itertools
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pointset.data.files.open3d_import import import_open3d
from pointset.data.pools.shape_jobs import Job, Sampled, Sampling, end_with, sample_batch, sample_shape
from pointset.errors import PointsetError
from pointset.runs.workers import Workers, closed, joblib_backend

GRACE_SECONDS = 0.5
"""Worker processes take about this long to start: what is done by then needs none."""
BATCH = {"uniform": 16, "fps": 1, "poisson": 1}
"""Meshes per task: enough for a task to outweigh its messages, few enough to lose little when it is stopped."""
IDLE_SECONDS = 20
"""Worker processes without work leave after this time."""
WAITING = 4
"""Batches per worker that may be under way or waiting to be written."""


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
        with closed(parallel(supply())) as finished:
            for results in finished:
                yield from results
                taken += 1


def _backend(workers: Workers) -> AbstractContextManager[None]:
    """Make joblib use the backend; workers on this machine end with this process."""
    ending: dict[str, Any] = {"idle_worker_timeout": IDLE_SECONDS, "initializer": end_with, "initargs": (os.getpid(),)}
    return joblib_backend(workers, _count_cores(workers), **ending)
