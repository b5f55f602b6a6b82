"""Runs that each have a folder and a process of their own: nothing that kills one harms another.

What a run does, and what it leaves, is up to its kind: `pointset.comparison.runs.Run` trains and tests a model.
result.json is there when a run is done; failure.txt says why it failed, until it is tried again.
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

from filelock import FileLock, Timeout
from tqdm.auto import tqdm

from pointset.errors import PointsetError
from pointset.runs.atomic import write_text
from pointset.runs.threads import torch_threads
from pointset.runs.workers import Workers, closed, joblib_backend


class Outcome(Protocol):
    """What became of a run: a result or a failure."""

    @property
    def name(self) -> str:
        """Which run it was, in words."""

    @property
    def summary(self) -> str:
        """What came of it, in a few words."""


Left = TypeVar("Left", bound=Outcome)


class FolderRun(ABC, Generic[Left]):
    """One run. Its kinds are frozen dataclasses, as they travel to other processes."""

    folder: Path
    """Of this run alone."""
    threads: int
    """Of torch, in the run's process."""

    @abstractmethod
    def perform(self) -> Left:
        """Do what is left to do, and write the result down. Any error is a failure of this run alone."""

    @abstractmethod
    def read(self) -> Left:
        """The result that is there."""

    @abstractmethod
    def as_failure(self, reason: str) -> Left:
        """The outcome of a run that failed."""

    @property
    def result(self) -> Path:
        """Where the result is kept."""
        return self.folder / "result.json"

    @property
    def failure(self) -> Path:
        """Where the reason stands when the run has failed."""
        return self.folder / "failure.txt"

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.result.exists()

    @property
    def running(self) -> bool:
        """Whether a process is at it, on this machine or on one that shares its disk."""
        try:
            with self._lock(timeout=0) if self._lock_file.exists() else nullcontext():
                return False
        except Timeout:
            return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from doing the same run.

        Raises:
            PointsetError: one is at it.
        """
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
        return self.folder / ".run-lock"

    def _lock(self, timeout: float) -> Any:
        return FileLock(self._lock_file, timeout=timeout)

    def failed(self, reason: str) -> Left:
        """Write down why the run failed, where that can be written."""
        with suppress(OSError):  # a full disk, say: no reason to stop the other runs
            write_text(self.failure, reason + "\n")
        return self.as_failure(reason)


def run_one(run: FolderRun[Left]) -> Left:
    """Do a run, or read the result that is there; whatever goes wrong is a failure, not an error."""
    try:
        with run.locked(), torch_threads(run.threads):
            run.failure.unlink(missing_ok=True)
            return run.perform()
    except Exception as error:  # one run must not stop the others
        reason = " ".join(str(error).split()) or type(error).__name__
        return run.failed(reason if isinstance(error, PointsetError) else f"{type(error).__name__}: {reason}")


def run_all(runs: Sequence[FolderRun[Left]], workers: Workers) -> Iterator[Left]:
    """Do runs in processes; on this machine one per core, divided by the threads, when no count is given.

    A process that is killed takes its pool along. The runs that had been begun are then done one at a time, so that the
    one that kills its process is known, reported, and leaves the rest alone; the rest go on side by side.

    Returns:
        What became of each, as they finish.
    """
    left = {run.folder: run for run in runs}
    while left:
        try:
            for run, outcome in _spread(list(left.values()), workers):
                del left[run.folder]
                yield outcome
        except BrokenProcessPool:
            begun = [run for run in left.values() if run.folder.exists() and not run.finished]
            for run in begun or list(left.values()):
                del left[run.folder]
                yield run_apart(run)


def _spread(runs: Sequence[FolderRun[Left]], workers: Workers) -> Iterator[tuple[FolderRun[Left], Left]]:
    from joblib import Parallel, delayed

    threads = runs[0].threads
    # The death of a cluster's worker would be the end of the run's neighbours, and joblib waits for dask's for ever.
    perform = run_one if workers.backend == "loky" else run_apart
    with joblib_backend(workers, workers.at_once(len(runs), threads), threads):
        # Ray's backend gives back lists only.
        return_as = "list" if workers.backend == "ray" else "generator_unordered"
        with closed(Parallel(return_as=return_as)(delayed(_named)(perform, run) for run in runs)) as finished:
            yield from finished


def _named(perform: Callable[[FolderRun[Left]], Left], run: FolderRun[Left]) -> tuple[FolderRun[Left], Left]:
    return run, perform(run)


def run_apart(run: FolderRun[Left]) -> Left:
    """Do one run in a process of its own, whose death is its failure and nobody else's."""
    program = "import pickle, sys; from pointset.runs.grid import run_one; run_one(pickle.load(sys.stdin.buffer))"
    # What torch does not count: the threads of numpy's libraries, which joblib limits in its own workers.
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(run.threads))
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=pickle.dumps(run),
        stderr=subprocess.PIPE,
        env={**os.environ, **limits},
        check=False,
    )
    if ended.returncode < 0:
        return run.failed("its process was killed, for want of memory perhaps: give fewer workers")
    if ended.returncode > 0:
        said = ended.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        return run.failed(f"its process ended with code {ended.returncode}: {said[-1]}")
    if run.failure.exists():
        return run.as_failure(run.failure.read_text(encoding="utf-8").strip())
    if not run.result.exists():
        return run.as_failure(f"its process left neither a result nor a reason in {run.folder}: is the disk full?")
    return run.read()


def watched(outcomes: Iterator[Left], total: int, progress: bool) -> Iterator[Left]:
    """Pass the outcomes on, with a bar and a line for each where the output is a terminal."""
    with tqdm(total=total, desc="comparing", unit="run", disable=None if progress else True) as bar:
        for outcome in outcomes:
            bar.update()
            if not bar.disable:
                bar.write(f"{outcome.name}: {outcome.summary}")
            yield outcome
