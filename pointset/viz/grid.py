"""Small multiples: panels of equal size in labelled lines, with one camera."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pointset.viz.camera import Camera
from pointset.viz.color import HOLLOW, Scale, colors_of
from pointset.viz.scatter import Frame, draw_cloud
from pointset.viz.sheet import FAINT, MARGIN, Sheet

GAP, HEADER, TOP = 0.06, 0.17, 0.68
LARGEST_PANEL = 4.9


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


@dataclass(frozen=True)
class Grid:
    """The layout of panels, in inches from the top left corner of a sheet."""

    lines: Sequence[Line]
    frame: Frame
    camera: Camera
    width: float

    @property
    def columns(self) -> int:
        """The number of panels in the longest line."""
        return max(len(line.panels) for line in self.lines)

    @property
    def label_width(self) -> float:
        """The width of the labels on the left."""
        return 0.62 if any(line.label for line in self.lines) else MARGIN

    @property
    def panel_width(self) -> float:
        """The width of a panel, limited if there are few panels."""
        free = (self.width - self.label_width - MARGIN) / self.columns - GAP
        return min(free, LARGEST_PANEL if self.columns == 1 else 3.0, LARGEST_PANEL / self.frame.aspect)

    @property
    def left(self) -> float:
        """The left edge of the first column; panels without labels are centred."""
        unused = self.width - self.label_width - MARGIN - self.columns * (self.panel_width + GAP)
        return self.label_width + (unused / 2 if self.label_width == MARGIN else 0.0)

    @property
    def panel_height(self) -> float:
        """The height of a panel without its header."""
        return self.panel_width * self.frame.aspect

    def place(self, line: int, column: int) -> tuple[float, float]:
        """The top left corner of a panel, including its header."""
        return (
            self.left + column * (self.panel_width + GAP),
            TOP + line * (self.panel_height + HEADER + GAP),
        )

    @property
    def bottom(self) -> float:
        """The bottom edge of the lowest panel."""
        return self.place(len(self.lines), 0)[1]

    def draw(self, title: str, note: str, below: float) -> Sheet:
        """Draw title, note and panels on a new sheet, with `below` inches of free space under them."""
        sheet = Sheet(self.width, self.bottom + below)
        sheet.heading(title, note + (f"; {HOLLOW}" if self._has_hollow_points else ""))
        for i, line in enumerate(self.lines):
            sheet.text(MARGIN, self.place(i, 0)[1], line.label, 8, weight="bold")
            sheet.text(MARGIN, self.place(i, 0)[1] + 0.17, line.note, 6.5, color=FAINT)
            for j, panel in enumerate(line.panels):
                self._draw_panel(sheet, i, j, panel)
        return sheet

    @property
    def _has_hollow_points(self) -> bool:
        return any(panel.scale.absent(panel.values).any() for line in self.lines for panel in line.panels)

    def _draw_panel(self, sheet: Sheet, line: int, column: int, panel: Panel) -> None:
        left, top = self.place(line, column)
        sheet.text(left + 0.03, top, panel.name, 7.5)
        sheet.text(left + self.panel_width - 0.03, top + 0.01, panel.note, 6.5, ha="right", color=FAINT)
        axes = sheet.axes(left, top + HEADER, self.panel_width, self.panel_height)
        colors, emphasis = colors_of(panel.scale, panel.values), panel.scale.emphasis(panel.values)
        hollow = panel.scale.absent(panel.values)
        draw_cloud(axes, panel.cloud, colors, self.camera, self.frame, emphasis, self.panel_width, panel.marked, hollow)
