"""Progress of long work on stderr: a bar on a terminal; a plain line every half minute in a file or a pipe."""

import builtins
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self, TypeVar

from tqdm import tqdm
from tqdm.utils import disp_trim

from pointset.errors import PointsetError, escaped

EVERY = 30.0
"""Seconds between two lines."""
LOOKED = 1.0
"""Seconds between two updates of a `Board`."""
T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """Progress of work whose units take long, so that counting finished units is too coarse."""

    share: float
    """Fraction of the whole work that is done, in [0, 1]."""
    before: float
    """Fraction that was already done when this process started."""
    doing: Sequence[str] = ()
    """One line for each unit that is in progress."""
    longest: float = 0.0
    """Lower limit of the remaining seconds: those of the unit in progress that takes longest."""

    def left(self, seconds: float) -> str:
        """The estimated remaining time, given the seconds since the start; empty without progress, or when done."""
        if not self.before < self.share < 1.0:
            return ""
        rest = seconds * (1.0 - self.share) / (self.share - self.before)
        return f"about {timedelta(seconds=round(max(rest, self.longest)))} to go"


def progress_bar(
    what: str,
    unit: str,
    total: int | None,
    *,
    show: bool = True,
    done: int = 0,
    leave: bool = True,
    scaled: bool = False,
    standing: Callable[[], Standing] | None = None,
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
        standing: returns the progress of work whose units take long; called in another thread.
    """
    terminal = getattr(sys.stderr, "isatty", bool)()
    if show and not terminal and not hasattr(builtins, "__IPYTHON__"):
        return Lines(what, unit, total, done, scaled, standing)
    if show and terminal and standing is not None:
        return Board(unit, total or 0, done, standing)
    hidden = None if show else True  # None: hidden unless stderr is a terminal
    return tqdm(desc=what, unit=unit, total=total, initial=done, leave=leave, unit_scale=scaled, disable=hidden)


def followed(items: Iterable[T], what: str, unit: str, total: int | None = None, *, show: bool = True) -> Iterator[T]:
    """Iterate over items and show how many have been processed; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show) as bar:
        for item in items:
            yield item
            bar.update()


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


class Lines:
    """A progress bar for files and pipes: it writes a line when half a minute has passed since the last."""

    disable = True

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None,
        done: int = 0,
        scaled: bool = False,
        standing: Callable[[], Standing] | None = None,
    ) -> None:
        self.what, self.unit, self.total, self.scaled = what, unit, total, scaled
        self.done = self.before = done
        self._standing = standing
        self._start = self._told = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._standing is not None:  # `update` may not be called for a long time
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
        """Write a line with the progress."""
        self._told = time.monotonic()
        self.write(escaped(self.line(self._told - self._start)))

    def write(self, text: str) -> None:
        """Write other text."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """The line: what is done, what is left, and the remaining time, given the seconds since the start."""
        if self.total is None:
            return f"{self.what}: {self._count(self.done)} done"
        told = f"{self.what}: {self._number(self.done)} of {self._count(self.total)} done"
        told += f", {self._number(self.total - self.done)} left"
        total = max(self.total, 1)
        standing = Standing(self.done / total, self.before / total)
        with suppress(PointsetError):  # a damaged file, which the work itself will report
            if self._standing is not None:
                standing = self._standing()
                told += f", {standing.share:.0%} of the work"
        return "; ".join([_joined(told, standing.left(seconds)), *standing.doing])

    def _count(self, number: int) -> str:
        return self._number(number) + (self.unit if self.scaled else f" {self.unit}{'s' * (number != 1)}")

    def _number(self, number: int) -> str:
        return tqdm.format_sizeof(number) if self.scaled else f"{number:,}"

    def _tell_on(self) -> None:
        while not self._over.wait(EVERY):
            self.tell()


class Board:
    """A progress display for a terminal: a bar, and below it a line for each unit that is in progress."""

    disable = False
    MOST = 4
    """Maximum number of units shown."""

    def __init__(self, unit: str, total: int, done: int, standing: Callable[[], Standing]) -> None:
        self.unit, self.total, self.done = unit, total, done
        self._standing = standing
        self._start = time.monotonic()
        self._over, self._looking = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        formats = ["{percentage:3.0f}%|{bar:16}| {desc}", *["  {desc}"] * self.MOST]
        self._bar, *self._lines = (
            tqdm(total=1.0, bar_format=form, position=place, leave=place == 0, dynamic_ncols=True)
            for place, form in enumerate(formats)
        )
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        for line in (*self._lines, self._bar):
            line.close()

    def update(self, count: int = 1) -> None:
        """Count further units."""
        self.done += count
        self._look()

    def write(self, text: str) -> None:
        """Write permanent text above the bar."""
        tqdm.write(text, file=sys.stderr)

    def _look_on(self) -> None:
        while not self._over.wait(LOOKED):
            self._look()

    def _look(self) -> None:
        with self._looking, suppress(PointsetError):  # a damaged file, which the work itself will report
            self._show(self._standing())

    def _show(self, found: Standing) -> None:
        told = f"{self.done:,} of {self.total:,} {self.unit}{'s' * (self.total != 1)}"
        self._bar.n = found.share
        self._bar.set_description_str(_joined(told, found.left(time.monotonic() - self._start)))
        for place, line in enumerate(self._lines):
            told = escaped(found.doing[place]) if place < len(found.doing) else ""
            told = disp_trim(told, max(1, (line.format_dict["ncols"] or 80) - 3))
            if told != line.desc:
                line.set_description_str(told)
