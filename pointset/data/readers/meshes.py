"""A triangle mesh as two arrays."""

from dataclasses import dataclass

import numpy as np

from pointset.errors import PointsetError


class MeshError(PointsetError, ValueError):
    """A mesh cannot be used; the message names the file and, where it can, the line.

    Example:
        >>> try:
        ...     pointset.data.Mesh(np.eye(3), np.array([[0, 1, 3]]))
        ... except pointset.data.MeshError as error:
        ...     print(isinstance(error, pointset.PointsetError))
        True
    """


@dataclass(frozen=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: float64 [V, 3], finite, in the file's own units and axes.
        faces: int64 [F, 3], rows of `vertices`, at least one. A face may be degenerate: it then has no area.

    Raises:
        MeshError: an array has another shape or type, a coordinate is not finite, or an index is out of range.

    Example:
        >>> triangle = pointset.data.Mesh(np.eye(3), np.array([[0, 1, 2]]))
        >>> triangle.vertices.shape, triangle.faces.shape
        ((3, 3), (1, 3))
    """

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices), np.asarray(self.faces)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or vertices.dtype.kind not in "fiu":
            raise MeshError(f"vertices must be numbers [V, 3], got {vertices.dtype} {list(vertices.shape)}")
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
            raise MeshError(f"faces must be integers [F, 3], got {faces.dtype} {list(faces.shape)}")
        if not len(faces):
            raise MeshError(f"a mesh needs at least one face, got {len(vertices)} vertices and no face")
        vertices = np.ascontiguousarray(vertices, dtype=np.float64)
        faces = np.ascontiguousarray(faces, dtype=np.int64)
        if not np.isfinite(vertices).all():
            row = int(np.flatnonzero(~np.isfinite(vertices).all(axis=1))[0])
            raise MeshError(f"vertex {row} has a coordinate that is not finite: {vertices[row].tolist()}")
        if faces.min() < 0 or faces.max() >= len(vertices):
            row = int(np.flatnonzero(((faces < 0) | (faces >= len(vertices))).any(axis=1))[0])
            raise MeshError(f"face {row} is {faces[row].tolist()}, but vertices run from 0 to {len(vertices) - 1}")
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)
