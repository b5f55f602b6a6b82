"""Show progress on stderr by tqdm: a bar on a terminal, a line every half minute in a file or a pipe."""

import builtins
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

from pointset.errors import escaped

EVERY = 30.0
"""Seconds between two lines."""
T = TypeVar("T")


class _Bar(tqdm):
    """A progress bar of tqdm. pooch uses this class, too."""

    def reset(self, total: float | None = None) -> None:
        """Set the count to zero without writing a line; pooch calls this before its last update."""
        self.n = 0


# The default lock of tqdm is shared by processes; from Python 3.14 on, an interrupted command reports it as leaked.
_Bar.set_lock(threading.RLock())


class _Lines:
    """A file-like object that writes each state of a bar as a line to stderr."""

    def write(self, text: str) -> None:
        if line := text.strip():
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        sys.stderr.flush()


def on_terminal() -> bool:
    """Return True if stderr is a terminal, on which bars are drawn."""
    return bool(getattr(sys.stderr, "isatty", bool)())


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
    """Return a tqdm bar on stderr for `total` units. In a notebook, the bar is not shown."""
    options: dict[str, Any] = {}
    if not on_terminal():
        show = show and not hasattr(builtins, "__IPYTHON__")
        rest = " of {total_fmt}" if total is not None else ""
        left = ", about {remaining} to go" if total is not None else ""
        plural = "" if scaled else "es" if unit.endswith("ch") else "s"
        line = f"{{desc}}: {{n_fmt}}{rest} {unit}{plural} done{left}"
        options = {"file": _Lines(), "mininterval": EVERY, "delay": EVERY, "miniters": 1, "bar_format": line}
    bar = {"total": total, "initial": done, "leave": leave, "unit": unit, "unit_scale": scaled, "disable": not show}
    return _Bar(desc=escaped(what), **bar, **options)


def followed(
    items: Iterable[T],
    what: str,
    unit: str,
    total: int | None = None,
    *,
    show: bool = True,
    size: Callable[[T], int] = lambda _: 1,
) -> Iterator[T]:
    """Iterate over items, such as batches, and show how many units (`size(item)`) are done; see `progress_bar`."""
    with progress_bar(what, unit, total, show=show, leave=False) as bar:
        for item in items:
            yield item
            bar.update(size(item))


def write_line(text: str) -> None:
    """Write lines to stderr, above the bars of a terminal."""
    _Bar.write("\n".join(map(escaped, text.splitlines())), file=sys.stderr)
    sys.stderr.flush()
