"""Triangles of polygons, cut by the package itself: what is fuzzed is the reading, and tests judge the cutting."""

from collections.abc import Sequence

import numpy as np

from pointset.data.readers.polygons import cut_fans


def cut(vertices: Sequence | np.ndarray, polygons: list[list[int]]) -> list[list[int]]:
    """Fans from the first corners, or ears, in the order of the polygons; all corners must be vertices."""
    sizes = np.array([len(polygon) for polygon in polygons])
    triangles: list[list[int]] = cut_fans(np.array(vertices), np.concatenate(polygons), sizes).tolist()
    return triangles
