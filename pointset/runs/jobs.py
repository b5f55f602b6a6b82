"""Work with a folder of its own, done by a process of its own: nothing that kills one job harms another.

What a job does, and what it leaves, is up to its kind: `pointset.comparison.cells.Job` trains and tests a classifier,
`pointset.tasks.jobs.TaskJob` a model of a set problem. result.json is there when a job is done; failure.txt says why it
failed, until it is run again.
"""

import os
import pickle
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tqdm.auto import tqdm

from pointset.errors import PointsetError
from pointset.runs.atomic import write_text
from pointset.runs.threads import torch_threads
from pointset.runs.workers import Workers, closed, joblib_backend


class Outcome(Protocol):
    """What became of a job: a result or a failure."""

    @property
    def name(self) -> str:
        """Which job it was, in words."""

    @property
    def summary(self) -> str:
        """What came of it, in a few words."""


Left = TypeVar("Left", bound=Outcome)


class FolderJob(ABC, Generic[Left]):
    """One job. Its kinds are frozen dataclasses, as they travel to other processes."""

    folder: Path
    """Of this job alone."""
    threads: int
    """Of torch, in the job's process."""

    @abstractmethod
    def perform(self) -> Left:
        """Do what is left to do, and write the result down. Any error is a failure of this job alone."""

    @abstractmethod
    def read(self) -> Left:
        """The result that is there."""

    @abstractmethod
    def as_failure(self, reason: str) -> Left:
        """The outcome of a job that failed."""

    @property
    def result(self) -> Path:
        """Where the result is kept."""
        return self.folder / "result.json"

    @property
    def failure(self) -> Path:
        """Where the reason stands when the job has failed."""
        return self.folder / "failure.txt"

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.result.exists()

    @property
    def running(self) -> bool:
        """Whether a process is at it, on this machine or on one that shares its disk."""
        from filelock import Timeout

        try:
            with self._lock(timeout=0) if self._lock_file.exists() else nullcontext():
                return False
        except Timeout:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from doing the same job.

        Raises:
            PointsetError: one is at it.
        """
        from filelock import Timeout

        self.folder.mkdir(parents=True, exist_ok=True)
        lock = self._lock(timeout=2)  # `running` holds it for a moment
        try:
            lock.acquire()
        except Timeout as error:
            raise PointsetError("another process is at it: wait for that one to finish") from error
        try:
            yield
        finally:
            lock.release()

    @property
    def _lock_file(self) -> Path:
        return self.folder / ".job-lock"

    def _lock(self, timeout: float) -> Any:
        from filelock import FileLock

        return FileLock(self._lock_file, timeout=timeout)

    def failed(self, reason: str) -> Left:
        """Write down why the job failed, where that can be written."""
        with suppress(OSError):  # a full disk, say: no reason to stop the other jobs
            write_text(self.failure, reason + "\n")
        return self.as_failure(reason)


def run_job(job: FolderJob[Left]) -> Left:
    """Do a job, or read the result that is there; whatever goes wrong is a failure, not an error."""
    try:
        with job.locked(), torch_threads(job.threads):
            job.failure.unlink(missing_ok=True)
            return job.perform()
    except Exception as error:  # one job must not stop the others
        reason = " ".join(str(error).split()) or type(error).__name__
        return job.failed(reason if isinstance(error, PointsetError) else f"{type(error).__name__}: {reason}")


def run_jobs(jobs: Sequence[FolderJob[Left]], workers: Workers) -> Iterator[Left]:
    """Run jobs in processes; on this machine one per core, divided by the threads, when no count is given.

    A process that is killed takes its pool along. The jobs that had been begun are then run one at a time, so that the
    one that kills its process is known, reported, and leaves the rest alone; the rest go on side by side.

    Returns:
        What became of each, as they finish.
    """
    left = {job.folder: job for job in jobs}
    while left:
        try:
            for job, outcome in _spread(list(left.values()), workers):
                del left[job.folder]
                yield outcome
        except BrokenProcessPool:
            begun = [job for job in left.values() if job.folder.exists() and not job.finished]
            for job in begun or list(left.values()):
                del left[job.folder]
                yield run_apart(job)


def _spread(jobs: Sequence[FolderJob[Left]], workers: Workers) -> Iterator[tuple[FolderJob[Left], Left]]:
    from joblib import Parallel, delayed

    threads = jobs[0].threads
    # The death of a cluster's worker would be the end of the job's neighbours, and joblib waits for dask's for ever.
    run = run_job if workers.backend == "loky" else run_apart
    with joblib_backend(workers, workers.at_once(len(jobs), threads), threads):
        # Ray's backend gives back lists only.
        return_as = "list" if workers.backend == "ray" else "generator_unordered"
        with closed(Parallel(return_as=return_as)(delayed(_run_named)(run, job) for job in jobs)) as finished:
            yield from finished


def _run_named(run: Callable[[FolderJob[Left]], Left], job: FolderJob[Left]) -> tuple[FolderJob[Left], Left]:
    return job, run(job)


def run_apart(job: FolderJob[Left]) -> Left:
    """Do one job in a process of its own, whose death is its failure and nobody else's."""
    program = "import pickle, sys; from pointset.runs.jobs import run_job; run_job(pickle.load(sys.stdin.buffer))"
    # What torch does not count: the threads of numpy's libraries, which joblib limits in its own workers.
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(job.threads))
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(job),
        stderr=subprocess.PIPE,
        env={**os.environ, **limits},
        check=False,
    )
    if ended.returncode < 0:
        return job.failed("its process was killed, for want of memory perhaps: give fewer workers")
    if ended.returncode > 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        return job.failed(f"its process ended with code {ended.returncode}: {said[-1]}")
    if job.failure.exists():
        return job.as_failure(job.failure.read_text(encoding="utf-8").strip())
    if not job.result.exists():
        return job.as_failure(f"its process left neither a result nor a reason in {job.folder}: is the disk full?")
    return job.read()


def watched(outcomes: Iterator[Left], total: int, progress: bool) -> Iterator[Left]:
    """Pass the outcomes on, with a bar and a line for each where the output is a terminal."""
    with tqdm(total=total, desc="comparing", unit="run", disable=None if progress else True) as bar:
        for outcome in outcomes:
            bar.update()
            if not bar.disable:
                bar.write(f"{outcome.name}: {outcome.summary}")
            yield outcome
