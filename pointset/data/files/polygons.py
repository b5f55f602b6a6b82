"""Cutting polygons into triangles."""

import numpy as np

from pointset.data.files.concave import cut_concave, find_folded


def cut_polygons(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cut polygons into triangles, in the order of the polygons.

    (a, b, c, d) becomes (a, b, c) and (c, d, a); a longer polygon is a fan, or else ears, as by `cut_fans`. Where all
    have four corners, the second halves follow all first ones. Pools of earlier versions have this order, and the
    points that a seed draws depend on it.

    Args:
        vertices: floats [V, 3], in any unit.
        corners: int64 [sum of sizes], vertex indices of one polygon after another, from 0 to V - 1.
        sizes: integers [polygons], their numbers of corners, at least 3.

    Returns:
        int64 [sum of (sizes - 2), 3].
    """
    triangles = cut_fans(vertices, corners, sizes)
    ends = np.cumsum(sizes - 2)[sizes == 4]
    triangles[ends - 1] = np.roll(triangles[ends - 1], -1, axis=1)
    return np.concatenate([triangles[::2], triangles[1::2]]) if (sizes == 4).all() else triangles


def cut_fans(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Cut polygons into fans from their first corner, in the order of the polygons.

    A polygon of which a fan covers more than it is cut into ears instead (`pointset.data.files.concave`): it is not
    convex. Those that have no ears stay a fan, such as polygons that cross themselves.

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
