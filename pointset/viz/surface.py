"""Values at points carried to the vertices of the mesh that the points were sampled from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from trimesh.remesh import subdivide_to_size

from pointset.data.files.meshes import Mesh
from pointset.errors import PointsetError
from pointset.viz.rows import as_cloud

MOST_FACES = 200_000


def carry_to_vertices(points: Any, values: Any, vertices: NDArray[np.float64], nearest: int = 3) -> NDArray[np.float64]:
    """Values at vertices: the mean of the values at the nearest points, each weighted by one over its distance.

    v(x) = sum_i w_i v_i / sum_i w_i, w_i = 1 / |x - p_i|, over the `nearest` points p_i (Shepard 1968).

    Args:
        points: [n, 3], in the coordinates of the vertices.
        values: [n].
        vertices: [V, 3].
        nearest: how many points; 1 gives each vertex the value of the nearest point.

    Returns:
        [V]. A vertex that is a point has the value of that point.

    Raises:
        PointsetError: there is not one value per point, or `nearest` is below 1.

    Example:
        >>> vertices = np.array([[0.5, 0.0, 0.0]])
        >>> pointset.viz.carry_to_vertices([[0, 0, 0], [1, 0, 0]], [1.0, 3.0], vertices, nearest=2).tolist()
        [2.0]
    """
    cloud, values = as_cloud(points), np.asarray(values, dtype=np.float64)
    if values.shape != (len(cloud),):
        raise PointsetError(f"give one value per point, [{len(cloud)}], got {list(values.shape)}")
    if nearest < 1:
        raise PointsetError(f"nearest must be at least 1, got {nearest}")
    distances, indices = KDTree(cloud).query(vertices, k=np.arange(1, min(nearest, len(cloud)) + 1))
    # Far below the distance between points: it only avoids a division by 0 where a vertex is a point.
    least = 1e-9 * float(np.ptp(cloud, axis=0).max() or 1.0)
    weights = 1 / np.maximum(distances, least)
    return (weights * values[indices]).sum(axis=1) / weights.sum(axis=1)


def refined(mesh: Mesh, points: NDArray[np.float64]) -> Mesh:
    """The mesh with every edge cut to about the distance between points, within `MOST_FACES` faces."""
    corners = mesh.vertices[mesh.faces]
    area = (
        float(np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1).sum()) / 2
    )
    if not area > 0:
        return mesh
    # Cutting to edge e leaves about 4 area / e^2 faces, plus those that were smaller already.
    room = max(MOST_FACES - len(mesh.faces), 1)
    edge = max(np.sqrt(area / len(points)), np.sqrt(8 * area / room))
    vertices, faces = subdivide_to_size(mesh.vertices, mesh.faces, max_edge=float(edge), max_iter=30)
    return Mesh(vertices, faces)


def require_on_surface(points: NDArray[np.float64], fine: Mesh) -> None:
    """Refuse points that do not lie on the mesh, such as normalised ones.

    A point of a triangle is at most as far from a corner as its longest edge is long.

    Raises:
        PointsetError: more than one point in 20 lies off the mesh.
    """
    edges = np.linalg.norm(np.diff(fine.vertices[fine.faces[:, [0, 1, 2, 0]]], axis=1), axis=2)
    distances, _ = KDTree(fine.vertices).query(points)
    off = int((distances > 1.001 * edges.max()).sum())
    if off > len(points) / 20:
        raise PointsetError(
            f"{off} of {len(points)} points lie off the mesh (points: {_box(points)}, mesh: {_box(fine.vertices)}): "
            "give them as they were sampled, before they were normalised"
        )


def _box(points: NDArray[np.float64]) -> str:
    low, high = (np.array2string(bound, precision=3) for bound in (points.min(axis=0), points.max(axis=0)))
    return f"{low} to {high}"
