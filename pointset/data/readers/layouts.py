"""The layout of a file of points: number of points, columns, types and offsets, known before the points are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from pointset.errors import REPEATED, PointsetError, one_line, quoted

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")
COLORS = (("red", "green", "blue"), ("r", "g", "b"))
"""Names of the columns of a point's color."""
PADDING = "_"
"""Name of an unknown column."""
PACKED = ("blue", "green", "red", PADDING)
"""Channels of a color packed into 32 bits as 0xAARRGGBB, from the lowest byte."""

MORE_COLUMNS = ": leave the others out, or train on them (`train --features columns`, in Python features=['columns'])"


@dataclass(frozen=True)
class Binary:
    """Layout of binary points: records of a fixed size, or consecutive columns."""

    count: int
    offset: int
    """Byte offset of the first record."""
    record: np.dtype
    """Type of a record with fields x, y, z, optionally nx, ny, nz, and features; with `by_column`, type of a number."""
    by_column: tuple[str, ...] = ()
    """Names of the columns, if the file stores column after column."""
    after: int = 0
    """Number of bytes of other data after the points."""
    padding: int = 0
    """Most zero bytes that may follow at the end of the file."""
    colors: Mapping[str, np.dtype] = field(default_factory=dict)
    """All integer color columns, kept or not, with their types in the file; they are read as fractions of 1."""

    @property
    def end(self) -> int:
        """Byte offset after the last record or column."""
        return self.offset + self.count * self.record.itemsize * (len(self.by_column) or 1)

    @property
    def has_normals(self) -> bool:
        """True if the points have normals."""
        return {*NORMALS} <= {*(self.by_column or self.record.names or ())}


def feature_columns(feature: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a feature: "normals", "colors", "columns" (those without names), or the name of a column.

    Args:
        feature: name of the feature.
        names: all columns of the file.

    Raises:
        PointsetError: the file lacks the feature.
    """
    several = tuple(numbered(feature, len(names)))
    known: dict[str, tuple[tuple[str, ...], ...]] = {"normals": (NORMALS,), "colors": COLORS}
    groups = (*known.get(feature, ()), (feature,), several[: len({*several} & {*names})])
    found = next((group for group in groups if group and {*group} <= {*names}), None)
    if found is None:
        there = one_line(", ".join(names), REPEATED)
        raise PointsetError(f"lacks the feature {quoted(feature)}: its columns are {there}")
    return found


def numbered(feature: str, count: int) -> list[str]:
    """Generated names for the columns of a feature."""
    return [f"{feature} {place}" for place in range(count)]


def kept_columns(names: Sequence[str], features: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that are read: points, normals if all three are present, and wanted features."""
    usual = AXES + NORMALS if {*NORMALS} <= {*names} else AXES
    return tuple(dict.fromkeys([*usual, *(name for one in features for name in feature_columns(one, names))]))


def plain_columns(width: int, features: Sequence[str]) -> tuple[str, ...]:
    """Names for the columns of a file without names: point, normal and, if wanted, the feature "columns".

    Raises:
        PointsetError: the file has further columns, and the feature "columns" is not wanted.
    """
    further = "columns" in features
    if width not in (3, 6) and not (further and width > len(AXES)):
        more = MORE_COLUMNS if width > len(AXES) else ""
        raise PointsetError(f"expected 3 or 6 numbers, found {width}{more}")
    normals = width >= len(AXES + NORMALS) and (not further or "normals" in features)
    named = AXES + NORMALS if normals else AXES
    return (*named, *numbered("columns", width - len(named)))


def looks_transposed(count: int, width: int) -> bool:
    """True if an array [count, width] seems to be transposed, with rows x, y, z and possibly normals."""
    return count in (len(AXES), len(AXES + NORMALS)) and width > 2 * count


def unpacked(names: Sequence[str], packed: str | None) -> list[str]:
    """The columns of a file, with the column `packed`, if any, replaced by its color channels."""
    return [column for name in names for column in (PACKED if name == packed else (name,))]


def place_of(column: str, names: Sequence[str], packed: str | None) -> int:
    """Index of the column of the file that holds one of the `unpacked` columns."""
    return names.index(column if packed is None or column not in PACKED else packed)


def from_packed(numbers: np.ndarray, name: str) -> np.ndarray:
    """The channel red, green or blue of packed 32-bit colors of any type, from 0 to 1."""
    return numbers.view(np.uint8).reshape(-1, len(PACKED))[:, PACKED.index(name)] / 255


def record_of(names: Sequence[str], types: Sequence[np.dtype], features: Sequence[str] = ()) -> np.dtype:
    """The dtype of a point's record in the file, with its `kept_columns` as fields."""
    starts = [*accumulate((one.itemsize for one in types), initial=0)]
    kept = kept_columns(names, features)
    where = [names.index(name) for name in kept]
    formats, offsets = [types[i] for i in where], [starts[i] for i in where]
    return np.dtype({"names": kept, "formats": formats, "offsets": offsets, "itemsize": starts[-1]})


def records(points: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Convert numbers [n, columns] to records with these field names."""
    record = np.dtype([(name, points.dtype) for name in names])
    return np.frombuffer(points.tobytes(), record)
