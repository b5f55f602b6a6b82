"""Columns of a file of points: coordinates, normals, colors and others, by name."""

from collections.abc import Mapping, Sequence

import numpy as np

from pointset.errors import REPEATED, PointsetError, one_line, quoted

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")
COLORS = (("red", "green", "blue"), ("r", "g", "b"))
"""Names of the columns of a point's color."""
FULL_COLORS = (255, 65535)
"""Full colors of integers wider than 16 bits; the first one that no number exceeds is used."""
ALIASES = {"normal_x": "nx", "normal_y": "ny", "normal_z": "nz", "//x": "x"}
Columns = Mapping[str, np.ndarray]
"""Arrays [n] by the names of the columns, in the order of the file; of a large file, views of a memory map."""


def feature_columns(feature: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of a feature: "normals", "colors", "columns" (those without names), or the name of a column.

    Raises:
        PointsetError: the file lacks the feature.
    """
    several = tuple(numbered(feature, len(names)))
    known: dict[str, tuple[tuple[str, ...], ...]] = {"normals": (NORMALS,), "colors": COLORS}
    groups = (*known.get(feature, ()), (feature,), several[: len({*several} & {*names})])
    columns = next((group for group in groups if group and {*group} <= {*names}), None)
    if columns is None:
        there = one_line(", ".join(names), REPEATED)
        raise PointsetError(f"lacks the feature {quoted(feature)}: its columns are {there}")
    return columns


def numbered(feature: str, count: int) -> list[str]:
    """Names for several columns of a feature."""
    return [f"{feature} {index}" for index in range(count)]


def plain_names(width: int, features: Sequence[str]) -> list[str]:
    """Names for the columns of a file without names: x, y, z, then normals, then further columns.

    Six columns are points with normals; of more columns, those after z are normals only if they are wanted.
    """
    if width < len(AXES):
        raise PointsetError(f"expected at least 3 numbers for each point, found {width}")
    normals = (width == 6 and "columns" not in features) or (width > 6 and "normals" in features)
    named = [*AXES, *(NORMALS if normals else ())]
    return named + numbered("columns", width - len(named))


def usual_names(names: Sequence[str]) -> list[str]:
    """Names of a header in the spelling that is used here, such as nx for normal_x and x for X.

    Raises:
        PointsetError: a name is repeated, or there are no x, y and z.
    """
    known = {*AXES, *NORMALS, *COLORS[0], *COLORS[1]}
    lower = [ALIASES.get(name.strip().lower(), name.strip().lower()) for name in names]
    usual = [short if short in known else name.strip() for short, name in zip(lower, names, strict=True)]
    if twice := next((name for name in usual if usual.count(name) > 1), None):
        raise PointsetError(f"has two columns called {quoted(twice)}: the name is ambiguous")
    if not {*AXES} <= {*usual}:
        raise PointsetError(f"expected columns x, y and z, found {quoted(', '.join(names))}")
    return usual


def looks_transposed(count: int, width: int) -> bool:
    """True if an array [count, width] seems to be transposed, with rows x, y, z and possibly normals."""
    return count in (len(AXES), len(AXES + NORMALS)) and width > 2 * count


def full_colors(columns: Columns) -> dict[str, int]:
    """The number of a full color in the columns of integer colors.

    It is the largest value of types of 8 and 16 bits. Wider types do not determine it: it is 255 if no number of the
    file exceeds it, else 65535.

    Raises:
        PointsetError: a color is negative or exceeds 65535.
    """
    names = {name for group in COLORS if {*group} <= {*columns} for name in group}
    names |= {name for name in columns if name == "colors" or name.startswith("colors ")}
    whole = {name: columns[name] for name in names if columns[name].dtype.kind in "iu"}
    wide = [column for column in whole.values() if column.dtype.itemsize > 2]
    most = max((int(column.max(initial=0)) for column in wide), default=0)
    if most > FULL_COLORS[-1] or any(column.min(initial=0) < 0 for column in wide):
        raise PointsetError("has colors in whole numbers below 0 or above 65535: save them as fractions from 0 to 1")
    full = next(full for full in FULL_COLORS if most <= full)
    return {
        name: full if column.dtype.itemsize > 2 else int(np.iinfo(column.dtype).max) for name, column in whole.items()
    }
