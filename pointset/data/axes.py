"""Which axis points up: what is usual for a kind of file, and turning points to where a model has learned it."""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from pointset.data.files.file_kinds import suffix_of
from pointset.errors import PointsetError, quoted

Axis = Literal["y", "z"]
UsualUp = Literal["y", "z", "auto"]
"""An axis as said, or as is usual for the kind of file."""
USUALLY_Y = frozenset({".obj", ".glb", ".gltf"})
"""glTF says so (specification 2.0, section 3.4); OBJ says nothing, and most programs write it so."""


def usual_up(names: Iterable[str]) -> Axis | None:
    """The axis that usually points up in files of these names; None if nobody knows, or they differ."""
    suffixes = {suffix_of(name) for name in names}
    return "y" if suffixes and suffixes <= USUALLY_Y else None


def check_up(up: str | None) -> None:
    """Raise a PointsetError for anything but "y", "z", "auto" and None, which is "auto"."""
    if up not in (None, "y", "z", "auto"):
        raise PointsetError(f"up must be 'y', 'z' or 'auto', got {quoted(up)}")


def turned_up(rows: np.ndarray, now: Axis, wanted: Axis, *, normals: bool = False) -> np.ndarray:
    """Rows [..., d] turned about x, so that another axis points up; numbers 3 to 5 may be normals, which turn."""
    if now == wanted:
        return rows
    turned = rows.copy()
    for place in (0, 3) if normals else (0,):
        y, z = rows[..., place + 1], rows[..., place + 2]
        turned[..., place + 1], turned[..., place + 2] = (-z, y) if now == "y" else (z, -y)
    return turned
