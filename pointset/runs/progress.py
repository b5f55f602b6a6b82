"""How far long work has come: a bar on a terminal; in a file or a pipe, a plain line every half minute."""

import builtins
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any, Self, TypeVar

from tqdm import tqdm

from pointset.errors import PointsetError, escaped

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
    share: Callable[[], float] | None = None,
) -> Any:
    """Something to enter, with `update(count)`, that tells on stderr how far the work has come.

    Nothing is computed for it where its `disable` is true. In a notebook it shows nothing.

    Args:
        what: the work: "training".
        unit: of what is counted, in the singular: "step".
        total: units of the work; None if nobody knows.
        show: False to show nothing at all.
        done: units that were done before.
        leave: keep a full bar.
        scaled: write 12.3M for 12,345,678.
        share: of lines alone, where a unit takes long: how much of the whole work is done, in [0, 1].
    """
    terminal = getattr(sys.stderr, "isatty", bool)()
    if show and not terminal and not hasattr(builtins, "__IPYTHON__"):
        return Lines(what, unit, total, done, scaled, share)
    hidden = None if show else True  # None: only where the output is a terminal
    return tqdm(desc=what, unit=unit, total=total, initial=done, leave=leave, unit_scale=scaled, disable=hidden)


def followed(items: Iterable[T], what: str, unit: str, total: int | None = None, *, show: bool = True) -> Iterator[T]:
    """Pass items on, and tell how many have been worked on; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show) as bar:
        for item in items:
            yield item
            bar.update()


class Lines:
    """Called like a bar; writes a line when half a minute has passed since the last."""

    disable = True

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None,
        done: int = 0,
        scaled: bool = False,
        share: Callable[[], float] | None = None,
    ) -> None:
        self.what, self.unit, self.total, self.scaled = what, unit, total, scaled
        self.done = self.before = done
        self._share = share
        self._share_before = self._share_done() or 0.0
        self._start = self._told = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._share is not None:  # long may pass without an update
            threading.Thread(target=self._tell_on, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def update(self, count: int = 1) -> None:
        """Count further units."""
        self.done += count
        if time.monotonic() - self._told >= EVERY:
            self.tell()

    def tell(self) -> None:
        """Write a line."""
        self._told = time.monotonic()
        sys.stderr.write(escaped(self.line(self._told - self._start)) + "\n")
        sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """What is done after some seconds, what is left, and for how long."""
        if self.total is None:
            return f"{self.what}: {self._count(self.done)} done"
        told = f"{self.what}: {self._number(self.done)} of {self._count(self.total)} done"
        told += f", {self._number(self.total - self.done)} left"
        done, before = self.done / max(self.total, 1), self.before / max(self.total, 1)
        if (share := self._share_done()) is not None:
            done, before = share, self._share_before
            told += f", {done:.0%} of the work"
        if done <= before:
            return told
        return f"{told}, about {timedelta(seconds=round(seconds * (1.0 - done) / (done - before)))} to go"

    def _share_done(self) -> float | None:
        with suppress(PointsetError):  # a damaged file, which the work itself will name
            return None if self._share is None else self._share()
        return None

    def _count(self, number: int) -> str:
        return self._number(number) + (self.unit if self.scaled else f" {self.unit}{'s' * (number != 1)}")

    def _number(self, number: int) -> str:
        return tqdm.format_sizeof(number) if self.scaled else f"{number:,}"

    def _tell_on(self) -> None:
        while not self._over.wait(EVERY):
            self.tell()
