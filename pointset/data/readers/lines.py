"""Lines of numbers: numpy parses them together, and each alone where widths differ or an error needs its line."""

import io
import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from pointset.data.readers.meshes import MeshError
from pointset.errors import quoted

_NUMBERS = b" \t\n\v0123456789+-.eEnNaAiIfFtTyY"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Beginnings of text in UTF-16, as some programs for Windows write it."""


def plain_text(content: bytes) -> bytes:
    r"""Return the text without a byte order mark and comments from # on; every line ends in \n."""
    if content.startswith(UTF_16):
        content = content.decode("utf-16", "replace").encode()
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\v", b" ").replace(b"\f", b" ")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = text.replace(b"nan(ind)", b"nan")  # as programs for Windows write it
    return re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text


def lines_of(text: bytes) -> list[bytes]:
    """Return the lines of a text that are not blank."""
    return list(filter(bytes.strip, text.split(b"\n")))


class Rows(NamedTuple):
    """Lines of a file; an error names the first that is wrong by its number."""

    lines: list[bytes]
    name: str
    """Name of the file."""
    text: bytes
    r"""Text of the file, in which a line ends at \n or, where it continues, at \v."""
    pattern: bytes = rb"(?m)^.*\S.*$"
    """Matches the beginnings of these lines, and of `first` others before them."""
    first: int = 0

    def numbers(self, kind: type = np.float64) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of all lines, one after the other, and how many each line has."""
        table = number_table(self.lines, kind)
        if table is not None:
            return table.ravel(), np.full(len(table), table.shape[1])
        widths = np.array([len(line.split()) for line in self.lines], np.int64)
        numbers = _flat_numbers(b"\n".join(self.lines), kind)
        if numbers is None:
            first = next(row for row, line in enumerate(self.lines) if _flat_numbers(line, kind) is None)
            self.fail(first, f"expected {'whole' if kind is np.int64 else 'only'} numbers")
        return numbers, widths

    def coordinates(self, widths: Sequence[int], expected: str) -> np.ndarray:
        """Return the first three numbers of each line [lines, 3], which has as many numbers as one of the widths."""
        table = number_table(self.lines)
        if table is None or table.shape[1] not in widths:
            numbers, sizes = self.numbers()
            self.require(np.isin(sizes, widths), expected)
            table = numbers[(np.cumsum(sizes) - sizes)[:, None] + np.arange(3)]
        self.require(np.isfinite(table[:, :3]).all(axis=1), "expected finite coordinates")
        return table[:, :3]

    def require(self, right: np.ndarray, expected: str) -> None:
        """Raise a MeshError for the first line that is not right [lines]."""
        if not right.all():
            self.fail(int(np.argmin(right)), expected)

    def fail(self, index: int, expected: str) -> NoReturn:
        """Raise a MeshError for a line, or for the end of the file behind the last."""
        starts = [match.start() for match in re.finditer(self.pattern, self.text)]
        is_line = self.first + index < len(starts)
        start = starts[self.first + index] if is_line else len(self.text)
        number = 1 + self.text.count(b"\n", 0, start) + self.text.count(b"\v", 0, start)
        line = b" ".join(self.lines[index].split()).decode("latin-1") if is_line else ""
        found = quoted(line, 40) if is_line else "the end of the file"
        raise MeshError(f"{self.name}, line {number}: {expected}, found {found}")


def number_table(lines: list[bytes], kind: type = np.float64) -> np.ndarray | None:
    """Parse lines of equally many numbers to an array [lines, numbers]; None if one is wrong, or there is none."""
    block = b"\n".join(lines)
    if not block.strip() or block.translate(None, _NUMBERS):  # numpy reads more than decimals
        return None
    try:
        table: np.ndarray = np.loadtxt(io.BytesIO(block), kind, comments=None, ndmin=2)
    except ValueError:
        return None
    return table if len(table) == len(lines) else None


def _flat_numbers(block: bytes, kind: type) -> np.ndarray | None:
    """Parse words to numbers; None if one is not a decimal number."""
    try:
        return None if block.translate(None, _NUMBERS) else np.array(block.split(), kind)
    except ValueError:
        return None
