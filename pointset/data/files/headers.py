"""The headers of PLY and PCD: lines of words up to one that ends them, and then bytes or text."""

import re
from dataclasses import dataclass
from pathlib import Path

from pointset.errors import PointsetError

FIRST_READ = 1 << 12
MOST_BYTES = 1 << 20
MOST_LINES = 10_000
MOST_DIGITS = 18
"""Of a count: more would not be a number of bytes that a disk can hold."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Header:
    """The lines of a header."""

    first: bytes
    """The first of them, without its end."""
    lines: list[tuple[int, list[str]]]
    """Number and words of all that are not empty."""
    next_line: int
    """Number of the line after the header."""
    text: int
    """Byte where a text goes on: after the header's last line, whatever ends it."""
    numbers: int | None
    """Byte where numbers in binary begin: after the bytes that end the first line. None if others end the last one."""

    @property
    def start_of_numbers(self) -> int:
        """Where numbers in binary begin.

        Raises:
            PointsetError: the header's first and last line end differently, so that no one knows.
        """
        if self.numbers is None:
            raise PointsetError("expected a header whose first and last line end alike: its line ends were changed")
        return self.numbers


def read_header(path: Path, last: str) -> Header:
    """The header of a file, up to the line whose first word is `last`.

    Raises:
        PointsetError: there is no such line; the file is not named.
        OSError: the file cannot be read.
    """
    # Bytes that a line end follows, but not at the very end of what was read: a line feed may come after \r.
    end = re.compile(rb"(?:\A|[\r\n])[ \t\v\f]*" + last.encode() + rb"(?:[ \t\v\f][^\r\n]*)?(\r\n|\n|\r)")
    with path.open("rb") as file:
        content = file.read(FIRST_READ)
        while (found := end.search(content)) is None or found.end() == len(content):
            more = file.read(7 * len(content)) if len(content) < MOST_BYTES else b""
            if not more:
                break
            content += more
    lines = _LINE_END.split(content[: found.start(1)], MOST_LINES) if found else []
    if found is None or found.end() > MOST_BYTES or len(lines) > MOST_LINES:
        raise PointsetError(f"expected a header that ends with {last}: it is another kind of file, or cut off")
    split = ((number, [word.decode("latin-1") for word in line.split()]) for number, line in enumerate(lines, 1))
    words = [(number, line) for number, line in split if line]
    first_end = _LINE_END.search(content)
    line_end = first_end[0] if first_end else b""
    same = content.startswith(line_end, found.start(1))
    numbers = found.start(1) + len(line_end) if same else None
    return Header(lines[0], words, len(lines) + 1, found.end(), numbers)


def whole_number(word: str) -> int | None:
    """The number >= 0 that a word of a header is, or None."""
    if not _WHOLE.fullmatch(word) or len(word.lstrip("+-0")) > MOST_DIGITS:
        return None
    number = int(word.lstrip("+-").lstrip("0") or "0")
    return None if word[0] == "-" and number else number
