"""Exact and near duplicates among the shapes of a dataset."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.neighbors import NearestNeighbors

from pointset.data.axes import rotate_up, upright_mesh
from pointset.data.readers.reading import read_mesh
from pointset.data_quality.reading import Features, Shapes
from pointset.runs.progress import followed

KINDS = BYTES, POINTS, NEAR = "identical bytes", "identical points", "near-duplicate"
NEIGHBOURS = 6
"""Number of nearest neighbours in feature space with which each shape is compared."""
RATIO = 0.8
"""Maximum ratio of the distances from a near-duplicate to its nearest and its second nearest shape (Lowe, *Distinctive
image features from scale-invariant keypoints*, 2004). Without it, similar shapes would be near-duplicates."""
SAME_POINT = 2e-4
"""Maximum distance of one point in two files of a shape, relative to the extent: text may have only four digits."""


def find_duplicates(shapes: Shapes, features: Features, progress: bool = False) -> list[tuple[int, int, str]]:
    """Return pairs (first, second, kind) of duplicates. A shape is `second` at most once, with its closest duplicate.

    Kinds are "identical bytes", "identical points" (in any order and format, up to rounding in text) and
    "near-duplicate". A near-duplicate is much closer in feature space than the second nearest shape, and as close as
    two samplings of one shape. It may be moved or rescaled.
    """
    vectors, limit = features.vectors, features.sampling_distance(shapes.sets[0])
    search = NearestNeighbors(n_neighbors=min(NEIGHBOURS + 1, len(vectors)), algorithm="brute").fit(vectors)
    pairs, near = dict[tuple[int, int], float](), set[tuple[int, int]]()
    for row, (away, others) in enumerate(zip(*(part.tolist() for part in search.kneighbors(vectors)), strict=True)):
        by_distance = [(distance, other) for distance, other in zip(away, others, strict=True) if other != row]
        close = {(min(row, other), max(row, other)): distance for distance, other in by_distance if distance <= limit}
        pairs |= close
        if close and (len(by_distance) == 1 or by_distance[0][0] <= RATIO * by_distance[1][0]):
            near.add(next(iter(close)))
    first_of: dict[str, int] = {}
    for row, digest in enumerate(shapes.digests):
        if (first := first_of.setdefault(digest, row)) != row:
            pairs[first, row] = 0.0
    corners = lru_cache(maxsize=64)(lambda row: _corners(shapes, row))
    found = []
    for pair, distance in followed(sorted(pairs.items()), "comparing shapes", "pair", len(pairs), show=progress):
        if shapes.digests[pair[0]] == shapes.digests[pair[1]]:
            found.append((KINDS.index(BYTES), distance, *pair))
        elif _same_points(*map(corners, pair)):
            found.append((KINDS.index(POINTS), distance, *pair))
        elif pair in near:
            found.append((KINDS.index(NEAR), distance, *pair))
    closest: dict[int, tuple[int, int, str]] = {}
    for kind, _, first, second in sorted(found):
        closest.setdefault(second, (first, second, KINDS[kind]))
    return [*closest.values()]


def _corners(shapes: Shapes, row: int) -> NDArray[np.floating[Any]]:
    """Return all points of a cloud, or the vertices that the triangles of a mesh use (programs drop the others)."""
    name, sets = shapes.names[row], shapes.sets[0]
    if sets.listing is None or sets.listing.kind == "clouds":
        return shapes.whole_cloud(row)
    mesh = upright_mesh(read_mesh(shapes.files[name].path))
    return rotate_up(mesh.vertices[np.unique(mesh.faces)], sets.options.usual_up(name), sets.options.up)


def _same_points(one: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> bool:
    """Return True if each point of `one` [n, 3] is at a point of `other` [m, 3], and vice versa."""
    least = SAME_POINT * np.ptp(one, axis=0).max()
    if max(np.abs(end(one, axis=0) - end(other, axis=0)).max() for end in (np.min, np.max)) > least:
        return False  # decides most pairs quickly
    trees = KDTree(one), KDTree(other)
    return bool(max(tree.query(points.data)[0].max() for tree, points in (trees, trees[::-1])) <= least)
