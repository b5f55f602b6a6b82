"""Files in child processes, so that the end of one, or a limit, is counted and survived."""

import multiprocessing
import os
import resource
import time
import warnings
from collections import Counter
from ctypes import c_int64
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

from fuzzing.judging import Limits, judge_of
from fuzzing.kinds.base import Kind
from fuzzing.verdicts import BAD, MEANING, Outcome

VERDICTS = tuple(MEANING)
KEPT = 40
"""Files of each bad verdict that are kept to be shown, in each process."""
PATIENCE = 30.0
"""Wall seconds after which a file is given up where the timer's signal does not come through."""

context = multiprocessing.get_context("fork")


@dataclass
class Tally:
    """Verdicts of all files, and the outcomes to be looked into, by the numbers of their files."""

    counts: Counter[str] = field(default_factory=Counter)
    found: dict[int, Outcome] = field(default_factory=dict)

    @property
    def bad(self) -> int:
        """Files with a verdict that must not be."""
        return sum(self.counts[verdict] for verdict in BAD)

    def add(self, number: int, outcome: Outcome) -> None:
        """One outcome more, that no child could tell."""
        self.counts[outcome.verdict] += 1
        self.found[number] = outcome


class Child:
    """A process that judges a range of files; its counts and its place lie in shared memory, what it finds is sent."""

    def __init__(self, kind: Kind, seed: int, numbers: range, limits: Limits) -> None:
        self.numbers = numbers
        self.shared = RawArray(c_int64, [numbers.start, *[0] * len(VERDICTS)])
        self.pipe, theirs = context.Pipe(duplex=False)
        self.process = context.Process(
            target=work, args=(kind, seed, numbers, limits, self.shared, theirs), daemon=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of a library beside a fork: none is needed
            self.process.start()
        theirs.close()
        self.seen = (numbers.start, time.monotonic())

    def collect(self, tally: Tally) -> None:
        """Take what it has found since the last time."""
        try:
            while self.pipe.poll():
                number, outcome = self.pipe.recv()
                tally.found[number] = outcome
        except EOFError:
            pass

    def hangs(self, seconds: float) -> bool:
        """Whether it is at one file for longer than any limit allows."""
        place = self.shared[0]
        if place != self.seen[0]:
            self.seen = (place, time.monotonic())
        return time.monotonic() - self.seen[1] > PATIENCE + 10 * seconds

    def close(self, tally: Tally) -> int:
        """Add its counts; returns the number of the file that it had in hand, the end of its range if none."""
        self.process.join()
        self.collect(tally)
        self.pipe.close()
        tally.counts.update(dict(zip(VERDICTS, self.shared[1:], strict=True)))
        return int(self.shared[0])


def work(kind: Kind, seed: int, numbers: range, limits: Limits, shared: Any, pipe: Any) -> None:
    """Judge files in a child."""
    with judge_of(kind, seed, limits) as judge:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, 2 * (address_space() + limits.memory,))
        for number in numbers:
            outcome = judge(number)
            place = 1 + VERDICTS.index(outcome.verdict)
            shared[place] += 1
            if outcome.verdict in BAD and shared[place] <= KEPT:
                pipe.send((number, outcome))
            shared[0] = number + 1


def prepare(kind: Kind, seed: int) -> None:
    """Judge some files before there are children, which then share the libraries and what a kind needs."""
    with judge_of(kind, seed, Limits(seconds=600)) as judge:
        for number in range(-3, 0):
            judge(number)


def address_space() -> int:
    """Bytes of addresses that this process has."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def run(kind: Kind, files: int, seed: int, processes: int, limits: Limits) -> Tally:
    """Judge the files numbered from 0 up to `files`."""
    prepare(kind, seed)
    tally = Tally()
    size = max(1, -(-files // (4 * processes)))
    left = [range(start, min(start + size, files)) for start in range(0, files, size)]
    children: list[Child] = []
    while left or children:
        while left and len(children) < processes:
            children.append(Child(kind, seed, left.pop(0), limits))
        time.sleep(0.02)
        for child in list(children):
            child.collect(tally)
            if child.process.is_alive():
                if child.hangs(limits.seconds):
                    child.process.kill()
                    end = Outcome("slow", "hung: no signal came through")
                else:
                    continue
            else:
                end = None
            children.remove(child)
            place = child.close(tally)
            if place < child.numbers.stop:
                tally.add(place, end or Outcome("crashed", f"the process ended with {child.process.exitcode}"))
                left.append(range(place + 1, child.numbers.stop))
    return tally
