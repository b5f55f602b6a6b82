"""Colors in whole numbers, as shares of 1.

Numbers of 8 and of 16 bits are shares of the largest one of their type. Wider types do not say what a full color is:
numpy has 64 bits by default, and PLY's `int` has 32. It is seen in the numbers then, in those of the whole file: a
piece of it may hold only dark colors.
"""

from collections.abc import Sequence

import numpy as np

from pointset.data.files.layouts import COLORS
from pointset.errors import PointsetError

FULL = (255, 65535)
"""What a full color may be in a wider type: the first that no number exceeds."""


def color_columns(names: Sequence[str], types: Sequence[np.dtype]) -> dict[str, np.dtype]:
    """The columns of a file that hold colors in whole numbers, and their types.

    They are called "colors", or by the three names of one of `COLORS`: without the other two, r is anything.
    """
    known = {"colors", *(name for group in COLORS if {*group} <= {*names} for name in group)}
    return {name: kind for name, kind in zip(names, types, strict=True) if name in known and kind.kind in "iu"}


def is_wide(kind: np.dtype) -> bool:
    """Whether whole numbers of this type do not say what a full color is."""
    return kind.itemsize > 2


def full_color(columns: Sequence[np.ndarray], kind: np.dtype) -> int:
    """What a full color is, in whole numbers of this type.

    Args:
        columns: all numbers of all colors, each of any shape; looked at only if the type is wide.
        kind: as in the file.

    Raises:
        PointsetError: a number of a wide type is negative or exceeds 65535, so that the numbers do not say it.
    """
    if not is_wide(kind):
        return int(np.iinfo(kind).max)
    least = min((int(column.min(initial=0)) for column in columns), default=0)
    most = max((int(column.max(initial=0)) for column in columns), default=0)
    full = next((full for full in FULL if least >= 0 and most <= full), None)
    if full is None:
        raise PointsetError(
            f"has colors from {least} to {most} in whole numbers, of which it is not known what a full color is: save "
            f"them as numbers from 0 to 255, or from 0 to 65535, or as shares of 1"
        )
    return full
