"""Upward axes: the usual axis of each file format, the axis of a dataset, and rotations between axes."""

import shlex
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pointset.data.readers.formats import SHAPE_SUFFIXES, suffix_of
from pointset.data.readers.meshes import Mesh

Axis = Literal["y", "z"]
FileUp = Literal["x", "y", "z", "-x", "-y", "-z", "auto"]
"""The direction that points up in a file, or "auto" for the usual direction of the file format."""
USUAL_AXES: dict[str, Axis] = {".obj": "y", ".glb": "y", ".gltf": "y", ".3mf": "z", ".dae": "z"}
"""Usual upward axis of each file format. glTF (2.0, section 3.4) and 3MF (core, 2.3) define an axis. OBJ does not, but
most programs write Y up. Each DAE file states an axis, and `upright_mesh` rotates the mesh to Z up."""
UP_TO_Z = {
    "z": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
    "y": [[1.0, 0, 0], [0, 0, -1], [0, 1, 0]],
    "x": [[0.0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "-z": [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]],
    "-y": [[1.0, 0, 0], [0, 0, 1], [0, -1, 0]],
    "-x": [[0.0, 1, 0], [0, 0, -1], [-1, 0, 0]],
}
"""For each upward direction, the matrix that rotates a shape to Z up."""


def usual_up(names: Iterable[str]) -> Axis | None:
    """Return the usual upward axis of files, by their suffixes; None if it is unknown or not the same for all."""
    axes = {USUAL_AXES.get(suffix_of(name)) for name in names}
    return axes.pop() if len(axes) == 1 else None


def axis_of_dataset(up: FileUp, of_card: Axis | None, names: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return the upward axes of a dataset's sets and files, as fields of a `Preparation`.

    If `up` is "auto", the axis is that of the card or, without one, the usual axis of the files. In the latter case, a
    UserWarning tells of files that usually have Y up.
    """
    suffixes = {suffix_of(name) for name in names} & SHAPE_SUFFIXES
    known = of_card if of_card and up == "auto" else up
    if known != "auto":
        kinds = suffixes if known == "z" else suffixes - {".dae"}  # DAE files state their axis, and are read with Z up
        lies = {} if known in ("y", "z") else {"up": "z", "files_up": known}
        return {"up": known, "kinds": tuple(sorted(kinds)), **lies}
    usual: Axis = usual_up(names) or "z"
    upright = {suffix for suffix in suffixes if USUAL_AXES.get(suffix) == "y"}
    if upright:
        assumption, remedy = "y is taken for their upward axis", "give --up y or --up z"
        if usual == "z":
            assumption, remedy = "with other files, they are rotated to Z up", "give --up z if they have Z up"
        found = f"{folder} holds {' and '.join(sorted(upright))} files, which usually have Y up: {assumption}"
        look = f"look at them with `pointset data show {shlex.quote(str(folder))}`"
        warnings.warn(f"{found}; {look}, and {remedy} (in Python up=)", UserWarning, stacklevel=4)
    return {"up": usual, "kinds": tuple(sorted(suffixes - upright if usual == "z" else suffixes))}


def upright_mesh(mesh: Mesh) -> Mesh:
    """Return the mesh with Z up if its file states another upward axis; see `Mesh.up`."""
    return replace(mesh, vertices=rotate_up(mesh.vertices, mesh.up, "z"), up="z") if mesh.up else mesh


def rotate_up(rows: np.ndarray, now: str, wanted: str, *, normals: bool = False) -> np.ndarray:
    """Return points [..., d], rotated from the upward direction `now` to the upward direction `wanted`.

    With `normals`, columns 3 to 5 are rotated as well.
    """
    if now == wanted:
        return rows
    rotation = np.array(UP_TO_Z[wanted]).T @ np.array(UP_TO_Z[now])
    rotated = rows.copy()
    for first in (0, 3) if normals else (0,):
        for axis, column in enumerate(np.abs(rotation).argmax(axis=1)):
            rotated[..., first + axis] = rows[..., first + column] * int(rotation[axis, column])
    return rotated
