"""Shows one coloured cloud in an Open3D window."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pointset.data.open3d_import import import_open3d
from pointset.explain.maps import AttentionMap
from pointset.viz.camera import Camera, z_to_y
from pointset.viz.color import colors_of, scale_for
from pointset.viz.export import export_cloud
from pointset.viz.rows import as_cloud, point_rows


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
        PointsetError: see `export_cloud`; or Open3D is not installed.

    Example:
        >>> points = test.points[0]
        >>> maps = pointset.attention_maps(model, points)
        >>> pools = pointset.find_map(maps, kind="pools")
        >>> print(pointset.viz.show_window(pools, points, "pools.ply"))  # doctest: +SKIP
    """
    camera = camera or Camera()
    if not has_display() or not _window(attention, points, head, query, camera, colors):
        written = export_cloud(attention, points, path, head, query, up=camera.up, colors=colors)
        return f"cannot open a window: wrote {written}, which MeshLab or Blender can open"
    return "the window was closed"


def has_display() -> bool:
    """True if this process can probably open a window."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _window(attention: AttentionMap, points: Any, head: int, query: int, camera: Camera, colors: str | None) -> bool:
    """Show the cloud until the user closes the window; return False if no window could be opened."""
    cloud = as_cloud(points)
    rows = point_rows(attention, cloud)
    rows.check(head, query)
    values = rows.values[head, query]
    open3d = import_open3d()
    shown = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(cloud))
    shown.colors = open3d.utility.Vector3dVector(colors_of(scale_for(values, colors), values))
    visualizer = open3d.visualization.Visualizer()
    # False on a display without OpenGL, such as some remote desktops.
    if not visualizer.create_window(f"{attention.layer}, head {head}, {rows.row_name} {query}", 900, 900):
        return False
    visualizer.add_geometry(shown)
    visualizer.get_render_option().point_size = 6.0
    _, upward, front = camera.axes() if camera.up == "z" else z_to_y(camera.axes())
    view = visualizer.get_view_control()
    view.set_front(front)
    view.set_up(upward)
    view.set_zoom(0.6)
    visualizer.run()
    visualizer.destroy_window()
    return True
