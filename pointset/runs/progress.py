"""How far long work has come: a bar on a terminal; in a file or a pipe, a plain line every half minute."""

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
"""Seconds between two looks at long work on a terminal."""
T = TypeVar("T")


@dataclass(frozen=True)
class Standing:
    """Where work stands whose units take long."""

    share: float
    """Of the whole work, in [0, 1]."""
    before: float
    """The share that had been done when this work began."""
    doing: Sequence[str] = ()
    """What is being worked on, a line each."""
    longest: float = 0.0
    """Seconds that one unit alone still takes, whatever is done beside it."""

    def left(self, seconds: float) -> str:
        """About how long the rest takes, after so many seconds; empty where nothing was done in them, or is left."""
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
        standing: where the work stands, of one whose units take long; it is looked at in another thread.
    """
    terminal = getattr(sys.stderr, "isatty", bool)()
    if show and not terminal and not hasattr(builtins, "__IPYTHON__"):
        return Lines(what, unit, total, done, scaled, standing)
    if show and terminal and standing is not None:
        return Board(unit, total or 0, done, standing)
    hidden = None if show else True  # None: only where the output is a terminal
    return tqdm(desc=what, unit=unit, total=total, initial=done, leave=leave, unit_scale=scaled, disable=hidden)


def followed(items: Iterable[T], what: str, unit: str, total: int | None = None, *, show: bool = True) -> Iterator[T]:
    """Pass items on, and tell how many have been worked on; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show) as bar:
        for item in items:
            yield item
            bar.update()


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


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
        standing: Callable[[], Standing] | None = None,
    ) -> None:
        self.what, self.unit, self.total, self.scaled = what, unit, total, scaled
        self.done = self.before = done
        self._standing = standing
        self._start = self._told = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        if self._standing is not None:  # long may pass without an update
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
        self.write(escaped(self.line(self._told - self._start)))

    def write(self, text: str) -> None:
        """Write lines of another kind."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """What is done after some seconds, what is left, and for how long."""
        if self.total is None:
            return f"{self.what}: {self._count(self.done)} done"
        told = f"{self.what}: {self._number(self.done)} of {self._count(self.total)} done"
        told += f", {self._number(self.total - self.done)} left"
        total = max(self.total, 1)
        standing = Standing(self.done / total, self.before / total)
        with suppress(PointsetError):  # a damaged file, which the work itself will name
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
    """Long work on a terminal: a bar, and below it a line for each of the units that are being worked on."""

    disable = False
    MOST = 4
    """Units that are shown."""

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
        """Write lines that stay, above the bar."""
        tqdm.write(text, file=sys.stderr)

    def _look_on(self) -> None:
        while not self._over.wait(LOOKED):
            self._look()

    def _look(self) -> None:
        with self._looking, suppress(PointsetError):  # a damaged file, which the work itself will name
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
