"""Read points from lines of numbers without a header: .xyz and .txt."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from pointset.data.readers.layouts import plain_columns
from pointset.data.readers.number_table import LEAVE_OUT, Form, parse_lines
from pointset.data.readers.number_words import is_number
from pointset.data.readers.text_lines import Lines
from pointset.errors import PointsetError, quoted

BLANKS = b" "
STYLES = {
    BLANKS: "blanks",
    b",": "commas",
    b";": "semicolons",
    b", ": "commas and blanks",
    b"; ": "semicolons and blanks",
}
"""Separators of the numbers of a line, with their names in messages."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_BESIDE_BLANKS = re.compile(r"[ \t\v\f][,;]|[,;][ \t\v\f]")
_BLANK = re.compile(r"[ \t\v\f]")


@dataclass(frozen=True)
class FreeText:
    """Text with one point per line: 3 or 6 finite numbers (with features, another number), equal for all lines.

    Comments after `#` or `//` and empty lines are skipped.

    All numbers of a file have the same separator: blanks and tabs, one comma, or one semicolon; either all commas or
    semicolons have blanks beside them, or none. Decimal commas (`1,5 2,5 3,5`) and missing numbers (`1,,2,3`) are thus
    never read as other numbers.
    """

    features: tuple[str, ...] = ()
    """Names of the wanted features."""

    def kept(self, width: int) -> tuple[str, ...]:
        """Names of the kept columns, which are all."""
        return plain_columns(width, self.features)

    def tables(self, file: BinaryIO, most: int) -> Iterator[np.ndarray]:
        """Yield tables [n_i, columns] of at most `most` lines each.

        Raises:
            PointsetError: a line is wrong, or the file is UTF-16.
        """
        head = file.read(len(BYTE_ORDER_MARK))
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise PointsetError("expected plain text, found UTF-16: save it as UTF-8")
        file.seek(len(BYTE_ORDER_MARK) if head == BYTE_ORDER_MARK else 0)
        lines, split = Lines(file, comments=True), None
        while (taken := lines.take(most))[1]:
            first, some = taken
            split = split or _split_of(some, first, self.features)
            if split:
                yield parse_lines(some, first, split.form, usual=split.is_usual(some, lines.odd))


@dataclass(frozen=True)
class _Split:
    """Splits lines into words; all lines must have the separator and the number of words of the first."""

    style: bytes
    width: int

    def __call__(self, line: bytes) -> list[bytes]:
        style, words = _words(line)
        _require_numbers(words)
        if len(words) > 1 and style != self.style:
            found = f"{STYLES[self.style]} between numbers as in the lines before, found {STYLES[style]}"
            raise ValueError(f"expected {found}")
        if len(words) != self.width:
            raise ValueError(f"expected {self.width} numbers as in the lines before, found {len(words)}")
        return words

    @property
    def mark(self) -> str:
        """A comma, a semicolon, or nothing."""
        return self.style.decode().strip()

    @property
    def form(self) -> Form:
        places = tuple(range(self.width))
        return Form(("f8",) * self.width, places, places, self.mark or None, self, LEAVE_OUT)

    def is_usual(self, lines: Sequence[str], odd: set[int]) -> bool:
        """True if numpy splits these lines in the same way, or refuses them."""
        if not self.mark or not odd <= {*self.mark.encode()}:
            return not odd
        text = "\n".join(lines)
        marks = text.count(self.mark)
        if self.style.endswith(BLANKS):
            return text.count(f"{self.mark} ") == marks or len(_BESIDE_BLANKS.findall(text)) == marks
        return not _BLANK.search(text) or not _BESIDE_BLANKS.search(text)


def _split_of(lines: Sequence[str], first: int, features: Sequence[str]) -> _Split | None:
    """The split of the first line that is not empty."""
    for number, line in enumerate(lines, first):
        content = line.encode("latin-1")
        if not content.strip():
            continue
        try:
            style, words = _words(content)
            _require_numbers(words)
            plain_columns(len(words), features)
        except (ValueError, PointsetError) as error:
            raise PointsetError(f"line {number}: {error}") from error
        return _Split(style, len(words))
    return None


def _require_numbers(words: Sequence[bytes]) -> None:
    """Raise a ValueError for a line without any number, which may hold the names of columns."""
    if not any(map(is_number, words)):
        found = quoted(words[0].decode(errors="replace"), 40)
        raise ValueError(f"expected a number, found {found}: put # before a line that is not a point, or delete it")


def _words(line: bytes) -> tuple[bytes, list[bytes]]:
    """The separator of a line, one of `STYLES`, and its words."""
    marks = [mark for mark in (b",", b";") if mark in line]
    if not marks:
        return BLANKS, line.split()
    parts = line.split(marks[0])
    words = [part.strip() for part in parts]
    if not all(words):
        raise ValueError(f"expected a number on each side of a {marks[0].decode()!r}, found none: one may be missing")
    blank = {left[-1:].isspace() or right[:1].isspace() for left, right in pairwise(parts)}
    if len(marks) > 1 or len(blank) > 1 or any(len(word.split()) > 1 for word in words):
        raise ValueError("expected one separator between all numbers, found several: write decimal commas as points")
    return marks[0] + BLANKS * blank.pop(), words
