"""The solids of which all objects of shapes10 consist: boards, rods, solids of revolution and bent tubes.

Lengths are in metres, and z is up. A solid is a trimesh; an object is a list of solids, joined only at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from trimesh import Trimesh

SECTIONS = 20
"""Corners of a round cross-section, enough to look round at 1,000 points."""


def board(width: float, depth: float, height: float, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Trimesh:
    """A box centred at x, y with its underside at z."""
    from trimesh.creation import box

    solid = box((width, depth, height))
    solid.apply_translation((x, y, z + height / 2))
    return solid


def rod(start: ArrayLike, end: ArrayLike, radius: float, square: bool = False) -> Trimesh:
    """A bar from one point to another, round or square."""
    from trimesh.creation import cylinder

    return cylinder(radius, segment=(np.asarray(start, float), np.asarray(end, float)), sections=4 if square else 10)


def turned(profile: Sequence[tuple[float, float]], x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Trimesh:
    """A solid of revolution about the vertical axis through x, y; the profile has pairs (radius, height above z)."""
    from trimesh.creation import revolve

    solid = revolve(np.asarray(profile, float), sections=SECTIONS)
    solid.apply_translation((x, y, z))
    return solid


def disc(radius: float, height: float, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Trimesh:
    """A flat cylinder with its underside at z."""
    return turned([(0.0, 0.0), (radius, 0.0), (radius, height), (0.0, height)], x, y, z)


def tube(path: ArrayLike, radius: float) -> list[Trimesh]:
    """A bent round bar through the points [k, 3]."""
    points = np.asarray(path, float)
    return [rod(start, end, radius) for start, end in itertools.pairwise(points)]


def arc(
    centre: ArrayLike, out: float, up: float, start: float = -90.0, end: float = 90.0, pieces: int = 7
) -> np.ndarray:
    """Points [pieces + 1, 3] on a vertical half ellipse that extends along x, for a handle."""
    angles = np.radians(np.linspace(start, end, pieces + 1))
    return np.asarray(centre, float) + np.stack([out * np.cos(angles), 0 * angles, up * np.sin(angles)], axis=1)
