"""Which pose suits a dataset: do shapes of one class have common axes, a common vertical alone, or neither?"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pointset.data.axes import Axis

Pose = Literal["aligned", "upright", "any"]
TURNED = 0.75
"""From this share of the scatter of shapes that are turned at random, shapes count as turned at random."""


def recommend_pose(samples: Sequence[tuple[str, NDArray[np.float32]]], up: Axis) -> Pose | None:
    """Recommend a value of `--pose` by the second moments of shapes.

    The scatter of the moments within classes is compared with its expectation if the shapes were turned at random, and
    with that of shapes which are turned to their own axes: 1 and 0. A half turn does not change second moments, so that
    shapes of which some stand on their heads count as aligned.

    Args:
        samples: pairs (class, points [n, 3]), of any number.
        up: the axis that points up.

    Returns:
        "any", if the axes of shapes in one class differ as at random; "upright", if those about `up` do; otherwise
        "aligned". None, if no class has two shapes with an extent.

    Example:
        >>> recommend_pose([("rod", X[0]), ("rod", X[0])], "z")
        'aligned'
    """
    pairs = [(name, moments) for name, points in samples if (moments := _moments(points)) is not None]
    classes = [np.stack([own for other, own in pairs if other == name]) for name in dict.fromkeys(dict(pairs))]
    classes = [own for own in classes if len(own) > 1]
    if not classes:
        return None
    free = np.array([axis for axis in range(3) if axis != "xyz".index(up)])
    if _turned(classes, np.arange(3)) > TURNED:
        return "any"
    return "upright" if _turned(classes, free) > TURNED else "aligned"


def _moments(points: NDArray[np.float32]) -> NDArray[np.float64] | None:
    """The covariance [3, 3] of a cloud over its trace; None for a cloud without extent."""
    centred = points - points.mean(axis=0, dtype=np.float64)
    extent = np.abs(centred).max(initial=0)
    if not 0 < extent < np.inf:
        return None
    covariance = (centred / extent).T @ (centred / extent)
    return covariance / np.trace(covariance)


def _turned(classes: list[NDArray[np.float64]], free: NDArray[np.int64]) -> float:
    """The scatter within classes, from 0 for shapes turned to their axes to 1 for shapes turned at random.

    Turns keep the axes that are not `free`.
    """
    scatter, own_axes, random = 0.0, 0.0, 0.0
    for moments in classes:
        mean = _over_turns(moments, free)
        scatter += _scatter(moments)
        own_axes += _scatter(_to_axes(moments, free))
        random += _scatter(mean) + (1 - 1 / len(moments)) * float(((moments - mean) ** 2).sum())
    return (scatter - own_axes) / (random - own_axes) if random - own_axes > 1e-6 else 0.0


def _scatter(moments: NDArray[np.float64]) -> float:
    return float(((moments - moments.mean(axis=0)) ** 2).sum())


def _to_axes(moments: NDArray[np.float64], free: NDArray[np.int64]) -> NDArray[np.float64]:
    """The moments [N, 3, 3] of the shapes turned to their own axes."""
    turns = np.tile(np.eye(3), (len(moments), 1, 1))
    turns[np.ix_(np.arange(len(moments)), free, free)] = np.linalg.eigh(moments[:, free[:, None], free]).eigenvectors
    return turns.transpose(0, 2, 1) @ moments @ turns


def _over_turns(moments: NDArray[np.float64], free: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean of the moments over all turns that keep the axes that are not free."""
    kept = np.setdiff1d(np.arange(3), free)
    means = np.zeros_like(moments)
    means[:, kept, kept] = moments[:, kept, kept]
    means[:, free, free] = moments[:, free, free].mean(axis=1, keepdims=True)
    return means
