"""Pictures of several clouds: panels of equal size in labelled lines, all with the same camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.camera import Camera, Up, camera_of, to_unit
from pointset.viz.charts import LETTER, WIDTH, Picture, make_panels, plain_label, shorten
from pointset.viz.color import FAINT, HOLLOW, Scale, height_scale, luma
from pointset.viz.rows import clouds_of

HEADER, BAR = 0.24, 0.25
"""Space in inches above each panel for the panel's name, and below the panels for a colour bar."""
LABEL = 0.2
"""Space in inches to the left of the panels for the label of a line."""
LARGEST, NARROWEST = 3.0, 4.5
"""Maximum width of one of several panels, and minimum width of a picture, in inches."""
RING_COLOR = "#0B8CF2"
"""Colour of the ring around the query point: a blue that no attention scale contains."""
EMPTY = 0.72
"""Grey level of hollow points."""


@dataclass(frozen=True, eq=False)
class Panel:
    """One cloud, coloured by one value per point."""

    cloud: NDArray[np.float64]
    values: NDArray[np.float64]
    scale: Scale
    name: str = ""
    note: str = ""
    marked: int | None = None
    """Index of the query point of a map of kind "self", which is marked with a ring."""


@dataclass(frozen=True)
class Line:
    """Panels side by side, with a label at the left."""

    label: str
    panels: Sequence[Panel]


def frame_of(clouds: Sequence[NDArray[np.float64]], camera: Camera) -> tuple[NDArray[np.float64], float]:
    """Return the limits [2, 2] of axes on which all clouds fit with a margin, and the ratio of height to width."""
    flat = np.concatenate([camera.project(cloud)[0] for cloud in clouds])
    low, high = flat.min(axis=0), flat.max(axis=0)
    width, height = np.maximum(high - low, 0.1) / 2 * 1.08
    half = np.array([max(width, height / 1.6), max(height, width / 1.8)])
    return (low + high) / 2 + np.array([-half, half]), float(half[1] / half[0])


def draw_lines(lines: Sequence[Line], camera: Camera, title: str, note: str, total: float | None = None) -> Picture:
    """Return a picture of panels of equal size with a title and a note. Its axes are the panels, line by line.

    `total` is the width of the picture in inches. None means the width that the panels need.
    """
    panels = [panel for line in lines for panel in line.panels]
    corners, aspect = frame_of([panel.cloud for panel in panels], camera)
    columns = max(len(line.panels) for line in lines)
    largest = LARGEST if columns > 1 else 1.5 * LARGEST
    beside = LABEL if any(line.label for line in lines) else 0.0
    width = min(WIDTH / columns, largest, 1.5 * LARGEST / aspect) if total is None else (total - beside) / columns
    header = HEADER if total is None or any(panel.name or panel.note for panel in panels) else 0.04
    if note and any(panel.scale.rings(panel.values).any() for panel in panels):
        note += f"; {HOLLOW}"
    picture, every = make_panels(
        len(lines) * columns,
        columns,
        width * aspect + header,
        width=total or max(width * columns, NARROWEST),
        title=title,
        note=note,
        spare=0.5 if title or note else 0.12,
    )
    for axes in every:
        axes.set_axis_off()
    style: dict[str, Any] = {"rotation": 90, "ha": "right", "va": "center", "fontsize": 7.5}
    for number, line in enumerate(lines):
        row = every[number * columns : (number + 1) * columns]
        row[0].text(-0.03, 0.5, line.label, transform=row[0].transAxes, **style)
        for axes, panel in zip(row, line.panels, strict=False):
            draw_panel(axes, panel, camera, corners, width)
            name = shorten(panel.name, 0.92 * width - 6 * LETTER * len(panel.note), 7.5)
            axes.set_title(plain_label(name), loc="left", y=1.0, fontsize=7.5, pad=2)  # with y, ticks are not measured
            axes.set_title(panel.note, loc="right", y=1.0, fontsize=6.5, color=FAINT, pad=2)
    return picture


def add_bar(picture: Picture, axes: Sequence[Axes], scale: Scale, label: str) -> None:
    """Add a colour bar with a label below some panels."""
    picture.set_figheight(picture.get_figheight() + BAR)
    colors = ScalarMappable(cmap=ListedColormap(scale.colors))
    bar = picture.colorbar(colors, ax=list(axes), location="bottom", shrink=0.6, aspect=40, pad=0.02, label=label)
    bar.set_ticks([place for place, _ in scale.ticks], labels=[label for _, label in scale.ticks], fontsize=7)
    bar.ax.xaxis.label.set(fontsize=7.5, color=FAINT)
    bar.outline.set_visible(False)


