"""Triangulate polygons."""

import numpy as np

from pointset.data.readers.concave import cut_concave, find_folded


def cut_polygons(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Triangulate polygons, in the order of the polygons.

    (a, b, c, d) becomes (a, b, c) and (c, d, a); longer polygons are cut as by `cut_fans`. If all polygons have four
    corners, all first halves come before all second halves. This order must not change: the points drawn from a seed
    depend on it, and pools of earlier versions have it.

    Args:
        vertices: floats [V, 3], in any unit.
        corners: int64 [sum of sizes], vertex indices from 0 to V - 1, concatenated over polygons.
        sizes: integers [polygons], numbers of corners, at least 3.

    Returns:
        int64 [sum of (sizes - 2), 3].
    """
    triangles = cut_fans(vertices, corners, sizes)
    ends = np.cumsum(sizes - 2)[sizes == 4]
    triangles[ends - 1] = np.roll(triangles[ends - 1], -1, axis=1)
    return np.concatenate([triangles[::2], triangles[1::2]]) if (sizes == 4).all() else triangles


def cut_fans(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cut polygons into fans of triangles from their first corner, in the order of the polygons.

    Concave polygons for which a fan is wrong are cut by ear clipping (`concave`). If that fails, as
    for polygons that cross themselves, the fan is kept.

    Args:
        vertices, corners, sizes: as for `cut_polygons`.

    Returns:
        int64 [sum of (sizes - 2), 3].
    """
    if (sizes == 3).all():
        return corners.reshape(-1, 3)
    counts = sizes - 2
    polygon = np.repeat(np.arange(len(sizes)), counts)
    starts = np.cumsum(counts) - counts
    step = np.arange(len(polygon)) - starts[polygon]
    firsts = np.cumsum(sizes) - sizes
    first = firsts[polygon]
    triangles: np.ndarray = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
    for index in find_folded(vertices[triangles], counts).tolist():
        own = corners[firsts[index] : firsts[index] + sizes[index]]
        cut = cut_concave(vertices[own])
        if cut is not None:
            triangles[starts[index] : starts[index] + counts[index]] = own[cut]
    return triangles
