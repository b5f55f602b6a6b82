"""Read the lines of a text file in blocks, with line numbers, any line ends, and without comments."""

import re
from typing import BinaryIO

from pointset.errors import PointsetError

BLOCK = 1 << 13
LONGEST_LINE = 1 << 20
PLAIN = b"0123456789+-.eE \t\v\f\n"
"""The characters of numbers and blanks."""
_COMMENT = re.compile(rb"(?:#|//)[^\n]*")


class Lines:
    """The remaining lines of a file, without line ends, which may be line feeds, carriage returns, or both.

    Attributes:
        odd: characters other than those of numbers and blanks in the text read so far.
    """

    def __init__(self, file: BinaryIO, first: int = 1, *, comments: bool = False) -> None:
        """Start at the current position, with line number `first`; `comments` drops comments after `#` or `//`."""
        self._file = file
        self._comments = comments
        self._number = first
        self._lines: list[str] = []
        self._rest = b""
        self.odd: set[int] = set()

    def take(self, most: int) -> tuple[int, list[str]]:
        """The number of the next line, and at most `most` next lines; none at the end of the file."""
        while len(self._lines) < most and self._fill():
            pass
        number, taken = self._number, self._lines[:most]
        del self._lines[:most]
        self._number += len(taken)
        return number, taken

    def _fill(self) -> bool:
        """Read a block; False at the end of the file."""
        block = self._file.read(BLOCK)
        content = self._rest + block
        if not content:
            return False
        # A carriage return at the end of a block may be the first half of a line end.
        held = content[-1:] == b"\r" and bool(block)
        text = (content[:-1] if held else content).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        text, line_end, rest = text.rpartition(b"\n") if block else (text.removesuffix(b"\n"), b"\n", b"")
        if len(rest) > LONGEST_LINE:
            number = self._number + len(self._lines) + text.count(b"\n") + len(line_end)
            raise PointsetError(f"line {number}: expected at most {LONGEST_LINE:,} characters in a line")
        self._rest = rest + b"\r" * held
        if line_end:
            self._add(text)
        return True

    def _add(self, text: bytes) -> None:
        if self._comments and (b"#" in text or b"//" in text):
            text = _COMMENT.sub(b"", text)
        self.odd.update(text.translate(None, PLAIN))
        self._lines += text.decode("latin-1").split("\n")
