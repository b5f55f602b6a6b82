"""Coloured points and surfaces for 3D tools: PLY for MeshLab, GLB for Blender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray
from trimesh.remesh import subdivide_to_size

from pointset.data.axes import rotate_up
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.runs.atomic import checked_suffix, write_atomically
from pointset.viz.color import scale_for
from pointset.viz.rows import cloud_of, point_rows

MOST_FACES = 200_000
"""Maximum number of faces of a subdivided mesh."""
NEAREST = 3
"""Number of nearest points from which the attention of a vertex is interpolated."""


def export_cloud(
    attention: AttentionMap,
    points: Any,
    path: str | Path,
    head: int = 0,
    query: int = 0,
    *,
    mesh: Mesh | None = None,
) -> Path:
    """Write a cloud, or the mesh from which it was sampled, coloured by one head and one query of a map.

    A .ply file keeps the coordinates. A .glb file has y up and linear colours, as the GLB format requires. The
    attention of the vertices of a mesh is interpolated from the nearest points. Triangles larger than the distance
    between points are first subdivided, so that colours can vary within a triangle.

    Args:
        attention: a map of one cloud.
        points: [n, 3], the cloud for which the map was computed. None means `attention.points`. With `mesh`, the points
            have the order of the map and the coordinates of the mesh (before normalisation).
        path: a path that ends in .ply or .glb.
        head: index of the head.
        query: index of the inducing point, seed or point.
        mesh: the mesh to write. None writes the points.

    Raises:
        PointsetError: the map is not of this cloud, the points are not on the mesh, the head or query does not exist,
            the path has an unsupported suffix, or the path cannot be written.

    Example:
        >>> pointset.viz.export_cloud(pools, points, "pools.ply").name
        'pools.ply'
        >>> square = pointset.data.Mesh(
        ...     np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
        ... )
        >>> points = pointset.data.sample_points(square, 32, seed=0)
        >>> normalized = pointset.data.normalize_points(torch.tensor(points)[None], "unit-sphere")[0]
        >>> pools = pointset.find_map(pointset.attention_maps(model, normalized), kind="pools")
        >>> pointset.viz.export_cloud(pools, points, "surface.ply", mesh=square).name
        'surface.ply'
    """
    path, cloud = checked_suffix(path, (".ply", ".glb"), "a file for 3D tools"), cloud_of(points, attention)
    values = point_rows(attention, cloud).of(head, query)
    scale, suffix = scale_for(values), path.suffix[1:].lower()

    def upright(positions: NDArray[np.float64]) -> NDArray[np.float64]:
        return rotate_up(positions, attention.up, "y") if suffix == "glb" else positions  # glTF 2.0, section 3.4

    if mesh is None:
        coloured = trimesh.PointCloud(upright(cloud), colors=_rgba(scale.colors_of(values), suffix))
        content: Any = trimesh.Scene([coloured]) if suffix == "glb" else coloured
    else:
        from sklearn.neighbors import KNeighborsRegressor

        require_on_mesh(cloud, mesh)
        fine = refined(mesh, cloud)
        # A mean weighted by inverse distance (Shepard 1968). A vertex at a point gets the value of this point.
        nearest = KNeighborsRegressor(min(NEAREST, len(cloud)), weights="distance").fit(cloud, values)
        rgba = _rgba(scale.colors_of(nearest.predict(fine.vertices)), suffix)
        content = trimesh.Trimesh(upright(fine.vertices), fine.faces, vertex_colors=rgba, process=False)
    return write_atomically(path, lambda temporary: temporary.write_bytes(content.export(file_type=suffix)))


def refined(mesh: Mesh, points: NDArray[np.float64]) -> Mesh:
    """Subdivide a mesh to edges about as long as the distance between points, with at most `MOST_FACES` faces."""
    area = float(trimesh.triangles.area(mesh.vertices[mesh.faces]).sum())
    if not area > 0:
        return mesh
    # Subdivision to edges of length e gives about 4 area / e^2 faces, and keeps smaller faces.
    room = max(MOST_FACES - len(mesh.faces), 1)
    edge = max(np.sqrt(area / len(points)), np.sqrt(8 * area / room))
    return Mesh(*subdivide_to_size(mesh.vertices, mesh.faces, max_edge=float(edge), max_iter=30))


def require_on_mesh(points: NDArray[np.float64], mesh: Mesh) -> None:
    """Raise a PointsetError if the points are outside the bounding box of the mesh, or fill only a small part of it."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    extent, size = np.ptp(points, axis=0), high - low
    room = 1e-3 * size.max()
    are_inside = ((points >= low - room) & (points <= high + room)).all()
    if not are_inside or (len(points) > 10 and extent.max() < size.max() / 10):
        own, other = (np.array2string(side, precision=3) for side in (extent, size))
        raise PointsetError(
            f"the points, of size {own}, are not on the mesh, of size {other}: give them as sampled, before "
            "normalisation"
        )


def _rgba(rgb: NDArray[np.float64], suffix: str) -> NDArray[np.uint8]:
    if suffix == "glb":
        # Vertex colours of glTF are linear (section 3.7.2.1): invert the sRGB transfer function (IEC 61966-2-1).
        rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.round(np.c_[rgb, np.ones(len(rgb))] * 255).astype(np.uint8)
