"""Two kinds of vessels, with the same handles and some similar shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from pointset.data.shapes10.solids import arc, disc, tube, turned

if TYPE_CHECKING:
    from trimesh import Trimesh


def mug(rng: Generator) -> list[Trimesh]:
    """An open cup with a wall, usually with one handle, sometimes with a saucer."""
    radius, height = rng.uniform(0.032, 0.055), rng.uniform(0.065, 0.13)
    foot, waist = radius * rng.uniform(0.65, 1.05), radius * rng.uniform(0.85, 1.12)
    radii, levels = [foot, waist, radius], [0.0, height * rng.uniform(0.3, 0.7), height]
    parts = _vessel(radii, levels, wall=rng.uniform(0.003, 0.008))
    sides = [] if rng.random() < 0.12 else ([1, -1] if rng.random() < 0.06 else [1])
    parts += _handles(rng, sides, (foot + radius) / 2, height, low=0.35, high=0.7)
    if rng.random() < 0.12:
        parts += [disc(radius * rng.uniform(1.4, 1.9), 0.006, z=-0.006)]
    return parts


def vase(rng: Generator) -> list[Trimesh]:
    """A solid of revolution with a belly, a neck and a lip; sometimes with handles."""
    height = rng.uniform(0.14, 0.4)
    belly = height * rng.uniform(0.16, 0.38)
    foot, neck = belly * rng.uniform(0.4, 0.95), belly * rng.uniform(0.25, 0.9)
    lip = neck * rng.uniform(0.95, 1.7)
    middle, throat = rng.uniform(0.25, 0.6), rng.uniform(0.72, 0.9)
    knots = np.array((0.0, middle, throat, 1.0))
    levels = np.linspace(0.0, 1.0, 13)
    radii = np.interp(levels, knots, (foot, belly, neck, lip))
    smooth = np.convolve(np.pad(radii, 1, mode="edge"), (0.25, 0.5, 0.25), mode="valid")
    parts = _vessel(list(smooth), list(height * levels), wall=0.015 * height)
    sides = [[], [1], [1, -1]][rng.choice(3, p=[0.6, 0.2, 0.2])]
    parts += _handles(rng, sides, belly, height, low=0.4, high=0.75)
    return parts


def _vessel(radii: list[float], levels: list[float], wall: float) -> list[Trimesh]:
    """An open vessel with a wall and a floor."""
    outside = [(0.0, levels[0]), *zip(radii, levels, strict=True)]
    inside = [(max(radius - wall, 0.2 * radius), level) for radius, level in zip(radii, levels, strict=True)]
    inside = [(radius, max(level, 2 * wall)) for radius, level in inside][::-1]
    return [turned([*outside, *inside, (0.0, 2 * wall)])]


def _handles(rng: Generator, sides: list[int], radius: float, height: float, low: float, high: float) -> list[Trimesh]:
    level, rise = height * rng.uniform(low, high) * 0.9, height * rng.uniform(0.18, 0.34)
    out, thick = radius * rng.uniform(0.45, 0.9), radius * rng.uniform(0.09, 0.17)
    parts = []
    for side in sides:
        path = arc((0.9 * radius, 0.0, level), out, rise)
        parts += tube(path * (side, 1, 1), thick)
    return parts
