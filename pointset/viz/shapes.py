"""Pictures of clouds without attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pointset.configuration import Count
from pointset.errors import PointsetError
from pointset.inputs import takes
from pointset.viz.camera import Camera, to_unit
from pointset.viz.color import Scale
from pointset.viz.grid import Grid, Line, Panel
from pointset.viz.rows import as_cloud
from pointset.viz.scatter import frame_for

if TYPE_CHECKING:
    from pointset.viz.sheet import Picture

MOST_COLUMNS = 5
WIDTH = 8.6


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

    def ticks(self) -> tuple[list[float], list[str]]:
        """No ticks, because there is no bar."""
        return [], []


@takes(
    clouds=Sequence | np.ndarray | Tensor,
    names=Sequence[str] | None,
    camera=Camera | None,
    title=str,
    columns=Count,
)
def draw_clouds(
    clouds: Sequence[Any],
    *,
    names: Sequence[str] | None = None,
    camera: Camera | None = None,
    title: str = "",
    columns: int = MOST_COLUMNS,
) -> Picture:
    """Draw clouds side by side, coloured by height, each scaled to its panel.

    Args:
        clouds: clouds [n_i, 3].
        names: one name per cloud, drawn above it.
        camera: the camera of all panels.
        title: title of the picture.
        columns: maximum number of clouds in a line.

    Returns:
        The picture, a matplotlib figure that a notebook shows.

    Raises:
        PointsetError: there is no cloud, one is empty or not [n, 3], or there is not one name per cloud.

    Example:
        >>> pointset.viz.save(pointset.viz.draw_clouds(test.points[:2], names=["flat", "round"]), "clouds.png").name
        'clouds.png'
    """
    if not len(clouds) or len(names or clouds) != len(clouds):
        raise PointsetError(f"give at least one cloud and one name each, got {len(clouds)} and {len(names or ())}")
    camera, scale = camera or Camera(), HeightScale()
    shapes = [to_unit(as_cloud(cloud), "z") for cloud in clouds]  # not rotated here: the camera has the upward axis
    up = {"y": 1, "z": 2}[camera.up]
    panels = [
        Panel(cloud, (cloud[:, up] - cloud[:, up].min()) / max(np.ptp(cloud[:, up]), 1e-12), scale, name)
        for cloud, name in zip(shapes, names or [""] * len(shapes), strict=True)
    ]
    lines = [Line("", panels[i : i + columns]) for i in range(0, len(panels), columns)]
    note = f"{len(shapes[0])} points each" if len({len(cloud) for cloud in shapes}) == 1 else ""
    return Grid(lines, frame_for(shapes, camera), camera, WIDTH).draw(title, note, below=0.1).picture
