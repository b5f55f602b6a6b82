"""Small pictures of one cloud without text, for pages that have captions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pointset.viz.camera import Camera, Up, to_unit
from pointset.viz.color import CountScale, Scale, colors_of, scale_for
from pointset.viz.rows import as_cloud
from pointset.viz.scatter import draw_cloud, frame_for
from pointset.viz.shapes import HeightScale
from pointset.viz.sheet import Sheet

if TYPE_CHECKING:
    from pointset.viz.sheet import Picture

SIDE, FILLED = 1.3, 0.88
"""The side of a panel in inches, and the fraction of it that the cloud fills."""
HEIGHTS = HeightScale()


def count_scale(counts: Sequence[NDArray[np.float64]]) -> CountScale:
    """The scale for counts at the points of several clouds; about 1 positive count in 100 is above its top."""
    every = np.concatenate([*counts])
    counted = every[every > 0]
    return CountScale(max(1, int(np.quantile(counted, 0.99))) if len(counted) else 1)


def attention_scale(values: Sequence[NDArray[np.float64]]) -> Scale:
    """The scale for attention (1 is uniform) at the points of several clouds."""
    return scale_for(np.concatenate([*values]))


def draw_tile(clouds: Sequence[NDArray[np.float64]], up: Up = "z") -> Picture:
    """Clouds [n_i, 3] side by side, coloured by height."""
    shapes = [to_unit(as_cloud(cloud), up) for cloud in clouds]
    heights = [(shape[:, 2] - shape[:, 2].min()) / max(float(np.ptp(shape[:, 2])), 1e-12) for shape in shapes]
    return _panels([(shape, values, HEIGHTS) for shape, values in zip(shapes, heights, strict=True)])


def draw_looked_at(cloud: NDArray[np.float64], values: NDArray[np.float64], scale: Scale, up: Up = "z") -> Picture:
    """A cloud [n, 3] twice: coloured by height, and by values [n] on a scale."""
    shape = to_unit(as_cloud(cloud), up)
    heights = (shape[:, 2] - shape[:, 2].min()) / max(float(np.ptp(shape[:, 2])), 1e-12)
    return _panels([(shape, heights, HEIGHTS), (shape, values, scale)])


def _panels(drawn: Sequence[tuple[NDArray[np.float64], NDArray[np.float64], Scale]]) -> Picture:
    camera, sheet = Camera(), Sheet(SIDE * len(drawn), SIDE)
    for place, (cloud, values, scale) in enumerate(drawn):
        frame = frame_for([cloud], camera)
        height = min(1.0, frame.aspect) * FILLED * SIDE
        width = height / frame.aspect
        axes = sheet.axes(place * SIDE + (SIDE - width) / 2, (SIDE - height) / 2, width, height)
        emphasis = scale.emphasis(values)
        draw_cloud(axes, cloud, colors_of(scale, values), camera, frame, emphasis, width, hollow=scale.absent(values))
    return sheet.picture
