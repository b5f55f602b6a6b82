"""Progress of long work on stderr: a bar on a terminal; a plain line every half minute in a file or a pipe."""

import builtins
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Self, TypeVar

from tqdm import tqdm

from pointset.errors import escaped

EVERY = 30.0
"""Seconds between two lines."""
T = TypeVar("T")


def progress_bar(
    what: str,
    unit: str,
    total: int | None,
    *,
    show: bool = True,
    done: int = 0,
    leave: bool = True,
    scaled: bool = False,
) -> Any:
    """A context manager with `update(count)` that shows the progress of work on stderr.

    Where its attribute `disable` is true, callers need not compute values to show on the bar. In a notebook it shows
    nothing.

    Args:
        what: name of the work, such as "training".
        unit: what is counted, in the singular, such as "step".
        total: number of units; None if unknown.
        show: False to show nothing at all.
        done: number of units that were done before.
        leave: whether the full bar stays visible at the end.
        scaled: write 12.3M for 12,345,678.
    """
    terminal = getattr(sys.stderr, "isatty", bool)()
    if show and not terminal and not hasattr(builtins, "__IPYTHON__"):
        return Lines(what, unit, total, done, scaled)
    hidden = None if show else True  # None: hidden unless stderr is a terminal
    return tqdm(desc=what, unit=unit, total=total, initial=done, leave=leave, unit_scale=scaled, disable=hidden)


def followed(items: Iterable[T], what: str, unit: str, total: int | None = None, *, show: bool = True) -> Iterator[T]:
    """Iterate over items and show how many have been processed; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show) as bar:
        for item in items:
            yield item
            bar.update()


def write_line(text: str) -> None:
    """Write a line to stderr, above the bars of a terminal."""
    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()


class Lines:
    """A progress bar for files and pipes: it writes a line when half a minute has passed since the last."""

    disable = True

    def __init__(self, what: str, unit: str, total: int | None, done: int = 0, scaled: bool = False) -> None:
        self.what, self.unit, self.total, self.scaled = what, unit, total, scaled
        self.done = self.before = done
        self._start = self._shown = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, count: int = 1) -> None:
        """Count further units."""
        self.done += count
        if time.monotonic() - self._shown >= EVERY:
            self._shown = time.monotonic()
            write_line(escaped(self.line(self._shown - self._start)))

    def line(self, seconds: float) -> str:
        """What is done, what is left, and the remaining time, given the seconds since the start."""
        if self.total is None:
            return f"{self.what}: {self._count(self.done)} done"
        line = f"{self.what}: {self._number(self.done)} of {self._count(self.total)} done"
        line += f", {self._number(self.total - self.done)} left"
        if not self.before < self.done < self.total:
            return line
        rest = seconds * (self.total - self.done) / (self.done - self.before)
        return f"{line}, about {timedelta(seconds=round(rest))} to go"

    def _count(self, number: int) -> str:
        return self._number(number) + (self.unit if self.scaled else f" {self.unit}{'s' * (number != 1)}")

    def _number(self, number: int) -> str:
        return tqdm.format_sizeof(number) if self.scaled else f"{number:,}"
