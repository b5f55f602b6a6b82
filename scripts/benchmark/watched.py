"""A command in a process of its own, watched from outside: time, memory with all that it starts, room on the disk."""

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import psutil  # type: ignore[import-untyped]

EVERY = 0.1
"""Seconds between two looks."""


@dataclass(frozen=True)
class Watched:
    """One command that has ended."""

    seconds: float
    peak_bytes: int
    """The most that was resident at once in the process and all that it started; what they share counts in each."""
    most_files: int
    """The most files and folders that it had added to the disk at once; other work on the machine counts, too."""
    output: str
    errors: str
    status: int


def watch(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Watched:
    """Run a command to its end; the disk is that of the folder."""
    with TemporaryFile("w+") as output, TemporaryFile("w+") as errors:
        before, started, peak, least = _free_files(folder), time.perf_counter(), 0, _free_files(folder)
        process = subprocess.Popen(command, stdout=output, stderr=errors, env={**os.environ, **environment})
        while process.poll() is None:
            peak, least = max(peak, _resident(process.pid)), min(least, _free_files(folder))
            time.sleep(EVERY)
        seconds = time.perf_counter() - started
        for file in (output, errors):
            file.seek(0)
        return Watched(seconds, peak, before - least, output.read(), errors.read(), process.returncode)


def room(folder: Path) -> dict[str, float]:
    """How many files a folder has at any depth, their bytes, and what they take on the disk."""
    facts = [entry.stat() for entry in _files(folder)]
    held, taken = sum(fact.st_size for fact in facts), 512 * sum(fact.st_blocks for fact in facts)
    return {"files": len(facts), "bytes_mb": held / 1e6, "on_disk_mb": taken / 1e6}


def _files(folder: str | Path) -> Iterator["os.DirEntry[str]"]:
    for entry in os.scandir(folder):
        if entry.is_dir():
            yield from _files(entry.path)
        else:
            yield entry


def _free_files(folder: Path) -> int:
    return os.statvfs(folder).f_ffree


def _resident(process: int) -> int:
    total = 0
    try:
        first = psutil.Process(process)
        for one in (first, *first.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:  # it ended meanwhile
        pass
    return total
