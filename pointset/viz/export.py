"""Exports coloured points and surfaces for 3D tools: PLY for MeshLab, GLB for Blender."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray

from pointset.data.readers.meshes import Mesh
from pointset.explain.maps import AttentionMap
from pointset.inputs import takes
from pointset.runs.atomic import write_for_user
from pointset.viz.camera import Up, z_to_y
from pointset.viz.color import Scale, colors_of, scale_for
from pointset.viz.maps import DrawnMap
from pointset.viz.rows import as_cloud, point_rows
from pointset.viz.surface import carry_to_vertices, refined, require_on_surface
from pointset.viz.writing import checked_suffix

SUFFIXES = (".ply", ".glb")


@takes(attention=DrawnMap, path=str | Path, head=int, query=int, up=Up, colors=str | None)
def export_cloud(
    attention: AttentionMap,
    points: Any,
    path: str | Path,
    head: int = 0,
    query: int = 0,
    *,
    up: Up = "z",
    colors: str | None = None,
) -> Path:
    """Write one cloud as points, coloured by one head and one query of a map.

    A .ply file keeps the coordinates. A .glb file has y up and linear colours, as its format requires.

    Args:
        attention: a map of one cloud.
        points: [n, 3], the cloud for which the map was computed.
        path: path that ends in .ply or .glb.
        head: index of the head.
        query: index of the inducing point, seed or point.
        up: the upward axis of the points.
        colors: name of a matplotlib colour map.

    Returns:
        The path.

    Raises:
        PointsetError: cloud and map do not belong together, the map has no such head or query, or the path has another
            suffix or cannot be written.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> pointset.viz.export_cloud(pools, points, "pools.ply").name
        'pools.ply'
    """
    path = checked_suffix(path, SUFFIXES, "coloured points")
    cloud, suffix = as_cloud(points), path.suffix[1:].lower()
    values = _values(attention, cloud, head, query)
    rgba = _rgba(values, scale_for(values, colors), suffix)
    made = trimesh.PointCloud(_placed(cloud, suffix, up), colors=rgba)
    return _exported(trimesh.Scene([made]) if suffix == "glb" else made, path, suffix)


@takes(attention=DrawnMap, mesh=Mesh, path=str | Path, head=int, query=int, up=Up, colors=str | None)
def export_surface(
    attention: AttentionMap,
    points: Any,
    mesh: Mesh,
    path: str | Path,
    head: int = 0,
    query: int = 0,
    *,
    up: Up = "z",
    colors: str | None = None,
) -> Path:
    """Write the mesh from which the points were sampled, its vertices coloured by the attention of the nearest points.

    Triangles larger than the distance between points are subdivided first, so that colours can vary within them.

    Args:
        mesh: the mesh, as read from its file.
        points: [n, 3] in the coordinates of the mesh: before normalisation for the model, in the same order.
        attention, path, head, query, up, colors: see `export_cloud`.

    Returns:
        The path.

    Raises:
        PointsetError: the points do not lie on the mesh, or see `export_cloud`.

    Example:
        >>> square = pointset.data.Mesh(
        ...     np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
        ... )
        >>> points = pointset.data.sample_points(square, 32, seed=0)
        >>> normalized = pointset.data.normalize_points(torch.tensor(points)[None], "unit-sphere")[0]
        >>> pools = pointset.find_map(pointset.attention_maps(model, normalized), kind="pools")
        >>> pointset.viz.export_surface(pools, points, square, "pools.ply").name
        'pools.ply'
    """
    path = checked_suffix(path, SUFFIXES, "a coloured surface")
    cloud, suffix = as_cloud(points), path.suffix[1:].lower()
    values = _values(attention, cloud, head, query)
    fine = refined(mesh, cloud)
    require_on_surface(cloud, fine)
    rgba = _rgba(carry_to_vertices(cloud, values, fine.vertices), scale_for(values, colors), suffix)
    placed = _placed(fine.vertices, suffix, up)
    return _exported(trimesh.Trimesh(placed, fine.faces, vertex_colors=rgba, process=False), path, suffix)


def _exported(made: Any, path: Path, suffix: str) -> Path:
    return write_for_user(path, lambda temporary: temporary.write_bytes(made.export(file_type=suffix)))


def _values(attention: AttentionMap, cloud: NDArray[np.float64], head: int, query: int) -> NDArray[np.float64]:
    rows = point_rows(attention, cloud)
    rows.check(head, query)
    return rows.values[head, query]


def _placed(points: NDArray[np.float64], suffix: str, up: Up) -> NDArray[np.float64]:
    """Points [n, 3] with y up for glTF (section 3.4 of its specification), unchanged for PLY."""
    return z_to_y(points) if suffix == "glb" and up == "z" else points


def _rgba(values: NDArray[np.float64], scale: Scale, suffix: str) -> NDArray[np.uint8]:
    rgb = colors_of(scale, values)
    if suffix == "glb":
        # Vertex colours of glTF are linear (section 3.7.2.1): invert the sRGB transfer function (IEC 61966-2-1).
        rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.round(np.c_[rgb, np.ones(len(rgb))] * 255).astype(np.uint8)
