"""Text with numbers: parsed by numpy, or line by line where the lines differ or an error needs its line."""

import io
import re

import numpy as np

from pointset.data.readers.meshes import MeshError
from pointset.errors import quoted

BLANKS = b" \t\n"
_NUMBERS = BLANKS + b"0123456789+-.eEnNaAiIfFtTyY"
_COMMENT = re.compile(rb"#[^\n]*")
_EXCERPT = 40
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Beginnings of text in UTF-16, as some programs for Windows write it."""
Line = tuple[int, bytes]
"""The number of a line in its file, from 1, and its text."""


def plain_text(content: bytes) -> bytes:
    r"""Return the text without a byte order mark and comments from # on; every line ends in \n."""
    if content.startswith(UTF_16):
        content = content.decode("utf-16", "replace").encode()
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\v", b" ").replace(b"\f", b" ")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = text.replace(b"nan(ind)", b"nan")  # as programs for Windows write it
    return _COMMENT.sub(b"", text) if b"#" in text else text


def lines_of(text: bytes, first: int = 1) -> list[Line]:
    """Return the lines with words of a text made by `plain_text`, whose first line has the number `first`."""
    return [(number, line) for number, line in enumerate(text.split(b"\n"), first) if not line.isspace() and line]


def number_table(block: bytes) -> np.ndarray | None:
    """Parse lines of equally many numbers to float64 [lines, numbers]; None if a line is wrong, or all are empty."""
    if not block.strip() or block.translate(None, _NUMBERS):  # numpy reads more than decimals
        return None
    try:
        return np.loadtxt(io.BytesIO(block), np.float64, comments=None, ndmin=2)
    except ValueError:
        return None


def flat_numbers(block: bytes) -> np.ndarray | None:
    """Parse words to float64; None if one is not a decimal number."""
    try:
        return None if block.translate(None, _NUMBERS) else np.array(block.split(), np.float64)
    except ValueError:
        return None


def numbers_of(lines: list[Line], name: str) -> np.ndarray:
    """Return the numbers of all lines, one after the other; a MeshError for the first word that is not a number."""
    numbers = flat_numbers(b"\n".join(text for _, text in lines))
    if numbers is None:
        require(lines, np.array([flat_numbers(text) is not None for _, text in lines]), name, "expected only numbers")
    return np.empty(0) if numbers is None else numbers


def widths_of(lines: list[Line]) -> np.ndarray:
    """Return the numbers of words of all lines."""
    return np.array([len(text.split()) for _, text in lines], np.int64)


def coordinates(lines: list[Line], name: str, allowed: tuple[int, ...], expected: str) -> np.ndarray:
    """Return the first three numbers of each line [lines, 3], which has as many words as one of those `allowed`.

    Raises:
        MeshError: a line has another number of words, a word that is not a number, or a coordinate that is not finite.
    """
    table = number_table(b"\n".join(text for _, text in lines))
    if table is None or len(table) != len(lines) or table.shape[1] not in allowed:
        widths = widths_of(lines)
        require(lines, np.isin(widths, allowed), name, expected)
        table = numbers_of(lines, name)[(np.cumsum(widths) - widths)[:, None] + np.arange(3)]
    require(lines, np.isfinite(table[:, :3]).all(axis=1), name, "expected finite coordinates")
    return table[:, :3]


def require(lines: list[Line], right: np.ndarray, name: str, expected: str) -> None:
    """Raise a MeshError for the first line that is not right [lines]."""
    if not right.all():
        raise line_error(name, lines[int(np.argmin(right))], expected)


def line_error(name: str, line: Line, expected: str) -> MeshError:
    """Return the error for a line that is not as expected; without words it is the end of the file."""
    number, text = line
    excerpt = quoted(b" ".join(text.split()).decode("latin-1"), _EXCERPT) if text else "the end of the file"
    return MeshError(f"{name}, line {number}: {expected}, found {excerpt}")
