"""Where the points lie in a file of numbers, and how many there are: known before they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from pointset.errors import REPEATED, PointsetError, one_line, quoted

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")
COLORS = (("red", "green", "blue"), ("r", "g", "b"))
"""The columns of a point's color, by either of two names."""
PADDING = "_"
"""What a column is called that nothing is known of."""
PACKED = ("blue", "green", "red", PADDING)
"""The bytes of a color in one number 0xAARRGGBB of 32 bits, from the lowest."""

MORE_COLUMNS = ": leave the others out, or train on them (`train --features columns`, in Python features=['columns'])"


@dataclass(frozen=True)
class Binary:
    """Points as numbers: records of one size, or columns one after another."""

    count: int
    offset: int
    """Byte of the first record."""
    record: np.dtype
    """With the fields x, y, z, perhaps nx, ny, nz, and those of features; or, with `by_column`, that of a number."""
    by_column: tuple[str, ...] = ()
    """Names of the columns, if they stand one after another."""
    after: int = 0
    """Bytes of something else after the points."""
    padding: int = 0
    """Bytes of zeros that may follow at the file's end."""
    colors: Mapping[str, np.dtype] = field(default_factory=dict)
    """Columns that are colors in whole numbers, kept or not, with their types in the file: shares are made of them."""

    @property
    def end(self) -> int:
        """Byte after the last record, or column."""
        return self.offset + self.count * self.record.itemsize * (len(self.by_column) or 1)

    @property
    def has_normals(self) -> bool:
        """Whether there are normals beside the points."""
        return {*NORMALS} <= {*(self.by_column or self.record.names or ())}


def feature_columns(feature: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that a feature is, of a file's: "normals", "colors", "columns" (those without names), or a name.

    Raises:
        PointsetError: the file lacks it.
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
    """Names of the columns of a feature that has several, and no names for them."""
    return [f"{feature} {place}" for place in range(count)]


def kept_columns(names: Sequence[str], features: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that are read: the points, their normals if all three are there, and wanted features."""
    usual = AXES + NORMALS if {*NORMALS} <= {*names} else AXES
    return tuple(dict.fromkeys([*usual, *(name for one in features for name in feature_columns(one, names))]))


def plain_columns(width: int, features: Sequence[str]) -> tuple[str, ...]:
    """What the columns of a file without names are: a point, its normal, and those that only features have.

    Raises:
        PointsetError: there are others than features are wanted of.
    """
    further = "columns" in features
    if width not in (3, 6) and not (further and width > len(AXES)):
        more = MORE_COLUMNS if width > len(AXES) else ""
        raise PointsetError(f"expected 3 or 6 numbers, found {width}{more}")
    normals = width >= len(AXES + NORMALS) and (not further or "normals" in features)
    named = AXES + NORMALS if normals else AXES
    return (*named, *numbered("columns", width - len(named)))


def looks_transposed(count: int, width: int) -> bool:
    """Whether an array [count, width] rather has the rows x, y, z, and perhaps those of normals."""
    return count in (len(AXES), len(AXES + NORMALS)) and width > 2 * count


def unpacked(names: Sequence[str], packed: str | None) -> list[str]:
    """The columns of a file whose column `packed`, if any, holds a color in one number."""
    return [column for name in names for column in (PACKED if name == packed else (name,))]


def place_of(column: str, names: Sequence[str], packed: str | None) -> int:
    """Which of a file's columns holds one of the `unpacked` columns."""
    return names.index(column if packed is None or column not in PACKED else packed)


def from_packed(numbers: np.ndarray, name: str) -> np.ndarray:
    """The shares of red, green or blue in numbers of 32 bits, of whatever type."""
    return numbers.view(np.uint8).reshape(-1, len(PACKED))[:, PACKED.index(name)] / 255


def record_of(names: Sequence[str], types: Sequence[np.dtype], features: Sequence[str] = ()) -> np.dtype:
    """The type of one point in the file, with its `kept_columns` as fields."""
    starts = [*accumulate((one.itemsize for one in types), initial=0)]
    kept = kept_columns(names, features)
    where = [names.index(name) for name in kept]
    formats, offsets = [types[i] for i in where], [starts[i] for i in where]
    return np.dtype({"names": kept, "formats": formats, "offsets": offsets, "itemsize": starts[-1]})


def records(points: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Numbers [n, columns] as records with these names."""
    record = np.dtype([(name, points.dtype) for name in names])
    return np.frombuffer(points.tobytes(), record)
