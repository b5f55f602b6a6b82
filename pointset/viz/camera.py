"""A turntable camera with a mild perspective projection and equal scales on all axes.

Matplotlib's Axes3D is not used: it stretches axes, and sorts whole collections by depth instead of single points.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check
from pointset.data.axes import UP_TO_Z
from pointset.errors import PointsetError

Up = Literal["x", "y", "z"]


@dataclass(frozen=True)
class Camera:
    """The position of the camera, which looks at the middle of the cloud."""

    azimuth: float = -50.0
    """Azimuth in degrees around the upward axis. At 0, the camera is on the positive x axis."""
    elevation: float = 22.0
    """Elevation in degrees, between -90 and 90."""
    up: Up = "z"
    """The upward axis of the points: "z" in ModelNet's OFF files, "y" in ModelNet40's HDF5 files."""
    distance: float = 4.0
    """Distance from the middle of the cloud, in radii of the cloud. A smaller distance gives stronger perspective."""

    def __post_init__(self) -> None:
        check("up", self.up, Up)
        for name in ("azimuth", "elevation", "distance"):
            check(name, getattr(self, name), float)
        if not -90 <= self.elevation <= 90:
            raise PointsetError(f"elevation must be in [-90, 90] degrees, got {self.elevation}")
        if not self.distance >= 1.5:
            raise PointsetError(f"distance must be at least 1.5 radii of the cloud, got {self.distance}")

    def project(self, points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Project points [n, 3].

        Returns:
            Positions in the picture [n, 2], in radii of the cloud, and nearness [n], the magnification relative to the
            middle of the cloud.
        """
        local = to_unit(points, self.up) @ self.axes().T
        nearness = self.distance / (self.distance - local[:, 2])
        return local[:, :2] * nearness[:, None], nearness

    def axes(self) -> NDArray[np.float64]:
        """Return the directions right, up and towards the viewer, as rows [3, 3], for points with z up."""
        azimuth, elevation = math.radians(self.azimuth), math.radians(self.elevation)
        sin_a, cos_a, sin_e, cos_e = math.sin(azimuth), math.cos(azimuth), math.sin(elevation), math.cos(elevation)
        return np.array(
            [[-sin_a, cos_a, 0.0], [-sin_e * cos_a, -sin_e * sin_a, cos_e], [cos_e * cos_a, cos_e * sin_a, sin_e]]
        )


def camera_of(camera: Camera | None, up: Up | None, default: Up) -> Camera:
    """Return the camera (None: the default view with upward axis `default`), with the axis `up` if it is not None."""
    camera = camera or Camera(up=default)
    return camera if up is None else dataclasses.replace(camera, up=up)


def to_unit(points: NDArray[np.float64], up: Up) -> NDArray[np.float64]:
    """Rotate the up axis to z, centre the bounding box at 0, and scale so that the farthest point has radius 1."""
    upright = points @ np.array(UP_TO_Z[up]).T
    centred = upright - (upright.min(axis=0) + upright.max(axis=0)) / 2
    scaled = np.ldexp(centred, -np.frexp(np.abs(centred).max())[1])  # so squares neither overflow nor underflow
    return scaled / (float(np.linalg.norm(scaled, axis=1).max()) or 1.0)
