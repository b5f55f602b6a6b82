"""Small multiples: clouds in panels of equal size in labelled lines, with one camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pointset.viz.camera import Camera
from pointset.viz.color import HOLLOW, Scale, colors_of, luma
from pointset.viz.sheet import FAINT, MARGIN, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAP, HEADER, TOP = 0.06, 0.17, 0.68
LARGEST_PANEL = 4.9
MARK = "#0B8CF2"
"""The colour of the ring: a blue that no scale contains."""
EMPTY = 0.72
"""The grey level of hollow points."""


@dataclass(frozen=True)
class Frame:
    """The rectangle of the picture plane that every panel of a figure shows, in radii of the cloud."""

    middle: tuple[float, float]
    half: tuple[float, float]

    @staticmethod
    def around(clouds: Sequence[NDArray[np.float64]], camera: Camera) -> Frame:
        """The smallest frame that contains all clouds, with a margin and a limited aspect ratio."""
        flat = np.concatenate([camera.project(cloud)[0] for cloud in clouds])
        low, high = flat.min(axis=0), flat.max(axis=0)
        width, height = np.maximum(high - low, 0.1) / 2 * 1.08
        width, height = max(width, height / 1.6), max(height, width / 1.8)
        return Frame(((low[0] + high[0]) / 2, (low[1] + high[1]) / 2), (float(width), float(height)))

    @property
    def aspect(self) -> float:
        """Height over width."""
        return self.half[1] / self.half[0]


@dataclass(frozen=True, eq=False)
class Panel:
    """One cloud coloured by one row of values."""

    cloud: NDArray[np.float64]
    values: NDArray[np.float64]
    scale: Scale
    name: str = ""
    note: str = ""
    marked: int | None = None
    """Index of a point to mark with a ring: the query, if queries are points."""


@dataclass(frozen=True)
class Line:
    """Panels side by side, with a label and a note at their left."""

    label: str
    panels: Sequence[Panel]
    note: str = ""


class Grid:
    """The layout of panels, in inches from the top left corner of a sheet; `bottom` is that of the lowest panel."""

    def __init__(self, lines: Sequence[Line], frame: Frame, camera: Camera, width: float) -> None:
        self.lines, self.frame, self.camera, self.width = lines, frame, camera, width
        columns = max(len(line.panels) for line in lines)
        labels = 0.62 if any(line.label for line in lines) else MARGIN
        free = width - labels - MARGIN
        largest = LARGEST_PANEL if columns == 1 else 3.0
        self.panel_width = min(free / columns - GAP, largest, LARGEST_PANEL / frame.aspect)
        self.panel_height = self.panel_width * frame.aspect
        unused = free - columns * (self.panel_width + GAP)
        self.left = labels + (unused / 2 if labels == MARGIN else 0.0)  # panels without labels are centred
        self.bottom = self.corner(len(lines), 0)[1]

    def corner(self, line: int, column: int) -> tuple[float, float]:
        """The top left corner of a panel, including its header."""
        height = self.panel_height + HEADER + GAP
        return self.left + column * (self.panel_width + GAP), TOP + line * height

    def draw(self, title: str, note: str, below: float) -> Sheet:
        """Draw title, note and panels on a new sheet, with `below` inches of free space under them."""
        sheet = Sheet(self.width, self.bottom + below)
        hollow = any(panel.scale.absent(panel.values).any() for line in self.lines for panel in line.panels)
        sheet.heading(title, note + (f"; {HOLLOW}" if hollow else ""))
        for i, line in enumerate(self.lines):
            sheet.text(MARGIN, self.corner(i, 0)[1], line.label, 8, weight="bold")
            sheet.text(MARGIN, self.corner(i, 0)[1] + 0.17, line.note, 6.5, color=FAINT)
            for j, panel in enumerate(line.panels):
                self._draw_panel(sheet, *self.corner(i, j), panel)
        return sheet

    def _draw_panel(self, sheet: Sheet, left: float, top: float, panel: Panel) -> None:
        sheet.text(left + 0.03, top, panel.name, 7.5, width=self.panel_width - 0.06)
        sheet.text(left + self.panel_width - 0.03, top + 0.01, panel.note, 6.5, ha="right", color=FAINT)
        axes = sheet.axes(left, top + HEADER, self.panel_width, self.panel_height)
        colors, emphasis = colors_of(panel.scale, panel.values), panel.scale.emphasis(panel.values)
        hollow = panel.scale.absent(panel.values)
        draw_cloud(axes, panel.cloud, colors, self.camera, self.frame, emphasis, self.panel_width, panel.marked, hollow)


def draw_cloud(
    axes: Axes,
    points: NDArray[np.float64],
    colors: NDArray[np.float64],
    camera: Camera,
    frame: Frame,
    emphasis: NDArray[np.float64],
    width: float,
    marked: int | None = None,
    hollow: NDArray[np.bool_] | None = None,
) -> None:
    """Draw coloured points with equal axes: near points are larger and over distant ones.

    Args:
        axes: axes to draw on; ticks and spines are removed.
        points: [n, 3].
        colors: RGB [n, 3].
        camera: the camera.
        frame: the part of the picture plane that the axes show.
        emphasis: [n], from 0 to 1. Points above 0.5 are drawn over all others, so that nothing in front hides them;
            within both groups, near points are drawn last. The size of a point grows with its emphasis and nearness.
        width: width of the axes, in inches.
        marked: index of a point to mark with a ring.
        hollow: [n], True at points that are drawn as thin grey rings, below all others.
    """
    flat, nearness = camera.project(points)
    hollow = np.zeros(len(points), bool) if hollow is None else hollow
    order = np.lexsort((nearness, emphasis > 0.5, ~hollow))
    # The area of a dot is a fixed share of the panel per point, so that any number of dots covers the shape.
    diameter = 72 * width * 0.6 / np.sqrt(len(points))
    diameters = np.clip(diameter, 0.9, 6.0) * nearness * (0.75 + 0.6 * emphasis)
    # Distant points fade into the background, but only if they are pale.
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
        clip_on=False,  # the frame contains all points, but dots at its edge are larger
    )
    if marked is not None:
        ring = (float(diameters[marked]) + 4) ** 2
        x, y = flat[marked]
        axes.scatter(x, y, s=ring, facecolors="none", edgecolors=MARK, linewidths=1.3, rasterized=True, clip_on=False)
    (middle, height), (across, up) = frame.middle, frame.half
    axes.set(xlim=(middle - across, middle + across), ylim=(height - up, height + up), aspect="equal")
    axes.set_axis_off()
