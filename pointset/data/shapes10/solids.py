"""The solids from which all objects of shapes10 are built, and the supports of furniture.

Lengths are in metres, and z is up. A solid is a trimesh. An object is a list of solids, which are joined at the end.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

Solid = Any
"""A `trimesh.Trimesh`."""
SECTIONS = 20
"""Number of corners of a round cross-section, which looks round at 1,000 points."""
STYLES = ("legs", "round legs", "splayed", "panels", "sled", "pedestal")


def board(width: float, depth: float, height: float, x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Solid:
    """Return a box centred at x, y with its underside at z."""
    from trimesh.creation import box  # the import takes half a second

    solid = box((width, depth, height))
    solid.apply_translation((x, y, z + height / 2))
    return solid


def rod(start: ArrayLike, end: ArrayLike, radius: float, square: bool = False) -> Solid:
    """Return a round or square bar from one point to another."""
    from trimesh.creation import cylinder

    return cylinder(radius, segment=(np.asarray(start, float), np.asarray(end, float)), sections=4 if square else 10)


def turned(profile: Sequence[tuple[float, float]], z: float = 0.0) -> Solid:
    """Return a solid of revolution about the z axis; the profile is a list of pairs (radius, height above z)."""
    from trimesh.creation import revolve

    solid = revolve(np.asarray(profile, float), sections=SECTIONS)
    solid.apply_translation((0.0, 0.0, z))
    return solid


def disc(radius: float, height: float, z: float = 0.0) -> Solid:
    """Return a flat cylinder with its underside at z."""
    return turned([(0.0, 0.0), (radius, 0.0), (radius, height), (0.0, height)], z)


def tube(path: Iterable[ArrayLike], radius: float) -> list[Solid]:
    """Return a bent round bar through the points [k, 3]."""
    return [rod(start, end, radius) for start, end in itertools.pairwise(path)]


def support(rng: Generator, width: float, depth: float, height: float, styles: tuple[str, ...] = STYLES) -> list[Solid]:
    """Return a random support of this height under a rectangle of this size."""
    style = rng.choice(styles)
    if style == "panels":
        return panels(rng, width, depth, height)
    if style == "sled":
        return sled(rng, width, depth, height)
    if style == "pedestal":
        return pedestal(rng, min(width, depth), height)
    return legs(rng, width, depth, height, square=style == "legs", splay=0.12 if style == "splayed" else 0.0)


def legs(
    rng: Generator, width: float, depth: float, height: float, square: bool, splay: float, count: int = 4
) -> list[Solid]:
    """Return four legs at the corners, or another `count` of legs on an ellipse, sometimes joined by stretchers."""
    radius = rng.uniform(0.012, 0.04) * (0.6 + 0.4 * max(width, depth))
    inset = radius + rng.uniform(0.0, 0.08) * min(width, depth)
    x, y = width / 2 - inset, depth / 2 - inset
    if count == 4:
        tops = np.array([(-x, -y), (x, -y), (x, y), (-x, y)])
    else:
        angles = 2 * np.pi * np.arange(count) / count + 0.3
        tops = np.stack([x * np.cos(angles), y * np.sin(angles)], axis=1)
    spread = 1 + splay * rng.uniform(0.5, 1.5) * height / min(width, depth)
    parts = [rod((*(top * spread), 0.0), (*top, height), radius, square) for top in tops]
    if rng.random() < 0.3:
        level = rng.uniform(0.15, 0.5) * height
        share = spread + (1 - spread) * level / height
        ring = [(*(top * share), level) for top in tops]
        parts += [rod(a, b, 0.6 * radius, square) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    return parts


def panels(rng: Generator, width: float, depth: float, height: float) -> list[Solid]:
    """Return two upright boards, sometimes joined by a rail."""
    thickness = rng.uniform(0.02, 0.06)
    x = width / 2 - thickness / 2 - rng.uniform(0.0, 0.12) * width
    parts = [board(thickness, depth * rng.uniform(0.7, 1.0), height, side * x) for side in (-1, 1)]
    if rng.random() < 0.5:
        parts.append(board(2 * x, 0.03, height * rng.uniform(0.1, 0.4), z=height * rng.uniform(0.1, 0.6)))
    return parts


def sled(rng: Generator, width: float, depth: float, height: float) -> list[Solid]:
    """Return two frames of rods, with runners on the floor along the depth."""
    radius = rng.uniform(0.012, 0.025)
    x, y = width / 2 - radius - 0.05 * width, depth / 2 - radius
    corners = [(-y, height), (-y, radius), (y, radius), (y, height)]
    return [bar for side in (-x, x) for bar in tube([(side, *corner) for corner in corners], radius)]


def pedestal(rng: Generator, size: float, height: float) -> list[Solid]:
    """Return one column on a disc, a cone or a star of feet."""
    radius = rng.uniform(0.02, 0.06) * (0.5 + size)
    reach = size * rng.uniform(0.28, 0.48)
    column = rod((0, 0, 0.02), (0, 0, height), radius)
    form = rng.choice(["disc", "cone", "star"])
    if form == "disc":
        return [column, disc(reach, rng.uniform(0.015, 0.04))]
    if form == "cone":
        cone = turned([(0, 0), (reach, 0), (reach, 0.015), (radius, height * rng.uniform(0.15, 0.4))])
        return [column, cone]
    count = int(rng.integers(3, 6))
    feet = 2 * np.pi * np.arange(count) / count
    lift = height * rng.uniform(0.03, 0.2)
    ends = [(reach * np.cos(angle), reach * np.sin(angle), 0.015) for angle in feet]
    return [column, *[rod((0, 0, lift), end, 0.6 * radius) for end in ends]]
