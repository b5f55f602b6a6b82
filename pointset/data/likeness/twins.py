"""Shapes that are one shape: the same surface, perhaps moved, scaled, turned, mirrored or sampled anew."""

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray

Kind = Literal["re-sampled", "rescaled", "turned", "mirrored"]
CLOSE = 1.15
"""Two clouds are samplings of one surface if their points are, at the best fit, at most so many times as far from those
of the other as from their own: see scripts/experiments/twins.py."""
FEW_POINTS, MOST_POINTS = 200, 1024
"""Points of a cloud with which fits begin, and with which they are judged."""
MOVED = 0.5
"""The same for clouds of fewer than `FEW_POINTS`, which are told to be one shape only if their points are the same: of
57 pairs of different shapes of a class of labeled_db, 21 are within `CLOSE` with 50 points, 5 with 128, 3 with 200."""
TRIED = ((96, 16), (24, 64))
"""Turns that are tried, the most promising first, and points with which they are."""
ROUNDS = ((4, 4, 1.9), (2, 4, 1.6))
"""Starts, steps of the iterative closest points, and the distance after them from which a fit can still be close. Of
716 pairs of labeled_db with planted twins, those that are the same are at most 1.62 and 1.44 apart then."""
STEPS = 20
"""Steps of the iterative closest points of all points."""
SCALED = 0.02
"""A smaller change of size, as a log, is that of a new sampling."""


@dataclass(frozen=True)
class Fit:
    """How well one cloud lies on another."""

    kind: Kind
    distance: float
    """Mean distance of a point from the other cloud by its mean distance from its own cloud: 1 for one surface."""
    closest: float = CLOSE
    """The distance up to which they are one surface."""

    @property
    def is_same(self) -> bool:
        """True if both clouds are samplings of one surface."""
        return self.distance <= self.closest


class Surface:
    """A cloud with mean 0 and a root mean square radius of 1, ready to be compared."""

    def __init__(self, points: Float[ndarray, "n 3"]) -> None:
        from scipy.spatial import cKDTree

        points = points[:MOST_POINTS].astype(np.float64)
        self.centre = points.mean(axis=0)
        centred = points - self.centre
        self.size = float(np.sqrt(np.square(centred).sum(axis=1).mean())) or 1.0
        self.points = centred / self.size
        self.tree = cKDTree(self.points)
        self.axes = np.linalg.eigh(self.points.T @ self.points)[1]
        self.spacing = float(
            self.tree.query(self.points, k=min(2, len(points)))[0].reshape(len(points), -1)[:, -1].mean()
        )

    def distance(self, other: "Surface", moved: Float[ndarray, "n 3"]) -> float:
        """The larger of the mean distances between this cloud and another that was moved, by their own spacings."""
        from scipy.spatial import cKDTree

        to_this = self.tree.query(moved)[0].mean() / max(self.spacing, 1e-12)
        to_moved = cKDTree(moved).query(self.points)[0].mean() / max(other.spacing, 1e-12)
        return float(max(to_this, to_moved))


def fit_surfaces(first: Surface, second: Surface) -> Fit:
    """The simplest way in which the second cloud is the first: as it lies, else turned, else mirrored."""
    still: Kind = "rescaled" if abs(np.log(second.size / first.size)) > SCALED else "re-sampled"
    closest = CLOSE if min(len(first.points), len(second.points)) >= FEW_POINTS else MOVED
    best = Fit(still, _distance_from(first, second, np.eye(3)[None]), closest)
    ways: tuple[tuple[Kind, float], ...] = (("turned", 1.0), ("mirrored", -1.0))
    for kind, sign in ways:
        if best.is_same:
            return best
        starts = first.axes @ _all_turns() @ second.axes.T
        starts = starts[np.linalg.det(starts) * sign > 0]
        for count, points in TRIED:
            tried = first.tree.query(second.points[:points] @ starts[:count].transpose(0, 2, 1))[0].mean(axis=1)
            starts = starts[np.argsort(tried, kind="stable")]
        best = min(best, Fit(kind, _distance_from(first, second, starts), closest), key=lambda fit: fit.distance)
    return best


def _distance_from(first: Surface, second: Surface, starts: Float[ndarray, "k 3 3"]) -> float:
    """The distance after a fit of few points from each start, and if it is promising of all points from the best."""
    fits = few = second.points[:FEW_POINTS] @ starts[: ROUNDS[0][0]].transpose(0, 2, 1)
    for count, steps, promising in ROUNDS:
        fits = _moved(first, fits[:count], steps)
        distances = first.tree.query(fits)[0].mean(axis=1) / max(first.spacing, 1e-12)
        order = np.argsort(distances, kind="stable")
        starts, few, fits = starts[order], few[order], fits[order]
        if distances[order[0]] > promising:
            return float(distances[order[0]])
    begun = _aligned(second.points @ starts[0].T, few[0], fits[0])
    return first.distance(second, _moved(first, begun, STEPS))


@cache
def _all_turns() -> Float[ndarray, "k 3 3"]:
    """The turns and mirrorings of a cube, and the same after 45 degrees about each axis: axes may be hard to tell."""
    from scipy.spatial.transform import Rotation

    cube = Rotation.create_group("O").as_matrix()
    between = [np.eye(3), *(Rotation.from_euler(axis, 45, degrees=True).as_matrix() for axis in "xyz")]
    return np.concatenate([sign * turn @ cube for turn in between for sign in (1, -1)])


def _moved(first: Surface, points: Float[ndarray, "*k n 3"], steps: int) -> Float[ndarray, "*k n 3"]:
    """Points after iterative closest points (Besl and McKay 1992) with similarities; leading axes are other fits."""
    for _ in range(steps):
        points = _aligned(points, points, first.points[first.tree.query(points)[1]])
    return points


def _aligned(
    points: Float[ndarray, "*k n 3"], source: Float[ndarray, "*k m 3"], target: Float[ndarray, "*k m 3"]
) -> Float[ndarray, "*k n 3"]:
    """Points after the similarity that brings a source nearest to its target (Umeyama 1991)."""
    centre, goal = source.mean(axis=-2, keepdims=True), target.mean(axis=-2, keepdims=True)
    own, wanted = source - centre, target - goal
    left, values, right = np.linalg.svd(wanted.swapaxes(-1, -2) @ own)
    mirrored = np.linalg.det(left @ right)[..., None] < 0
    left[..., 2] = np.where(mirrored, -left[..., 2], left[..., 2])
    values[..., 2:] = np.where(mirrored, -values[..., 2:], values[..., 2:])
    scale = values.sum(axis=-1) / np.square(own).sum(axis=(-2, -1)).clip(min=1e-12)
    return (points - centre) @ (scale[..., None, None] * left @ right).swapaxes(-1, -2) + goal
