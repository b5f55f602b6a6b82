"""Shapes that are one shape: the same surface, perhaps moved, scaled, turned, mirrored or sampled anew."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Kind = Literal["re-sampled", "rescaled", "turned", "mirrored"]
CLOSE = 1.15
"""Two clouds are samplings of one surface if their points are, at the best fit, at most so many times as far from those
of the other as from their own: see scripts/experiments/twins.py."""
FEW_POINTS, MOST_POINTS = 128, 1024
"""Points of a cloud with which turns are tried, and with which a fit is judged."""
OVERLAP, SHARED = 0.35, 0.3
"""Two clouds in one frame show one object if this share of points, the nearest, is so near to the other cloud, on
average and by the spacing of the points: 0.28 at most for views from two sides, 0.45 at least for other objects."""
STEPS = 12
"""Of the iterative closest points."""
SCALED, TURNED = 0.02, np.radians(8.0)
"""A smaller change of size, or a smaller turn, is that of a new sampling."""


@dataclass(frozen=True)
class Fit:
    """How well one cloud lies on another."""

    kind: Kind
    distance: float
    """Mean distance of a point from the other cloud by its mean distance from its own cloud: 1 for one surface."""

    @property
    def is_same(self) -> bool:
        return self.distance <= CLOSE


class Surface:
    """A cloud with mean 0 and a root mean square radius of 1, ready to be compared."""

    def __init__(self, points: Float[ndarray, "n 3"]) -> None:
        points = points[:MOST_POINTS].astype(np.float64)
        self.centre = points.mean(axis=0)
        centred = points - self.centre
        self.size = float(np.sqrt(np.square(centred).sum(axis=1).mean())) or 1.0
        self.points = centred / self.size
        from scipy.spatial import cKDTree  # a training imports this module, and most need no scipy

        self.tree = cKDTree(self.points)
        self.axes = np.linalg.eigh(self.points.T @ self.points)[1]
        self.spacing = float(
            self.tree.query(self.points, k=min(2, len(points)))[0].reshape(len(points), -1)[:, -1].mean()
        )

    def overlaps(self, other: "Surface") -> bool:
        """True if both clouds, as they lie in their files, show a part of one surface."""
        moved = (other.points * other.size + (other.centre - self.centre)) / self.size
        distances = np.sort(self.tree.query(moved)[0])[: max(1, round(SHARED * len(moved)))]
        return bool(distances.mean() <= OVERLAP * max(self.spacing, other.spacing * other.size / self.size))

    def distance(self, other: "Surface", moved: Float[ndarray, "n 3"]) -> float:
        """The larger of the mean distances between this cloud and another that was moved, by their own spacings."""
        to_this = self.tree.query(moved)[0].mean() / max(self.spacing, 1e-12)
        to_moved = type(self.tree)(moved).query(self.points)[0].mean() / max(other.spacing, 1e-12)
        return float(max(to_this, to_moved))


def fit_surfaces(first: Surface, second: Surface) -> Fit:
    """The simplest way in which the second cloud is the first: as it lies, else turned, else mirrored."""
    as_it_lies = _closest(first, second, np.eye(3))
    scaled = abs(np.log(second.size / first.size)) > SCALED
    still: Kind = "rescaled" if scaled else "re-sampled"
    best = Fit(still, as_it_lies)
    if best.is_same:
        return best
    for kind, turns in (("turned", _turns(1.0)), ("mirrored", _turns(-1.0))):
        starts = [first.axes @ turn @ second.axes.T for turn in turns]
        starts = [start for start in starts if (np.linalg.det(start) > 0) == (kind == "turned")]
        few = second.points[:FEW_POINTS]
        starts.sort(key=lambda start: first.tree.query(few @ start.T)[0].mean())
        for start in starts[:2]:
            distance = _closest(first, second, start)
            if distance < best.distance:
                best = Fit(kind, distance)  # type: ignore[arg-type]
        if best.is_same:
            return best
    return best


def _turns(sign: float) -> Iterator[Float[ndarray, "3 3"]]:
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            yield np.eye(3)[list(order)] * np.array(signs)


def _closest(first: Surface, second: Surface, turn: Float[ndarray, "3 3"]) -> float:
    """The distance after iterative closest points (Besl and McKay 1992), which start with a turn of the second."""
    moved = second.points @ turn.T
    for _ in range(STEPS):
        target = first.points[first.tree.query(moved)[1]]
        moved = _aligned(moved, target)
    return first.distance(second, moved)


def _aligned(points: Float[ndarray, "n 3"], target: Float[ndarray, "n 3"]) -> Float[ndarray, "n 3"]:
    """Points after the similarity that brings them nearest to their targets (Umeyama 1991)."""
    centre, goal = points.mean(axis=0), target.mean(axis=0)
    own, wanted = points - centre, target - goal
    left, values, right = np.linalg.svd(wanted.T @ own)
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    scale = float((values * signs).sum() / max(np.square(own).sum(), 1e-12))
    return scale * own @ (left * signs @ right).T + goal
