"""Interpolates values from points to the vertices of the mesh from which the points were sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from trimesh.remesh import subdivide_to_size

from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError
from pointset.viz.rows import as_cloud, as_numbers

MOST_FACES = 200_000


def carry_to_vertices(points: Any, values: Any, vertices: NDArray[np.float64], nearest: int = 3) -> NDArray[np.float64]:
    """Interpolate values at vertices: the mean over the nearest points, weighted by inverse distance.

    v(x) = sum_i w_i v_i / sum_i w_i, w_i = 1 / |x - p_i|, over the `nearest` points p_i (Shepard 1968).

    Args:
        points: [n, 3], in the coordinates of the vertices.
        values: [n], the values at the points.
        vertices: [V, 3].
        nearest: number of points; with 1, each vertex gets the value of the nearest point.

    Returns:
        The values at the vertices, [V]. A vertex that coincides with a point gets the value of that point.

    Raises:
        PointsetError: there is not one value per point, or `nearest` is below 1.

    Example:
        >>> vertices = np.array([[0.5, 0.0, 0.0]])
        >>> pointset.viz.carry_to_vertices([[0, 0, 0], [1, 0, 0]], [1.0, 3.0], vertices, nearest=2).tolist()
        [2.0]
    """
    cloud, values = as_cloud(points), as_numbers("values", values)
    if values.shape != (len(cloud),):
        raise PointsetError(f"give one value per point, [{len(cloud)}], got {list(values.shape)}")
    if nearest < 1:
        raise PointsetError(f"nearest must be at least 1, got {nearest}")
    distances, indices = KDTree(cloud).query(vertices, k=np.arange(1, min(nearest, len(cloud)) + 1))
    # Avoids a division by 0 where a vertex is a point; far smaller than the distances between points.
    least = 1e-9 * float(np.ptp(cloud, axis=0).max() or 1.0)
    weights = 1 / np.maximum(distances, least)
    return (weights * values[indices]).sum(axis=1) / weights.sum(axis=1)


def refined(mesh: Mesh, points: NDArray[np.float64]) -> Mesh:
    """Subdivide the mesh until its edges are about as long as the distance between points, up to `MOST_FACES` faces."""
    corners = mesh.vertices[mesh.faces]
    area = (
        float(np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()) / 2
    )
    if not area > 0:
        return mesh
    # Subdivision to edges of length e gives about 4 area / e^2 faces, plus those that were already smaller.
    room = max(MOST_FACES - len(mesh.faces), 1)
    edge = max(np.sqrt(area / len(points)), np.sqrt(8 * area / room))
    vertices, faces = subdivide_to_size(mesh.vertices, mesh.faces, max_edge=float(edge), max_iter=30)
    return Mesh(vertices, faces)


def require_on_surface(points: NDArray[np.float64], fine: Mesh) -> None:
    """Raise a PointsetError if points are not on the mesh, for example because they were normalised.

    The test uses that the distance of a point in a triangle from the nearest corner is at most the longest edge.

    Raises:
        PointsetError: more than one point in 20 is off the mesh.
    """
    edges = np.linalg.norm(np.diff(fine.vertices[fine.faces[:, [0, 1, 2, 0]]], axis=1), axis=2)
    distances, _ = KDTree(fine.vertices).query(points)
    off = int((distances > 1.001 * edges.max()).sum())
    if off > len(points) / 20:
        raise PointsetError(
            f"{off} of {len(points)} points lie off the mesh (points: {_box(points)}, mesh: {_box(fine.vertices)}): "
            "give the points as sampled, before normalisation"
        )


def _box(points: NDArray[np.float64]) -> str:
    low, high = (np.array2string(bound, precision=3) for bound in (points.min(axis=0), points.max(axis=0)))
    return f"{low} to {high}"
