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
        return Board(what, unit, total, done, scaled, standing)
    hidden = None if show else True  # None: hidden unless stderr is a terminal
    return tqdm(desc=what, unit=unit, total=total, initial=done, leave=leave, unit_scale=scaled, disable=hidden)


def followed(items: Iterable[T], what: str, unit: str, total: int | None = None, *, show: bool = True) -> Iterator[T]:
    """Iterate over items and show how many have been processed; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show) as bar:
        for item in items:
            yield item
            bar.update()


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
        self._start = self._shown = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show_on, daemon=True)

    def __enter__(self) -> Self:
        if self._standing is not None:  # `update` may not be called for a long time
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def update(self, count: int = 1) -> None:
        """Count further units."""
        self.done += count
        if time.monotonic() - self._shown >= self._seconds():
            self.show()

    def write(self, text: str) -> None:
        """Write other text."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def show(self) -> None:
        """Show the progress."""
        self._shown = time.monotonic()
        self.write(escaped(self.line(self._shown - self._start)))

    def standing(self) -> Standing:
        """The progress now; a PointsetError if a file is damaged, which the work itself will report."""
        if self._standing is not None:
            return self._standing()
        total = max(self.total or 0, 1)
        return Standing(self.done / total, self.before / total)

    def line(self, seconds: float) -> str:
        """What is done, what is left, and the remaining time, given the seconds since the start."""
        if self.total is None:
            return f"{self.what}: {self._count(self.done)} done"
        line = f"{self.what}: {self._number(self.done)} of {self._count(self.total)} done"
        line += f", {self._number(self.total - self.done)} left"
        with suppress(PointsetError):
            standing = self.standing()
            line += f", {standing.share:.0%} of the work" if self._standing else ""
            line = "; ".join([", ".join(filter(None, (line, standing.left(seconds)))), *standing.doing])
        return line

    def _seconds(self) -> float:
        return EVERY

    def _show_on(self) -> None:
        while not self._over.wait(self._seconds()):
            self.show()

    def _count(self, number: int) -> str:
        return self._number(number) + (self.unit if self.scaled else f" {self.unit}{'s' * (number != 1)}")

    def _number(self, number: int) -> str:
        return tqdm.format_sizeof(number) if self.scaled else f"{number:,}"


class Board(Lines):
    """A progress bar for a terminal that also shows the units in progress, as far as they fit on one line."""

    disable = False

    def __enter__(self) -> Self:
        self._bar = tqdm(total=1.0, bar_format="{percentage:3.0f}%|{bar:16}| {desc}", dynamic_ncols=True)
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._thread.join()
        self.show()
        self._bar.close()

    def write(self, text: str) -> None:
        """Write permanent text above the bar."""
        tqdm.write(text, file=sys.stderr)

    def show(self) -> None:
        """Show the progress."""
        self._shown = time.monotonic()
        with suppress(PointsetError):
            self._bar.n = self.standing().share
        self._bar.set_description_str(escaped(self.line(self._shown - self._start)))

    def _seconds(self) -> float:
        return LOOKED