def draw_panel(axes: Axes, panel: Panel, camera: Camera, corners: NDArray[np.float64], width: float) -> None:
    """Draw the points of a panel on axes `width` inches wide, with equal scales. Near points are larger.

    Points with an emphasis above 0.5 are drawn last, so that no other points hide them, and hollow points are drawn
    first. Within each of these groups, near points are drawn after distant ones.
    """
    flat, nearness = camera.project(panel.cloud)
    colors, emphasis = panel.scale.colors_of(panel.values), panel.scale.emphasis(panel.values)
    hollow = panel.scale.rings(panel.values)
    order = np.lexsort((nearness, emphasis > 0.5, ~hollow))
    # The area of a dot is inverse to the number of points, so that any number of dots covers the shape.
    diameter = 72 * width * 0.6 / np.sqrt(len(flat))
    diameters = np.clip(diameter, 0.9, 6.0) * nearness * (0.75 + 0.6 * emphasis)
    # Distant points fade into the background if they are pale.
    pale = np.clip((luma(colors) - 0.55) / 0.2, 0, 1)
    fade = np.clip(0.25 - 1.4 * (nearness - 1), 0, 0.4) * np.clip(1 - 2 * emphasis, 0, 1) * pale
    colors = colors + fade[:, None] * (1 - colors)
    edges = np.where(hollow[:, None], EMPTY, colors)
    faces = np.column_stack([np.where(hollow[:, None], 1.0, colors), ~hollow])
    axes.scatter(
        flat[order, 0],
        flat[order, 1],
        s=diameters[order] ** 2,
        c=faces[order],
        edgecolors=edges[order].tolist(),
        linewidths=np.where(hollow[order], 0.4, 0.0).tolist(),
        rasterized=True,
        clip_on=False,  # the frame contains all points, but dots at the edge reach out
    )
    if panel.marked is not None:
        ring = (float(diameters[panel.marked]) + 4) ** 2
        x, y = flat[panel.marked]
        axes.scatter(
            x, y, s=ring, facecolors="none", edgecolors=RING_COLOR, linewidths=1.3, rasterized=True, clip_on=False
        )
    axes.set(xlim=corners[:, 0], ylim=corners[:, 1], aspect="equal")
    axes.set_axis_off()


def draw_clouds(
    clouds: Any,
    *,
    names: Sequence[str] | None = None,
    up: Up | None = None,
    camera: Camera | None = None,
    title: str = "",
    columns: int = 5,
) -> Picture:
    """Draw clouds side by side. Points are coloured by height, and each cloud is scaled to its panel.

    Args:
        clouds: any input of `model.predict`: clouds [n_i, 3], files or meshes (1,024 points of each file or mesh are
            drawn), or `PointSets`.
        names: one name per cloud, drawn above it.
        up: the upward axis of the points. None means the axis of the camera.
        camera: the camera of all panels.
        title: title of the picture.
        columns: maximum number of clouds in a line.

    Raises:
        PointsetError: there is no cloud, a cloud is empty, a cloud is not [n, 3], or the numbers of names and clouds
            differ.
    """
    if columns < 1:
        raise PointsetError(f"columns must be at least 1, got {columns}")
    camera = camera_of(camera, up, "z")
    shapes = [to_unit(cloud, "z") for cloud in clouds_of(clouds, camera.up)]  # "z": no rotation before the camera
    if not shapes or len(names or shapes) != len(shapes):
        counts = f"got {len(shapes)} clouds and {len(names or ())} names"
        raise PointsetError(f"give at least one cloud, and one name each: {counts}")
    height = "xyz".index(camera.up)
    panels = [
        Panel(cloud, _heights(cloud, height), height_scale(), name)
        for cloud, name in zip(shapes, names or [""] * len(shapes), strict=True)
    ]
    lines = [Line("", panels[i : i + columns]) for i in range(0, len(panels), columns)]
    note = f"{len(shapes[0])} points each" if len({len(cloud) for cloud in shapes}) == 1 else ""
    return draw_lines(lines, camera, title, note)


def _heights(shape: NDArray[np.float64], up: int = 2) -> NDArray[np.float64]:
    return (shape[:, up] - shape[:, up].min()) / max(float(np.ptp(shape[:, up])), 1e-12)
