"""Cutting polygons into triangles."""

import numpy as np


def cut_polygons(corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cut polygons into triangles, in the order of the polygons.

    (a, b, c, d) becomes (a, b, c) and (c, d, a); a longer polygon is a fan from its first corner. Where all have four
    corners, the second halves follow all first ones. Pools of earlier versions have this order, and the points that a
    seed draws depend on it.

    Args:
        corners: int64 [sum of sizes], vertex indices of one polygon after another.
        sizes: integers [polygons], their numbers of corners, at least 3.

    Returns:
        int64 [sum of sizes - 2, 3].
    """
    if (sizes == 3).all():
        return corners.reshape(-1, 3)
    if (sizes == 4).all():
        quads = corners.reshape(-1, 4)
        return np.concatenate([quads[:, :3], quads[:, [2, 3, 0]]])
    counts = sizes - 2
    polygon = np.repeat(np.arange(len(sizes)), counts)
    step = np.arange(len(polygon)) - (np.cumsum(counts) - counts)[polygon]
    first = (np.cumsum(sizes) - sizes)[polygon]
    triangles: np.ndarray = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
    second_halves = (sizes[polygon] == 4) & (step == 1)
    triangles[second_halves] = np.roll(triangles[second_halves], -1, axis=1)
    return triangles
