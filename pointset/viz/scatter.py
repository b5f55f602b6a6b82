"""Draws one cloud with equal axes: near points are larger and over distant ones, attended points over all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pointset.viz.camera import Camera

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK = "#0B8CF2"
"""The colour of the ring: a blue that no scale contains."""
EMPTY = 0.72
"""The grey level of hollow points."""


@dataclass(frozen=True)
class Frame:
    """The rectangle of the picture plane that every panel of a figure shows, in radii of the cloud."""

    middle: tuple[float, float]
    half: tuple[float, float]

    @property
    def aspect(self) -> float:
        """Height over width."""
        return self.half[1] / self.half[0]


def frame_for(clouds: Sequence[NDArray[np.float64]], camera: Camera) -> Frame:
    """The smallest frame that contains all clouds, with a margin and a limited aspect ratio."""
    places = np.concatenate([camera.project(cloud)[0] for cloud in clouds])
    low, high = places.min(axis=0), places.max(axis=0)
    width, height = np.maximum(high - low, 0.1) / 2 * 1.08
    width, height = max(width, height / 1.6), max(height, width / 1.8)
    return Frame(((low[0] + high[0]) / 2, (low[1] + high[1]) / 2), (float(width), float(height)))


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
    """Draw coloured points.

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
    places, nearness = camera.project(points)
    hollow = np.zeros(len(points), bool) if hollow is None else hollow
    order = np.lexsort((nearness, emphasis > 0.5, ~hollow))
    # The area of a dot is a fixed share of the panel per point, so that any number of dots covers the shape.
    diameter = 72 * width * 0.6 / np.sqrt(len(points))
    diameters = np.clip(diameter, 0.9, 6.0) * nearness * (0.75 + 0.6 * emphasis)
    # Distant points fade into the background, but only if they are pale.
    pale = np.clip((colors @ (0.2126, 0.7152, 0.0722) - 0.55) / 0.2, 0, 1)
    fade = np.clip(0.25 - 1.4 * (nearness - 1), 0, 0.4) * np.clip(1 - 2 * emphasis, 0, 1) * pale
    colors = colors + fade[:, None] * (1 - colors)
    edges = np.where(hollow[:, None], EMPTY, colors)
    faces = np.column_stack([np.where(hollow[:, None], 1.0, colors), ~hollow])
    axes.scatter(
        places[order, 0],
        places[order, 1],
        s=diameters[order] ** 2,
        c=faces[order],
        edgecolors=edges[order].tolist(),
        linewidths=np.where(hollow[order], 0.4, 0.0).tolist(),
        rasterized=True,
        clip_on=False,  # the frame contains all points, but dots at its edge are larger
    )
    if marked is not None:
        ring = (float(diameters[marked]) + 4) ** 2
        x, y = places[marked]
        axes.scatter(x, y, s=ring, facecolors="none", edgecolors=MARK, linewidths=1.3, rasterized=True, clip_on=False)
    axes.set_xlim(frame.middle[0] - frame.half[0], frame.middle[0] + frame.half[0])
    axes.set_ylim(frame.middle[1] - frame.half[1], frame.middle[1] + frame.half[1])
    axes.set_aspect("equal")
    axes.set_axis_off()
