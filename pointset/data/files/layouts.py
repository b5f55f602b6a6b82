"""Where the points lie in a file, and how many there are: known before they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from pointset.errors import PointsetError

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")
LONGEST_LINE = 1 << 16
MOST_LINES = 10_000
"""Of a header."""


@dataclass(frozen=True)
class Binary:
    """Points as numbers: records of one size, or columns one after another."""

    count: int
    offset: int
    """Byte of the first record."""
    record: np.dtype
    """With the fields x, y, z and perhaps nx, ny, nz; or, with `by_column`, the type of one number."""
    by_column: tuple[str, ...] = ()
    """Names of the columns, if they stand one after another."""

    @property
    def end(self) -> int:
        """Byte after the last record, or column."""
        return self.offset + self.count * self.record.itemsize * (len(self.by_column) or 1)

    @property
    def has_normals(self) -> bool:
        """Whether there are normals beside the points."""
        return {*NORMALS} <= {*(self.by_column or self.record.names or ())}


@dataclass(frozen=True)
class Text:
    """Points as lines of words."""

    names: tuple[tuple[str, ...], ...] = (AXES, AXES + NORMALS)
    """Of the words on a line, for each number of words that a line may have."""
    count: int | None = None
    """Points that the header announces."""
    offset: int = 0
    """Byte after the header."""
    first_line: int = 1
    """Number of that line in the file."""
    skipped: int = 0
    """Lines of something else before the points."""
    more: bool = False
    """Whether lines of something else may follow."""

    def columns(self, words: int) -> list[int]:
        """Places of the points, and of the normals if there are any, on a line with this number of words."""
        names = next(names for names in self.names if len(names) == words)
        return [names.index(name) for name in kept_columns(names)]


def kept_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are read: the points, and their normals if all three are there."""
    return AXES + NORMALS if {*NORMALS} <= {*names} else AXES


def record_of(names: Sequence[str], types: Sequence[np.dtype]) -> np.dtype:
    """The type of one point in the file, with x, y, z and perhaps nx, ny, nz as its fields."""
    starts = [*accumulate((one.itemsize for one in types), initial=0)]
    kept = kept_columns(names)
    where = [names.index(name) for name in kept]
    formats, offsets = [types[i] for i in where], [starts[i] for i in where]
    return np.dtype({"names": kept, "formats": formats, "offsets": offsets, "itemsize": starts[-1]})


def records(points: np.ndarray) -> np.ndarray:
    """Numbers [n, 3] or [n, 6] as records."""
    record = record_of((AXES + NORMALS)[: points.shape[1]], [points.dtype] * points.shape[1])
    return np.frombuffer(points.tobytes(), record)


def header_lines(path: Path, last: str) -> tuple[list[list[str]], int]:
    """The words of each line up to the one that begins with `last`, and the byte after it."""
    lines: list[list[str]] = []
    with path.open("rb") as file:
        while len(lines) < MOST_LINES:
            line = file.readline(LONGEST_LINE)
            lines.append(line.decode("latin-1").split())
            if lines[-1][:1] == [last]:
                return lines, file.tell()
            if not line.endswith(b"\n"):
                break
    raise PointsetError(f"expected a header that ends with {last}: it is another kind of file, or cut off")
