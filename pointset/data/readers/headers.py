"""Read the headers of PLY and PCD: lines of words up to an end line, followed by binary or text data."""

import re
from dataclasses import dataclass
from pathlib import Path

from pointset.errors import PointsetError

FIRST_READ = 1 << 12
MOST_BYTES = 1 << 20
MOST_LINES = 10_000
MOST_DIGITS = 18
"""Most digits of a count; a larger one would exceed any file size."""
_LINE_END = re.compile(rb"\r\n|\n|\r")
_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Header:
    """The lines of a header."""

    first: bytes
    """The first line, without its line end."""
    lines: list[tuple[int, list[str]]]
    """Line number and words of all lines that are not empty."""
    next_line: int
    """Number of the line after the header."""
    text: int
    """Offset of text data: after the header's last line, with any line end."""
    numbers: int | None
    """Offset of binary data. None after old line ends (carriage returns) if that of the last line may be two."""

    @property
    def start_of_numbers(self) -> int:
        """The offset of binary data.

        Raises:
            PointsetError: the header's first and last line end differently, so that the offset is unknown.
        """
        if self.numbers is None:
            raise PointsetError("expected a header whose first and last line end alike: its line ends were changed")
        return self.numbers


def read_header(path: Path, last: str) -> Header:
    """Read the header of a file, up to the line whose first word is `last`.

    Raises:
        PointsetError: there is no such line; the message does not name the file.
        OSError: the file cannot be read.
    """
    # A match at the very end of the bytes read so far does not count: a \n may follow its \r.
    end = re.compile(rb"(?:\A|[\r\n])[ \t\v\f]*" + last.encode() + rb"(?:[ \t\v\f][^\r\n]*)?(\r\n|\n|\r)")
    with path.open("rb") as file:
        content = file.read(FIRST_READ)
        while (found := end.search(content)) is None or found.end() == len(content):
            more = file.read(7 * len(content)) if len(content) < MOST_BYTES else b""
            if not more:
                break
            content += more
    first_end = _LINE_END.search(content)
    line_end = first_end[0] if first_end else b""
    apart = re.compile(rb"\r?\n") if b"\n" in line_end else _LINE_END  # a \r may stand in a comment
    lines = apart.split(content[: found.start(1)], MOST_LINES) if found else []
    if found is None or found.end() > MOST_BYTES or len(lines) > MOST_LINES:
        raise PointsetError(f"expected a header that ends with {last}: it is another kind of file, or cut off")
    split = ((number, [word.decode("latin-1") for word in line.split()]) for number, line in enumerate(lines, 1))
    words = [(number, line) for number, line in split if line]
    same = content.startswith(line_end, found.start(1))
    numbers = found.start(1) + len(line_end) if same else None if line_end == b"\r" else found.end()
    return Header(lines[0], words, len(lines) + 1, found.end(), numbers)


def whole_number(word: str) -> int | None:
    """The non-negative integer that a word of a header spells, or None."""
    if not _WHOLE.fullmatch(word) or len(word.lstrip("+-0")) > MOST_DIGITS:
        return None
    number = int(word.lstrip("+-").lstrip("0") or "0")
    return None if word[0] == "-" and number else number
