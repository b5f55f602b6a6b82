"""Run experiments in separate processes, so that a crash of one run does not affect the others."""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool

from pointset.comparison.runs import Failure, Finished, Run
from pointset.errors import REPEATED, PointsetError, one_line, place_in_own_code
from pointset.runs import digests
from pointset.runs.threads import torch_threads
from pointset.runs.workers import Workers, closed, hand_over, joblib_backend


def run_one(run: Run) -> Finished | Failure:
    """Perform a run, or read its result if it is finished; an error becomes a `Failure`."""
    try:
        with run.locked(), torch_threads(run.threads):
            digests.remove(run.failure)
            return run.perform()
    except Exception as error:  # one run must not stop the others
        known = isinstance(error, PointsetError)
        reason = one_line(error, None if known else REPEATED) or type(error).__name__
        return run.failed(reason if known else f"{type(error).__name__}: {reason}{place_in_own_code(error)}")


def run_all(runs: Sequence[Run], workers: Workers) -> Iterator[Finished | Failure]:
    """Perform runs in worker processes; the default number on this machine is the cores divided by a run's threads.

    A killed process breaks the whole pool. The runs that had started are then repeated one at a time, to find the run
    that kills its process; the others continue in parallel.

    Returns:
        An iterator over the outcomes, in the order in which runs end.
    """
    left = {run.folder: run for run in runs}
    while left:
        try:
            for run, outcome in _run_in_pool(list(left.values()), workers):
                del left[run.folder]
                yield outcome
        except BrokenProcessPool:
            begun = [run for run in left.values() if run.folder.exists() and not run.finished]
            for run in begun or list(left.values()):
                del left[run.folder]
                yield run_apart(run)


def _run_in_pool(runs: Sequence[Run], workers: Workers) -> Iterator[tuple[Run, Finished | Failure]]:
    from joblib import Parallel, delayed

    threads = runs[0].threads
    # When a worker of a cluster dies, its other runs are lost, and joblib waits forever for dask's workers.
    perform = run_one if workers.backend == "loky" else run_apart
    with joblib_backend(workers, workers.at_once(len(runs), threads), threads):
        # Ray's backend can return only lists.
        return_as = "list" if workers.backend == "ray" else "generator_unordered"
        jobs = (delayed(_with_run)(perform, run) for run in runs)
        with closed(hand_over(Parallel(return_as=return_as), jobs, workers)) as finished:
            yield from finished


def _with_run(perform: Callable[[Run], Finished | Failure], run: Run) -> tuple[Run, Finished | Failure]:
    return run, perform(run)


def run_apart(run: Run) -> Finished | Failure:
    """Perform one run in a subprocess, so that a killed process fails only this run."""
    program = "import pickle, sys, pointset.comparison.execution as e; e.run_one(pickle.load(sys.stdin.buffer))"
    # Limits the threads of numpy's libraries, which torch does not control; joblib does this in its own workers.
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(run.threads))
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(run),
        stderr=subprocess.PIPE,
        env={**os.environ, **limits},
        check=False,
    )
    if ended.returncode < 0:
        return run.failed("its process was killed, perhaps for lack of memory: use fewer workers")
    if ended.returncode > 0:
        lines = ended.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        return run.failed(f"its process ended with code {ended.returncode}: {one_line(lines[-1], REPEATED)}")
    try:
        if run.failure.exists():
            return run.as_failure(run.read_failure())
        if run.result.exists():
            return run.read()
    except PointsetError as error:  # a damaged file of this run does not stop the others
        return run.as_failure(str(error))
    return run.as_failure(f"its process ended without a result or an error in {run.folder}: is the disk full?")
