"""Convert integer colors to the range from 0 to 1.

8- and 16-bit integers are divided by the largest value of their type. Wider types, such as numpy's default of 64 bits
and PLY's `int` of 32, do not determine the full color. It is then derived from all numbers of the file, because a piece
may hold only dark colors.
"""

from collections.abc import Sequence

import numpy as np

from pointset.data.readers.layouts import COLORS
from pointset.errors import PointsetError

FULL = (255, 65535)
"""Candidates for the full color of a wider type; the first one that no number exceeds is used."""


def color_columns(names: Sequence[str], types: Sequence[np.dtype]) -> dict[str, np.dtype]:
    """The columns of a file that hold integer colors, and their types.

    They are called "colors", or have all three names of one of `COLORS`; a column r alone is not a color.
    """
    known = {"colors", *(name for group in COLORS if {*group} <= {*names} for name in group)}
    return {name: kind for name, kind in zip(names, types, strict=True) if name in known and kind.kind in "iu"}


def is_wide(kind: np.dtype) -> bool:
    """True if the integer type does not determine the full color."""
    return kind.itemsize > 2


def full_color(columns: Sequence[np.ndarray], kind: np.dtype) -> int:
    """The value of a full color in an integer type.

    Args:
        columns: all color values, in arrays of any shape; used only if the type is wide.
        kind: the type in the file.

    Raises:
        PointsetError: a value of a wide type is negative or exceeds 65535, so that the full color is unknown.
    """
    if not is_wide(kind):
        return int(np.iinfo(kind).max)
    least = min((int(column.min(initial=0)) for column in columns), default=0)
    most = max((int(column.max(initial=0)) for column in columns), default=0)
    full = next((full for full in FULL if least >= 0 and most <= full), None)
    if full is None:
        raise PointsetError(
            f"has colors from {least} to {most} in whole numbers, whose full color is unknown: save them as numbers "
            f"from 0 to 255, from 0 to 65535, or as fractions from 0 to 1"
        )
    return full
