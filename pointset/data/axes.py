"""Upward axes: the usual one of each file format, and rotating points from one upward axis to another."""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointset.data.readers.formats import suffix_of
from pointset.errors import PointsetError, quoted

Axis = Literal["y", "z"]
UsualUp = Literal["y", "z", "auto"]
"""An axis, or "auto" for the usual one of the file format."""
GuessedUp = Literal["y", "z", "auto", "guess"]
"""Or "guess" for the direction in which a trained model knows the shapes best; see `pointset.evaluation.upright`."""
USUALLY_Y = frozenset({".obj", ".glb", ".gltf"})
"""Formats with Y up: glTF by its specification (2.0, section 3.4); OBJ does not say, but most programs write Y up."""
UP_TO_Z = {
    "z": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
    "y": [[1.0, 0, 0], [0, 0, -1], [0, 1, 0]],
    "x": [[0.0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "-z": [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]],
    "-y": [[1.0, 0, 0], [0, 0, 1], [0, -1, 0]],
    "-x": [[0.0, 1, 0], [0, 0, -1], [-1, 0, 0]],
}
"""Matrices that turn a shape with this direction up to Z up."""


def _with_headings() -> dict[str, NDArray[np.float64]]:
    """Each of the six directions, and then a quarter turn about the vertical up to three times: "-x@90"."""
    quarter = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    return {
        f"{up}@{90 * count}": np.linalg.matrix_power(quarter, count) @ np.array(matrix)
        for up, matrix in UP_TO_Z.items()
        for count in range(4)
    }


TURNS = _with_headings()
"""The 24 turns of a cube, as matrices to Z up by name: the direction that is up, and degrees about the vertical."""


def usual_up(names: Iterable[str]) -> Axis | None:
    """The axis that usually points up in these files, by their suffixes; None if unknown or if they differ."""
    suffixes = {suffix_of(name) for name in names}
    return "y" if suffixes and suffixes <= USUALLY_Y else None


def check_up(up: str | None) -> None:
    """Raise a PointsetError unless `up` is "y", "z", "auto", None (which means "auto") or one of `TURNS`."""
    if up not in (None, "y", "z", "auto", *TURNS):
        raise PointsetError(f"up must be 'y', 'z' or 'auto', got {quoted(up)}")


def turned_up(rows: np.ndarray, now: str, wanted: Axis, *, normals: bool = False) -> np.ndarray:
    """Rows [..., d] rotated so that what is up `now`, an axis or one of `TURNS`, becomes the `wanted` axis.

    With `normals`, columns 3 to 5 are rotated as well.
    """
    if now == wanted:
        return rows
    turn = np.array(UP_TO_Z[wanted]).T @ TURNS.get(now, np.array(UP_TO_Z.get(now)))
    turned = rows.copy()
    for first in (0, 3) if normals else (0,):
        for axis, column in enumerate(np.abs(turn).argmax(axis=1)):
            turned[..., first + axis] = rows[..., first + column] * int(turn[axis, column])
    return turned
