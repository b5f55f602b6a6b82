"""Output of the commands: tables for people, JSON for programs, and no control characters of other people's names."""

import contextlib
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, TextIO, cast

from pointset.errors import escaped, one_line

OWN = re.compile(r"\r?(?:\x1b\[A)*")
"""The start of a progress bar: back to the start of the line, and up."""
NUMBER = re.compile(r"[-+]?[\d,]+(\.\d+)?")


class Escaping:
    """A text stream that escapes all but ends of lines, tabs, and how a progress bar begins."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, escaped."""
        if text.isprintable():
            return self._stream.write(text)
        own = cast("re.Match[str]", OWN.match(text))[0]
        parts = re.split(r"([\n\t])", text[len(own) :])
        return self._stream.write(own + "".join(part if part in ("\n", "\t") else escaped(part) for part in parts))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def escaping() -> Iterator[None]:
    """Escape everything that is printed inside this block."""
    with (
        contextlib.redirect_stdout(cast(TextIO, Escaping(sys.stdout))),
        contextlib.redirect_stderr(cast(TextIO, Escaping(sys.stderr))),
    ):
        yield


@contextlib.contextmanager
def warning_in_one_line() -> Iterator[None]:
    """Print warnings for the user as one line on stderr, each once, without the place in the code."""
    shown = set[str]()
    show = warnings.showwarning
    from pointset.runs.progress import write_line  # above the bars; it takes a while to import

    def print_warning(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if category is not UserWarning:
            show(message, category, *place, **rest)
        elif (line := one_line(message)) not in shown:
            shown.add(line)
            write_line(f"pointset: warning: {line}")

    with warnings.catch_warnings():
        warnings.showwarning = print_warning
        yield


def print_json(value: Any) -> None:
    """Print indented JSON."""
    print(json.dumps(value, indent=2))


def print_rows(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    """Print a table with the keys as its head, or the rows as JSON.

    Text is printed as it is: +1.0 keeps its sign and its decimal. Columns of numbers are right-aligned, but for a first
    column of names, such as 007.
    """
    from tabulate import tabulate

    if as_json:
        print_json(rows)
        return
    cells = [
        {escaped(key): escaped(cell) if isinstance(cell, str) else cell for key, cell in row.items()} for row in rows
    ]
    columns = [[row.get(key) for row in cells] for key in (cells[0] if cells else ())]
    text = [place for place, column in enumerate(columns) if any(isinstance(cell, str) for cell in column)]
    align = ["global"] * len(columns)
    for place in text:
        numbers = all(NUMBER.fullmatch(str(cell)) for cell in columns[place] if cell not in (None, ""))
        align[place] = "right" if place and numbers else "left"
    print(tabulate(cells, headers="keys", intfmt=",", disable_numparse=text, colalign=align))


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print a line for each fact, with the names in a column; long texts of a list have lines of their own."""
    from tabulate import tabulate

    rows = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = [f"{key} {part:,}" if isinstance(part, int) else f"{key} {part}" for key, part in value.items()]
            value = ", ".join(value)
        elif isinstance(value, list | tuple):
            value = ("\n" if any(len(part) > 30 for part in value) else ", ").join(value)
        rows.append((name, value))
    print(tabulate(rows, tablefmt="plain", disable_numparse=True))


def in_hours(seconds: float) -> str:
    """A time as h:mm:ss, with days if there are any."""
    return str(timedelta(seconds=round(seconds)))
