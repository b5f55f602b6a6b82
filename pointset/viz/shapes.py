"""Pictures of clouds coloured by height, with names, or as tiles without text for pages that have captions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.camera import Camera, Up, to_unit
from pointset.viz.color import CountScale, Scale, colors_of, scale_for
from pointset.viz.grid import Frame, Grid, Line, Panel, draw_cloud
from pointset.viz.rows import as_cloud
from pointset.viz.sheet import Sheet

if TYPE_CHECKING:
    from pointset.viz.sheet import Picture

WIDTH = 8.6
SIDE, FILLED = 1.3, 0.88
"""The side of a tile in inches, and the fraction of it that the cloud fills."""


@dataclass(frozen=True)
class HeightScale(Scale):
    """A scale for heights from 0 to 1, which make the shape easier to see."""

    name: str = "cividis"

    def positions(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The heights, without the palest colours."""
        return 0.85 * values

    def emphasis(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same emphasis for all points."""
        return np.full(values.shape, 0.4)


def draw_clouds(
    clouds: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    camera: Camera | None = None,
    title: str = "",
    columns: int = 5,
) -> Picture:
    """Draw clouds side by side, coloured by height, each scaled to its panel.

    Args:
        clouds: clouds [n_i, 3].
        names: one name per cloud, drawn above it.
        camera: the camera of all panels.
        title: title of the picture.
        columns: maximum number of clouds in a line.

    Raises:
        PointsetError: there is no cloud, one is empty or not [n, 3], or there is not one name per cloud.

    Example:
        >>> pointset.viz.save(pointset.viz.draw_clouds(test.points[:2], names=["flat", "round"]), "clouds.png").name
        'clouds.png'
    """
    if not len(clouds) or len(names or clouds) != len(clouds):
        raise PointsetError(f"give at least one cloud and one name each, got {len(clouds)} and {len(names or ())}")
    if columns < 1:
        raise PointsetError(f"columns must be at least 1, got {columns}")
    camera = camera or Camera()
    shapes = [to_unit(as_cloud(cloud), "z") for cloud in clouds]  # not rotated here: the camera has the upward axis
    up = {"y": 1, "z": 2}[camera.up]
    panels = [
        Panel(cloud, _heights(cloud, up), HeightScale(), name)
        for cloud, name in zip(shapes, names or [""] * len(shapes), strict=True)
    ]
    lines = [Line("", panels[i : i + columns]) for i in range(0, len(panels), columns)]
    note = f"{len(shapes[0])} points each" if len({len(cloud) for cloud in shapes}) == 1 else ""
    return Grid(lines, Frame.around(shapes, camera), camera, WIDTH).draw(title, note, below=0.1).picture


def count_scale(counts: Sequence[NDArray[np.float64]]) -> CountScale:
    """The scale for counts at the points of several clouds; about 1 positive count in 100 is above its top."""
    positive = np.concatenate([*counts])
    positive = positive[positive > 0]
    return CountScale(max(1, int(np.quantile(positive, 0.99))) if len(positive) else 1)


def attention_scale(values: Sequence[NDArray[np.float64]]) -> Scale:
    """The scale for attention (1 is uniform) at the points of several clouds."""
    return scale_for(np.concatenate([*values]))


def draw_tile(clouds: Sequence[NDArray[np.float64]], up: Up = "z") -> Picture:
    """Clouds [n_i, 3] side by side, coloured by height."""
    shapes = [to_unit(as_cloud(cloud), up) for cloud in clouds]
    return _tiles([(shape, _heights(shape), HeightScale()) for shape in shapes])


def draw_looked_at(cloud: NDArray[np.float64], values: NDArray[np.float64], scale: Scale, up: Up = "z") -> Picture:
    """A cloud [n, 3] twice: coloured by height, and by values [n] on a scale."""
    shape = to_unit(as_cloud(cloud), up)
    return _tiles([(shape, _heights(shape), HeightScale()), (shape, values, scale)])


def _heights(shape: NDArray[np.float64], up: int = 2) -> NDArray[np.float64]:
    return (shape[:, up] - shape[:, up].min()) / max(float(np.ptp(shape[:, up])), 1e-12)


def _tiles(drawn: Sequence[tuple[NDArray[np.float64], NDArray[np.float64], Scale]]) -> Picture:
    camera, sheet = Camera(), Sheet(SIDE * len(drawn), SIDE)
    for column, (cloud, values, scale) in enumerate(drawn):
        frame = Frame.around([cloud], camera)
        height = min(1.0, frame.aspect) * FILLED * SIDE
        width = height / frame.aspect
        axes = sheet.axes(column * SIDE + (SIDE - width) / 2, (SIDE - height) / 2, width, height)
        emphasis = scale.emphasis(values)
        draw_cloud(axes, cloud, colors_of(scale, values), camera, frame, emphasis, width, hollow=scale.absent(values))
    return sheet.picture
