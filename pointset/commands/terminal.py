"""What commands print, without anything that a terminal would obey: names of classes and files are other people's."""

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, TextIO, cast

from pointset.errors import escaped, one_line

OWN = re.compile(r"\r?(?:\x1b\[A)*")
"""What the progress bars begin with: back to the start of the line, and up."""


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
    """Let everything that is printed inside this block be escaped."""
    with (
        contextlib.redirect_stdout(cast(TextIO, Escaping(sys.stdout))),
        contextlib.redirect_stderr(cast(TextIO, Escaping(sys.stderr))),
    ):
        yield


@contextlib.contextmanager
def warning_in_one_line() -> Iterator[None]:
    """Let warnings that are meant for the user be one line on stderr, each once, without the place in the code."""
    said = set[str]()
    show = warnings.showwarning

    def say(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if category is not UserWarning:
            show(message, category, *place, **rest)
        elif (line := one_line(message)) not in said:
            said.add(line)
            print(f"pointset: warning: {line}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = say
        yield
