"""Lines of text with numbers, parsed by numpy, which name the first line that is wrong."""

import io
import re
from bisect import bisect_left
from copy import copy

import numpy as np

from pointset.data.readers.meshes import MeshError
from pointset.errors import quoted

BLANKS = b" \t\n\v"
_NUMBERS = BLANKS + b"0123456789+-.eEnNaAiIfFtTyY"
_COMMENT = re.compile(rb"#[^\n]*")
_EXCERPT = 40


def plain_text(content: bytes) -> bytes:
    r"""The text without a byte order mark, and without comments from # on; every line ends in \n."""
    text = content.removeprefix(b"\xef\xbb\xbf").replace(b"\v", b" ").replace(b"\f", b" ")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = text.replace(b"nan(ind)", b"nan")  # as programs for Windows write it
    return _COMMENT.sub(b"", text) if b"#" in text else text


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


class Lines:
    r"""The lines with words of a text made by `plain_text`, or some of them. A \v joins two lines into one.

    Attributes:
        starts: offsets [lines] of their first words.
        ends: offsets [lines] of the next lines.
    """

    def __init__(self, text: bytes, name: str, offset: int = 0) -> None:
        self.text, self.name = text, name
        characters = np.frombuffer(text, np.uint8)[offset:]
        starts = np.concatenate([[0], np.flatnonzero(characters == ord("\n")) + 1])
        starts = starts[: -1 if starts[-1] == len(characters) else None]
        if (characters[starts] <= ord(" ")).any():
            starts = starts[characters[starts] != ord("\n")]
        if (characters[starts] <= ord(" ")).any():  # blanks before the first word, or in an empty line
            words = _word_starts(text[offset:])
            firsts = np.searchsorted(words, starts)
            starts = words[firsts[np.diff(firsts, append=len(words)) > 0]]
        self.starts = starts + offset
        self.ends = np.append(self.starts[1:], len(text))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, chosen: slice | np.ndarray) -> "Lines":
        lines = copy(self)
        lines.starts, lines.ends = self.starts[chosen], self.ends[chosen]
        return lines

    @property
    def block(self) -> bytes:
        """The text of the lines."""
        breaks = np.flatnonzero(self.starts[1:] != self.ends[:-1]).tolist()
        runs = zip([0, *(last + 1 for last in breaks)], [*breaks, -1], strict=True) if len(self) else ()
        return b"".join(self.text[self.starts[first] : self.ends[last]] for first, last in runs)

    @property
    def texts(self) -> list[bytes]:
        """The text of each line."""
        return [self.text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]

    @property
    def offsets(self) -> np.ndarray:
        """Offsets [lines] in the block."""
        sizes = self.ends - self.starts
        return np.cumsum(sizes) - sizes

    @property
    def widths(self) -> np.ndarray:
        """The numbers of words [lines]."""
        words, starts = _word_starts(self.block), self.offsets
        width, rest = divmod(len(words), max(1, len(self)))
        if width and not rest and np.array_equal(words[::width], starts):  # the usual case, in half the time
            return np.full(len(self), width)
        return np.diff(np.searchsorted(words, starts), append=len(words))

    def numbers(self) -> np.ndarray:
        """All numbers float64 [sum of widths], line after line."""
        numbers = flat_numbers(self.block)
        if numbers is None:
            wrong = bisect_left(range(len(self)), True, key=lambda line: flat_numbers(self[: line + 1].block) is None)
            raise self.error(wrong, "expected only numbers")
        return numbers

    def require(self, right: np.ndarray, expected: str) -> None:
        """Raise a MeshError for the first line that is not right [lines]."""
        if not right.all():
            raise self.error(int(np.argmin(right)), expected)

    def error(self, line: int, expected: str) -> MeshError:
        """The error for a line that is not as expected."""
        return error_at(self.text, int(self.starts[line]), self.name, expected)


def _word_starts(text: bytes) -> np.ndarray:
    blank = np.frombuffer(b"\n" + text, np.uint8) <= ord(" ")
    return np.flatnonzero(blank[:-1] > blank[1:])


def error_at(text: bytes, offset: int, name: str, expected: str) -> MeshError:
    """The error for the line at an offset of a text made by `plain_text`."""
    line = b" ".join(text[offset:].lstrip(BLANKS).partition(b"\n")[0].split())
    number = 1 + sum(text.count(end, 0, offset) for end in (b"\n", b"\v"))
    found = quoted(line.decode("latin-1"), _EXCERPT) if line else "the end of the file"
    return MeshError(f"{name}, line {number}: {expected}, found {found}")
