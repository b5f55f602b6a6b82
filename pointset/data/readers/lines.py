"""Lines of numbers in OFF, OBJ and PLY files: numpy parses all lines at once, and errors give the line number."""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, Self

import numpy as np

from pointset.data.readers.formats import UTF_16
from pointset.data.readers.meshes import MeshError
from pointset.errors import quoted

BLANK = 32
"""The largest byte that separates words, a blank. Tabs and line ends have smaller values."""


def plain_text(content: bytes) -> bytes:
    r"""Return the text without byte order mark and comments (from # on); every line ends in \n."""
    if content.startswith(UTF_16):
        content = content.decode("utf-16", "replace").encode()
    text = content.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text


@dataclass(frozen=True, eq=False)
class Lines:
    """The lines of a text, without blank lines, divided into words. Errors give the number of a line in the file."""

    text: bytes
    """The text of these lines."""
    firsts: np.ndarray
    """int [n], the index in `text` at which the first word of each line begins."""
    widths: np.ndarray
    """int [n], the number of words of each line."""
    places: np.ndarray
    """int [n], the number of each line in the file, counted from 1."""

    @classmethod
    def of(cls, text: bytes) -> Self:
        """Split the text of a file into lines."""
        text = text.rstrip() + b"\n"
        letters = np.frombuffer(text, np.uint8)
        begins = letters > BLANK
        begins[1:] &= letters[:-1] <= BLANK
        words = np.flatnonzero(begins)
        ends = np.searchsorted(words, np.flatnonzero(letters == ord("\n")))
        widths = np.diff(ends, prepend=0)
        rows = np.flatnonzero(widths)
        return cls(text, words[ends[rows] - widths[rows]], widths[rows], rows + 1)

    def __len__(self) -> int:
        return len(self.firsts)

    def part(self, start: int, end: int | None = None) -> "Lines":
        """Return the lines from index `start` up to, but not including, `end`."""
        firsts, ends = self.firsts[start:end], np.append(self.firsts, len(self.text))
        text = self.text[ends[min(start, len(self))] : ends[min(start + len(firsts), len(self))]]
        return Lines(text, firsts - firsts[:1], self.widths[start:end], self.places[start:end])

    def after(self, word: bytes) -> "Lines":
        """Return the lines that begin with a word, without this word."""
        letters = np.frombuffer(self.text + bytes(len(word)), np.uint8).copy()
        found = letters[self.firsts + len(word)] <= BLANK
        for place, letter in enumerate(word):
            found &= letters[self.firsts + place] == letter
        for place in range(len(word)):
            letters[self.firsts[found] + place] = BLANK
        sizes = np.diff(self.firsts, append=len(self.text))
        text = letters[len(self.text) - sizes.sum() : len(self.text)][np.repeat(found, sizes)].tobytes()
        firsts = np.cumsum(sizes[found]) - sizes[found]
        return Lines(text, firsts, self.widths[found] - 1, self.places[found])

    def line(self, index: int) -> bytes:
        """Return the line at an index; it is empty if the index is after the last line."""
        if index >= len(self):
            return b""
        return self.text[self.firsts[index] : self.text.index(b"\n", self.firsts[index])]

    def numbers(self, kind: type = np.float64, left_out: bytes = b"") -> np.ndarray:
        """Return the numbers of all lines in one array; text that matches the pattern `left_out` is removed first."""
        pattern = re.compile(left_out)

        def parsed(text: bytes) -> np.ndarray:
            with warnings.catch_warnings(action="ignore"):  # numpy before 2.3 warns of text without numbers
                try:
                    return np.fromstring(pattern.sub(b"", text) if left_out else text, kind, sep=" ")
                except ValueError:
                    return np.empty(0, kind)

        numbers = parsed(self.text)
        if len(numbers) != self.widths.sum():
            wrong = next((row for row, width in enumerate(self.widths) if len(parsed(self.line(row))) != width), 0)
            self.fail(wrong, f"expected {'whole' if kind is np.int64 else 'only'} numbers")
        return numbers

    def coordinates(self, widths: Sequence[int], expected: str) -> np.ndarray:
        """Return the first three numbers of each line [n, 3]; `widths` are the allowed numbers of words per line."""
        self.require(np.isin(self.widths, widths), expected)
        table: np.ndarray = self.numbers()[(np.cumsum(self.widths) - self.widths)[:, None] + np.arange(3)]
        self.require(np.isfinite(table).all(axis=1), "expected finite coordinates")
        return table

    def require(self, right: np.ndarray, expected: str) -> None:
        """Raise a MeshError for the first line for which `right` [n] is False."""
        if not right.all():
            self.fail(int(np.argmin(right)), expected)

    def fail(self, index: int, expected: str) -> NoReturn:
        """Raise a MeshError for the line at an index or, after the last line, for the end of the file."""
        if index < len(self):
            number, found = self.places[index], quoted(b" ".join(self.line(index).split()).decode("latin-1"), 40)
        else:
            number, found = (self.places[-1] + 1 if len(self) else 1), "the end of the file"
        raise MeshError(f"line {number}: {expected}, found {found}")
