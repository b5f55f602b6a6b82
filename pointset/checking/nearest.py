"""Nearest neighbours of shapes in feature space."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from pointset.data.groups import Groups, number_groups
from pointset.data.likeness.features import invariant_features
from pointset.data.point_sets import PointSets

SAME_SHAPE, LEAST = 0.95, 0.01
"""Quantile of the distances of two samplings of one shape, and a distance that rounding does not reach."""
TRIED = 60
"""Shapes of which two samplings are compared."""
Rows = Float[ndarray, "N width"]


def nearest_elsewhere(rows: Rows, labels: ndarray, groups: Groups, count: int = 1) -> ndarray:
    """The nearest shapes of the same class and of other groups, int64 [N, count]; -1 where there are no more."""
    nearest = np.full((len(rows), count), -1)
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        own = torch.from_numpy(rows[inside])
        for some in np.split(inside, range(1024, len(inside), 1024)):
            distances = torch.cdist(torch.from_numpy(rows[some]), own)
            distances[torch.from_numpy(groups[some][:, None] == groups[inside])] = torch.inf
            values, places = distances.topk(min(count, len(inside)), largest=False)
            nearest[some, : values.shape[1]] = np.where(values.isinf().numpy(), -1, inside[places.numpy()])
    return nearest


def connected(links: Sequence[tuple[int, int]], count: int) -> Groups:
    """Return the connected component of each of `count` nodes of a graph with these links."""
    from scipy.cluster.hierarchy import DisjointSet

    joined = DisjointSet(range(count))
    for first, second in links:
        joined.merge(first, second)
    return number_groups(joined[node] for node in range(count))


def resampled_distance(sets: PointSets) -> float:
    """The distance between rows that two samplings of one shape rarely exceed, from halves of the points of some."""
    some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:TRIED].tolist()).normalized("none")
    clouds = [cloud[None, :size, :3] for cloud, size in zip(some.points, some.sizes, strict=True)]
    halves = [torch.cat([invariant_features(cloud[:, half::2]) for cloud in clouds]) for half in (0, 1)]
    return max(float(np.quantile((halves[0] - halves[1]).norm(dim=1), SAME_SHAPE)) / 2**0.5, LEAST)
