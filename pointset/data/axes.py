"""Upward axes: the usual one of each file format, and rotating points from one upward axis to another."""

from collections.abc import Iterable
from typing import Literal

import numpy as np

from pointset.data.readers.formats import suffix_of
from pointset.errors import PointsetError, quoted

Axis = Literal["y", "z"]
UsualUp = Literal["y", "z", "auto"]
"""An axis, or "auto" for the usual one of the file format."""
USUALLY_Y = frozenset({".obj", ".glb", ".gltf"})
"""Formats with Y up: glTF by its specification (2.0, section 3.4); OBJ does not say, but most programs write Y up."""


def usual_up(names: Iterable[str]) -> Axis | None:
    """The axis that usually points up in these files, by their suffixes; None if unknown or if they differ."""
    suffixes = {suffix_of(name) for name in names}
    return "y" if suffixes and suffixes <= USUALLY_Y else None


def check_up(up: str | None) -> None:
    """Raise a PointsetError unless `up` is "y", "z", "auto" or None (which means "auto")."""
    if up not in (None, "y", "z", "auto"):
        raise PointsetError(f"up must be 'y', 'z' or 'auto', got {quoted(up)}")


def turned_up(rows: np.ndarray, now: Axis, wanted: Axis, *, normals: bool = False) -> np.ndarray:
    """Rows [..., d] rotated about x so that the `wanted` axis points up; with `normals`, columns 3 to 5 as well."""
    if now == wanted:
        return rows
    turned = rows.copy()
    for first in (0, 3) if normals else (0,):
        y, z = rows[..., first + 1], rows[..., first + 2]
        turned[..., first + 1], turned[..., first + 2] = (-z, y) if now == "y" else (z, -y)
    return turned
