"""Read points from lines of text whose number and types are in a header: PLY and PCD as text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import numpy as np

from pointset.data.readers.color_shares import color_columns
from pointset.data.readers.layouts import AXES, from_packed, kept_columns, place_of, unpacked
from pointset.data.readers.number_table import LEAVE_OUT, LETTERS, Form, parse_lines
from pointset.data.readers.ply_header import PlyElement
from pointset.data.readers.ply_lists import parse_lists
from pointset.data.readers.text_lines import Lines
from pointset.errors import PointsetError, quoted

_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True)
class TypedText:
    """Text with one line per point, before and after which there may be other elements; empty lines are skipped."""

    names: tuple[str, ...]
    """Names of the words of a line."""
    types: tuple[str, ...]
    """numpy names of the types that all words must fit into, even of skipped columns."""
    count: int
    """Number of points."""
    offset: int
    """Byte offset after the header."""
    first_line: int
    """Line number after the header."""
    before: tuple[PlyElement, ...] = ()
    """Elements before the points."""
    after: tuple[PlyElement, ...] = ()
    """Elements after the points."""
    features: tuple[str, ...] = ()
    """Names of the wanted features."""
    packed: str | None = None
    """Name of a column with colors packed into 32 bits."""

    @property
    def colors(self) -> dict[str, np.dtype]:
        """Integer color columns, with their types; `tables` does not convert them to fractions."""
        return color_columns(self.names, [np.dtype(kind) for kind in self.types])

    def kept(self, width: int) -> tuple[str, ...]:
        """Names of the kept columns."""
        return kept_columns(unpacked(self.names, self.packed), self.features)

    def tables(self, file: BinaryIO, most: int) -> Iterator[np.ndarray]:
        """Yield tables [n_i, columns] of the `kept` columns, of at most `most` lines each.

        Raises:
            PointsetError: a line of any element is wrong, or lines are missing or surplus.
        """
        file.seek(self.offset)
        lines = Lines(file, self.first_line)
        for element in self.before:
            pass_over(lines, element, most)
        names = self.kept(len(self.names))
        kept = tuple(place_of(name, self.names, self.packed) for name in names)
        # Packed colors must be finite, because the bits of a NaN are not a color.
        colors = {place for place in kept if self.names[place] == self.packed}
        form = Form(self.types, kept, (*kept[: len(AXES)], *colors), if_not_finite=LEAVE_OUT)
        for table in number_entries(lines, form, self.count, "points", most):
            yield np.stack([self._column(name, numbers) for name, numbers in zip(names, table.T, strict=True)], axis=1)
        for element in self.after:
            pass_over(lines, element, most)
        require_end(lines, most)

    def _column(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """A kept column; packed colors are unpacked to the channel `name`."""
        place = place_of(name, self.names, self.packed)
        kind = np.dtype(self.types[place])
        return (
            from_packed(numbers.astype(kind.newbyteorder("<")), name) if self.names[place] == self.packed else numbers
        )


def pass_over(lines: Lines, element: PlyElement, most: int) -> None:
    """Check and skip the lines of an element, because a wrong line could be a misplaced point."""
    form = Form(tuple(one.type for one in element.properties), (), ())
    what = f"entries of its element {quoted(element.name)}"

    def parse(some: list[str], first: int) -> tuple[int, None]:
        usual = lines.odd <= LETTERS
        if element.has_lists:
            return len(parse_lists(some, first, element.properties, 0, usual).sizes), None
        return len(parse_lines(some, first, form, usual=usual)), None

    for _ in take_entries(lines, parse, element.count, what, most):
        pass


def number_entries(lines: Lines, form: Form, count: int, what: str, most: int) -> Iterator[np.ndarray]:
    """Yield tables [n_i, kept] of the kept numbers of `count` entries, of at most `most` lines each."""

    def parse(some: list[str], first: int) -> tuple[int, np.ndarray]:
        table = parse_lines(some, first, form, usual=lines.odd <= LETTERS)
        return len(table), table

    return take_entries(lines, parse, count, what, most)


def take_entries(
    lines: Lines, parse: Callable[[list[str], int], tuple[int, _Parsed]], count: int, what: str, most: int
) -> Iterator[_Parsed]:
    """Parse the next lines until the number of entries in the header is reached.

    Args:
        lines: lines of the file.
        parse: from lines and the number of the first to the number of entries on them and the parsed entries.
        count: number of entries.
        what: plural noun for the entries, for messages.
        most: lines that are parsed at a time.

    Raises:
        PointsetError: the file ends too early.
    """
    left = count
    while left:
        first, some = lines.take(min(most, left))
        if not some:
            raise PointsetError(f"expected {count} {what}, as its header says, found {count - left}: it may be cut off")
        found, parsed = parse(some, first)
        left -= found
        yield parsed


def require_end(lines: Lines, most: int) -> None:
    """Raise a PointsetError unless the rest of the file is blank."""
    while True:
        first, some = lines.take(most)
        for number, line in enumerate(some, first):
            if line.encode("latin-1").strip():
                raise PointsetError(f"line {number}: expected the end of the file, as its header says")
        if not some:
            return
