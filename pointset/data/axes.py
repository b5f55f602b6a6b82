"""Upward axes: the usual one of each file format, rotations from one to another, and the pose of a dataset."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pointset.data.readers.formats import suffix_of
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError, quoted

Axis = Literal["y", "z"]
FileUp = Literal["x", "y", "z", "-x", "-y", "-z", "auto"]
"""The direction that points up in a file, or "auto" for the usual one of the file format."""
Pose = Literal["aligned", "upright", "any"]
RANDOM = 0.75
"""Share of the scatter of randomly rotated shapes, from which shapes count as randomly rotated."""
USUAL_AXES: dict[str, Axis] = {".obj": "y", ".glb": "y", ".gltf": "y", ".3mf": "z", ".dae": "z"}
"""Upward axes by file format: glTF (2.0, section 3.4) and 3MF (core, 2.3) define theirs; OBJ does not, but most
programs write Y up; DAE files state theirs, and `upright_mesh` rotates them to Z."""
UP_TO_Z = {
    "z": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]],
    "y": [[1.0, 0, 0], [0, 0, -1], [0, 1, 0]],
    "x": [[0.0, 1, 0], [0, 0, 1], [1, 0, 0]],
    "-z": [[1.0, 0, 0], [0, -1, 0], [0, 0, -1]],
    "-y": [[1.0, 0, 0], [0, 0, 1], [0, -1, 0]],
    "-x": [[0.0, 1, 0], [0, 0, -1], [-1, 0, 0]],
}
"""Matrices that rotate a shape with this direction up to Z up."""


def usual_up(names: Iterable[str]) -> Axis | None:
    """Return the usual upward axis of these files, by their suffixes; None if unknown or if they differ."""
    axes = {USUAL_AXES.get(suffix_of(name)) for name in names}
    return axes.pop() if len(axes) == 1 else None


def upright_mesh(mesh: Mesh) -> Mesh:
    """Return the mesh with Z up if its file states another upward axis; see `Mesh.up`."""
    return replace(mesh, vertices=rotate_up(mesh.vertices, mesh.up, "z"), up="z") if mesh.up else mesh


def check_up(up: str | None) -> None:
    """Raise a PointsetError unless `up` is a `FileUp` or None, which means "auto"."""
    if up not in (None, *get_args(FileUp)):
        raise PointsetError(f"up must be {', '.join(get_args(FileUp)[:-1])} or auto, got {quoted(up)}")


def rotate_up(rows: np.ndarray, now: str, wanted: Axis, *, normals: bool = False) -> np.ndarray:
    """Return rows [..., d] rotated so that the direction that is up `now` becomes the `wanted` axis.

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


def recommend_pose(samples: Sequence[tuple[str, NDArray[np.float32]]], up: Axis) -> Pose | None:
    """Recommend a pose by the second moments of shapes, given as pairs (class, points [n, 3]).

    The spread of the moments within classes is scaled from 0, that of shapes on their principal axes, to 1, that of
    randomly rotated shapes. Half turns do not change second moments: upside-down shapes count as aligned.

    Returns:
        "any" if the axes of the shapes of a class differ as at random; "upright" if those about `up` do; else
        "aligned". None if no class has two shapes with an extent.
    """
    moments: dict[str, list[NDArray[np.float64]]] = {}
    for name, points in samples:
        centred = points - points.mean(axis=0, dtype=np.float64)
        if 0 < (extent := np.abs(centred).max(initial=0)) < np.inf:
            covariance = (centred / extent).T @ (centred / extent)
            moments.setdefault(name, []).append(covariance / np.trace(covariance))
    classes = [np.stack(alike) for alike in moments.values() if len(alike) > 1]
    if not classes:
        return None
    free = np.array([axis for axis in range(3) if axis != "xyz".index(up)])
    if _randomness(classes, np.arange(3)) > RANDOM:
        return "any"
    return "upright" if _randomness(classes, free) > RANDOM else "aligned"


def _randomness(classes: list[NDArray[np.float64]], free: NDArray[np.int64]) -> float:
    """Return the scatter within classes: 0 for shapes aligned by their `free` axes, 1 for randomly rotated ones."""
    scatter, aligned, random = 0.0, 0.0, 0.0
    kept = np.setdiff1d(np.arange(3), free)
    for moments in classes:
        axes = np.tile(np.eye(3), (len(moments), 1, 1))
        axes[:, free[:, None], free] = np.linalg.eigh(moments[:, free[:, None], free]).eigenvectors
        mean = np.zeros_like(moments)  # over all rotations in the free axes
        mean[:, kept, kept] = moments[:, kept, kept]
        mean[:, free, free] = moments[:, free, free].mean(axis=1, keepdims=True)
        scatter += _scatter(moments)
        aligned += _scatter(axes.transpose(0, 2, 1) @ moments @ axes)
        random += _scatter(mean) + (1 - 1 / len(moments)) * float(((moments - mean) ** 2).sum())
    return (scatter - aligned) / (random - aligned) if random - aligned > 1e-6 else 0.0


def _scatter(moments: NDArray[np.float64]) -> float:
    return float(((moments - moments.mean(axis=0)) ** 2).sum())
