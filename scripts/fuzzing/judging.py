"""Judging files one by one, each made from its seed and number, within a limit of time."""

import logging
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fuzzing.kinds.base import Kind
from fuzzing.verdicts import BAD, Outcome


@dataclass(frozen=True)
class Limits:
    """What one file may cost: seconds of computing, and bytes beside those that the process has before."""

    seconds: float = 2.0
    memory: int = 2**30


class TooSlowError(BaseException):
    """The time of a file is over; no reader may catch it."""


class Judge:
    """Makes and judges the files of one kind and seed, in a folder that is emptied after each."""

    def __init__(self, kind: Kind, seed: int, folder: Path, seconds: float) -> None:
        self.kind, self.seed, self.folder, self.seconds = kind, seed, folder, seconds
        self.warned: list[str] = []

    def __call__(self, number: int) -> Outcome:
        """The outcome of one file."""
        self.warned.clear()
        outcome = self.in_time(number)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        if self.warned and outcome.verdict not in BAD:
            return Outcome("crashed", f"a warning: {self.warned[0][:200]!r}", outcome.content)
        return outcome

    def in_time(self, number: int) -> Outcome:
        """The outcome, or that it took too long; seconds of computing count, so that a busy machine does not."""
        try:
            signal.setitimer(signal.ITIMER_PROF, self.seconds)
            try:
                return self.kind.case(Random(f"{self.kind.name} {self.seed} {number}"), self.folder)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except TooSlowError:
            return Outcome("slow", f"more than {self.seconds:g} s")
        except MemoryError:
            return Outcome("large", "MemoryError")


class Listener(logging.Handler):
    """Hears what libraries log, which a user would see."""

    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a message."""
        self.heard.append(f"{record.name} logs {record.getMessage()}")


@contextmanager
def judge_of(kind: Kind, seed: int, limits: Limits) -> Iterator[Judge]:
    """A judge, and what it needs of the process: a timer's signal, ears for warnings, a folder."""

    def stop(signum: int, frame: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGPROF, stop)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as name, warnings.catch_warnings():
        judge = Judge(kind, seed, Path(name), limits.seconds)
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: judge.warned.append(str(message))
        listener = Listener(judge.warned)
        logging.getLogger().addHandler(listener)
        try:
            yield judge
        finally:
            logging.getLogger().removeHandler(listener)
            signal.signal(signal.SIGPROF, before)
