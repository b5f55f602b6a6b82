"""Coloured points and surfaces for 3D tools: PLY for MeshLab, GLB for Blender, and an Open3D window."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import KDTree
from trimesh.remesh import subdivide_to_size

from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import import_open3d
from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap
from pointset.runs.atomic import write_for_user
from pointset.viz.camera import Camera, Up, z_to_y
from pointset.viz.color import Scale, colors_of, scale_for
from pointset.viz.rows import as_cloud, point_rows
from pointset.viz.writing import checked_suffix

SUFFIXES = (".ply", ".glb")
MOST_FACES = 200_000
"""Largest number of faces of a subdivided surface."""


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

    Raises:
        PointsetError: cloud and map do not belong together, the map has no such head or query, or the path has another
            suffix or cannot be written.

    Example:
        >>> pointset.viz.export_cloud(pools, points, "pools.ply").name
        'pools.ply'
    """
    path, cloud = checked_suffix(path, SUFFIXES, "coloured points"), as_cloud(points)
    values = _values(attention, cloud, head, query)
    glb = path.suffix.lower() == ".glb"
    content = trimesh.PointCloud(_upright(cloud, glb, up), colors=_rgba(values, scale_for(values, colors), glb))
    return _write(trimesh.Scene([content]) if glb else content, path)


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
    path, cloud = checked_suffix(path, SUFFIXES, "a coloured surface"), as_cloud(points)
    values = _values(attention, cloud, head, query)
    glb = path.suffix.lower() == ".glb"
    fine = refined(mesh, cloud)
    require_on_surface(cloud, fine)
    rgba = _rgba(carry_to_vertices(cloud, values, fine.vertices), scale_for(values, colors), glb)
    return _write(
        trimesh.Trimesh(_upright(fine.vertices, glb, up), fine.faces, vertex_colors=rgba, process=False), path
    )


def show_window(
    attention: AttentionMap,
    points: Any,
    path: str | Path = "attention.ply",
    head: int = 0,
    query: int = 0,
    *,
    camera: Camera | None = None,
    colors: str | None = None,
) -> str:
    """Open an Open3D window with one cloud [n, 3], coloured by one head and query, and wait until it is closed.

    If no window can be opened, the coloured cloud is written to `path` (.ply or .glb) instead.

    Args:
        attention, points, camera, colors: see `draw_maps`.
        path: path of the file that is written if no window can be opened.
        head: index of the head.
        query: index of the inducing point, seed or point.

    Returns:
        A message that says what was done.

    Raises:
        PointsetError: see `export_cloud`; or the extra open3d is not installed.

    Example:
        >>> print(pointset.viz.show_window(pools, points, "pools.ply"))  # doctest: +SKIP
    """
    camera, cloud = camera or Camera(), as_cloud(points)
    values, rows = _values(attention, cloud, head, query), point_rows(attention, cloud)
    has_display = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    title = f"{attention.layer}, head {head}, {rows.row_name} {query}"
    if has_display and _show(cloud, colors_of(scale_for(values, colors), values), camera, title):
        return "the window was closed"
    written = export_cloud(attention, points, path, head, query, up=camera.up, colors=colors)
    return f"cannot open a window: wrote {written}, which MeshLab or Blender can open"


def _show(cloud: NDArray[np.float64], rgb: NDArray[np.float64], camera: Camera, title: str) -> bool:
    """Show the cloud until the user closes the window; return False if no window could be opened."""
    open3d = import_open3d()
    coloured = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(cloud))
    coloured.colors = open3d.utility.Vector3dVector(rgb)
    visualizer = open3d.visualization.Visualizer()
    # False on a display without OpenGL, such as some remote desktops.
    if not visualizer.create_window(title, 900, 900):
        return False
    visualizer.add_geometry(coloured)
    visualizer.get_render_option().point_size = 6.0
    _, upward, front = camera.axes() if camera.up == "z" else z_to_y(camera.axes())
    view = visualizer.get_view_control()
    view.set_front(front)
    view.set_up(upward)
    view.set_zoom(0.6)
    visualizer.run()
    visualizer.destroy_window()
    return True


def carry_to_vertices(
    cloud: NDArray[np.float64], values: NDArray[np.float64], vertices: NDArray[np.float64], nearest: int = 3
) -> NDArray[np.float64]:
    """Interpolate values [n] at points [n, 3] to vertices [V, 3]: a mean over the nearest points (Shepard 1968).

    v(x) = sum_i w_i v_i / sum_i w_i, w_i = 1 / |x - p_i|. A vertex that is a point gets the value of that point.
    """
    distances, indices = KDTree(cloud).query(vertices, k=np.arange(1, min(nearest, len(cloud)) + 1))
    # Avoids a division by 0 where a vertex is a point; far smaller than the distances between points.
    least = 1e-9 * float(np.ptp(cloud, axis=0).max() or 1.0)
    weights = 1 / np.maximum(distances, least)
    return (weights * values[indices]).sum(axis=1) / weights.sum(axis=1)


def refined(mesh: Mesh, points: NDArray[np.float64]) -> Mesh:
    """Subdivide the mesh until its edges are about as long as the distance between points, up to `MOST_FACES` faces."""
    corners = mesh.vertices[mesh.faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = float(np.linalg.norm(normals, axis=1).sum()) / 2
    if not area > 0:
        return mesh
    # Subdivision to edges of length e gives about 4 area / e^2 faces, plus those that were already smaller.
    room = max(MOST_FACES - len(mesh.faces), 1)
    edge = max(np.sqrt(area / len(points)), np.sqrt(8 * area / room))
    vertices, faces = subdivide_to_size(mesh.vertices, mesh.faces, max_edge=float(edge), max_iter=30)
    return Mesh(vertices, faces)


def require_on_surface(points: NDArray[np.float64], fine: Mesh) -> None:
    """Raise a PointsetError if more than one point in 20 is off the mesh, for example because they were normalised.

    The test uses that the distance of a point in a triangle from the nearest corner is at most the longest edge.
    """
    edges = np.linalg.norm(np.diff(fine.vertices[fine.faces[:, [0, 1, 2, 0]]], axis=1), axis=2)
    distances, _ = KDTree(fine.vertices).query(points)
    off = int((distances > 1.001 * edges.max()).sum())
    if off > len(points) / 20:
        size, own = (np.array2string(np.ptp(corners, axis=0), precision=3) for corners in (fine.vertices, points))
        raise PointsetError(
            f"{off} of {len(points)} points lie off the mesh, which has the size {size} (the points: {own}): "
            "give the points as sampled, before normalisation"
        )


def _write(content: Any, path: Path) -> Path:
    suffix = path.suffix[1:].lower()
    return write_for_user(path, lambda temporary: temporary.write_bytes(content.export(file_type=suffix)))


def _values(attention: AttentionMap, cloud: NDArray[np.float64], head: int, query: int) -> NDArray[np.float64]:
    rows = point_rows(attention, cloud)
    rows.check(head, query)
    return rows.values[head, query]


def _upright(points: NDArray[np.float64], glb: bool, up: Up) -> NDArray[np.float64]:
    """Points [n, 3] with y up for glTF (section 3.4 of its specification), unchanged for PLY."""
    return z_to_y(points) if glb and up == "z" else points


def _rgba(values: NDArray[np.float64], scale: Scale, glb: bool) -> NDArray[np.uint8]:
    rgb = colors_of(scale, values)
    if glb:
        # Vertex colours of glTF are linear (section 3.7.2.1): invert the sRGB transfer function (IEC 61966-2-1).
        rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.round(np.c_[rgb, np.ones(len(rgb))] * 255).astype(np.uint8)
