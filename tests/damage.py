"""Damages files as a bad disk or a cut connection would, and kills work in the middle."""

import itertools
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pointset.training.loop import Training


def kill_at(call: int, owner: Any, name: str, work: Callable[..., object], *arguments: Any) -> None:
    """Do some work in a process that is killed when a function is called for the n-th time."""
    calls, plain = itertools.count(1), getattr(owner, name)

    def deadly(*given: Any, **options: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given, **options)

    def killed() -> None:
        setattr(owner, name, deadly)
        work(*arguments)

    process = multiprocessing.get_context("fork").Process(target=killed)
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads, which do nothing here
        process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


class StopError(Exception):
    """Ends a training as an interruption does."""


def stop_after(patch: pytest.MonkeyPatch, epochs: int) -> None:
    """Let trainings be interrupted after so many epochs."""
    original = Training._epoch

    def epoch(training: Training, number: int, bar: Any) -> None:
        if number >= epochs:
            raise StopError
        original(training, number, bar)

    patch.setattr(Training, "_epoch", epoch)


def flip(path: Path, place: int) -> None:
    """Flip a bit of the byte at a place in a file, whose size and time stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
