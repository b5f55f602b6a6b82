"""Where the points lie in a file of numbers, and how many there are: known before they are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")


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
    after: int = 0
    """Bytes of something else after the points."""
    padding: int = 0
    """Bytes of zeros that may follow at the file's end."""

    @property
    def end(self) -> int:
        """Byte after the last record, or column."""
        return self.offset + self.count * self.record.itemsize * (len(self.by_column) or 1)

    @property
    def has_normals(self) -> bool:
        """Whether there are normals beside the points."""
        return {*NORMALS} <= {*(self.by_column or self.record.names or ())}


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
