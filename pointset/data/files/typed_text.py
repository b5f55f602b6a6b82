"""Points as lines of words whose types and number a header announces: PLY and PCD as text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from pointset.data.files.layouts import AXES, kept_columns
from pointset.data.files.number_table import LETTERS, Form, parse_lines
from pointset.data.files.number_words import number_of
from pointset.data.files.ply_header import PlyElement, PlyProperty
from pointset.data.files.text_lines import Lines
from pointset.errors import PointsetError, quoted


@dataclass(frozen=True)
class TypedText:
    """A line per point, after lines of something else and before lines of something else; empty ones are skipped."""

    names: tuple[str, ...]
    """Of the words on a line."""
    types: tuple[str, ...]
    """numpy's names of the types that they must fit into, read or not."""
    count: int
    """Of points."""
    offset: int
    """Byte after the header."""
    first_line: int
    """Number of the line there."""
    before: tuple[PlyElement, ...] = ()
    after: tuple[PlyElement, ...] = ()

    def tables(self, file: BinaryIO, most: int) -> Iterator[np.ndarray]:
        """Numbers [n_i, 3 or 6] of at most so many lines: the points, and their normals if there are any.

        Raises:
            PointsetError: a line is wrong, wherever it stands, or lines are missing or surplus.
        """
        file.seek(self.offset)
        lines = Lines(file, self.first_line)
        for element in self.before:
            _pass_over(lines, element, most)
        kept = tuple(self.names.index(name) for name in kept_columns(self.names))
        yield from _entries(lines, Form(self.types, kept, kept[: len(AXES)]), self.count, "points", most)
        for element in self.after:
            _pass_over(lines, element, most)
        _require_end(lines, most)


def _pass_over(lines: Lines, element: PlyElement, most: int) -> None:
    """Check the lines of an element that is not read: a wrong one may be a point."""
    form = Form(tuple(one.type for one in element.properties), (), ())
    what = f"entries of its element {quoted(element.name)}"
    for _ in _entries(lines, form, element.count, what, most, element.properties if element.has_lists else ()):
        pass


def _entries(
    lines: Lines, form: Form, count: int, what: str, most: int, lists: Sequence[PlyProperty] = ()
) -> Iterator[np.ndarray]:
    left = count
    while left:
        first, some = lines.take(min(most, left))
        if not some:
            raise PointsetError(f"expected {count} {what}, as its header says, found {count - left}: it may be cut off")
        table = _read_lists(some, first, lists) if lists else parse_lines(some, first, form, usual=lines.odd <= LETTERS)
        left -= len(table)
        yield table


def _read_lists(lines: Sequence[str], first: int, properties: Sequence[PlyProperty]) -> np.ndarray:
    """As many rows without numbers as there are entries."""
    found = 0
    for number, line in enumerate(lines, first):
        words = line.encode("latin-1").split()
        try:
            if words:
                _require_entry(words, properties)
        except ValueError as error:
            raise PointsetError(f"line {number}: {error}") from error
        found += bool(words)
    return np.empty((found, 0))


def _require_entry(words: Sequence[bytes], properties: Sequence[PlyProperty]) -> None:
    place = 0
    for one in properties:
        repeat = 1
        if one.length_type and place < len(words):
            repeat, place = int(number_of(words[place], one.length_type)), place + 1
        if not 0 <= repeat <= len(words) - place:
            raise ValueError(f"expected a list of at most {len(words) - place} numbers, found {repeat} as its length")
        for word in words[place : place + repeat]:
            number_of(word, one.type, finite=False)
        place += repeat
    if place < len(words):
        raise ValueError(f"expected {place} numbers, found {len(words)}")


def _require_end(lines: Lines, most: int) -> None:
    while True:
        first, some = lines.take(most)
        for number, line in enumerate(some, first):
            if line.encode("latin-1").strip():
                raise PointsetError(f"line {number}: expected the end of the file, as its header says")
        if not some:
            return
