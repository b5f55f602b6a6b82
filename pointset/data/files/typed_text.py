"""Points as lines of words whose types and number a header announces: PLY and PCD as text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

import numpy as np

from pointset.data.files.color_shares import color_columns
from pointset.data.files.layouts import AXES, from_packed, kept_columns, place_of, unpacked
from pointset.data.files.number_table import LEAVE_OUT, LETTERS, Form, parse_lines
from pointset.data.files.ply_header import PlyElement
from pointset.data.files.ply_lists import parse_lists
from pointset.data.files.text_lines import Lines
from pointset.errors import PointsetError, quoted

_Parsed = TypeVar("_Parsed")


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
    features: tuple[str, ...] = ()
    """That are wanted."""
    packed: str | None = None
    """Name of a word that is a color in one number of 32 bits."""

    @property
    def colors(self) -> dict[str, np.dtype]:
        """Columns that are colors in whole numbers, with their types; `tables` makes no shares of them."""
        return color_columns(self.names, [np.dtype(kind) for kind in self.types])

    def kept(self, width: int) -> tuple[str, ...]:
        """Names of the columns that are kept."""
        return kept_columns(unpacked(self.names, self.packed), self.features)

    def tables(self, file: BinaryIO, most: int) -> Iterator[np.ndarray]:
        """Numbers [n_i, columns] of at most so many lines: the `kept` columns.

        Raises:
            PointsetError: a line is wrong, wherever it stands, or lines are missing or surplus.
        """
        file.seek(self.offset)
        lines = Lines(file, self.first_line)
        for element in self.before:
            pass_over(lines, element, most)
        names = self.kept(len(self.names))
        kept = tuple(place_of(name, self.names, self.packed) for name in names)
        colors = {place for place in kept if self.names[place] == self.packed}  # the bits of a nan are not a color
        form = Form(self.types, kept, (*kept[: len(AXES)], *colors), if_not_finite=LEAVE_OUT)
        for table in number_entries(lines, form, self.count, "points", most):
            yield np.stack([self._column(name, numbers) for name, numbers in zip(names, table.T, strict=True)], axis=1)
        for element in self.after:
            pass_over(lines, element, most)
        require_end(lines, most)

    def _column(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """A kept column, of the numbers of its words."""
        place = place_of(name, self.names, self.packed)
        kind = np.dtype(self.types[place])
        return (
            from_packed(numbers.astype(kind.newbyteorder("<")), name) if self.names[place] == self.packed else numbers
        )


def pass_over(lines: Lines, element: PlyElement, most: int) -> None:
    """Check the lines of an element that is not read: a wrong one may be a point."""
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
    """The kept numbers [n_i, kept] of so many entries, of at most so many lines at a time."""

    def parse(some: list[str], first: int) -> tuple[int, np.ndarray]:
        table = parse_lines(some, first, form, usual=lines.odd <= LETTERS)
        return len(table), table

    return take_entries(lines, parse, count, what, most)


def take_entries(
    lines: Lines, parse: Callable[[list[str], int], tuple[int, _Parsed]], count: int, what: str, most: int
) -> Iterator[_Parsed]:
    """Parse the next lines, until there are as many entries as the header says.

    Args:
        lines: of the file.
        parse: lines and the number of the first -> the number of entries on them, and what they are.
        count: of entries.
        what: they are, for errors.
        most: lines at a time.

    Raises:
        PointsetError: the file ends before.
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
    """Refuse what is not blank in the rest of the file."""
    while True:
        first, some = lines.take(most)
        for number, line in enumerate(some, first):
            if line.encode("latin-1").strip():
                raise PointsetError(f"line {number}: expected the end of the file, as its header says")
        if not some:
            return
