"""Polygons that a fan does not cover: finding them, and cutting each into triangles that cover it and nothing else.

They are cut by mapbox-earcut, which clips ears (D. Eberly, "Triangulation by Ear Clipping", 2002).
"""

import mapbox_earcut
import numpy as np

TOLERANCE = 1e-6
"""How far a corner may be moved, as a share of its polygon's size: as files of six digits round it."""


def find_folded(fans: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Find the fans of which a triangle turns against the polygon, seen along the polygon's normal (Newell's).

    Such a triangle lies outside its polygon. No fan of a convex polygon has one, nor has that of another polygon all of
    which is seen from the first corner.

    Args:
        fans: floats [triangles, 3, 3], one polygon's after another: the points of the three corners, the first of which
            is the polygon's own first.
        counts: integers [polygons], their numbers of triangles, at least 1.

    Returns:
        int64 [polygons that have such a triangle], which they are. Polygons without a normal are not among them.
    """
    starts = np.cumsum(counts) - counts
    own = np.repeat(np.arange(len(counts)), counts)
    with np.errstate(all="ignore"):  # coordinates that are not finite are refused later, and a point has no size
        sides = fans[:, 1:] - fans[:, :1]
        sides = sides / np.maximum.reduceat(np.abs(sides).max(axis=(1, 2)), starts)[own, None, None]
        normals = np.cross(sides[:, 0], sides[:, 1])
        turns = (normals * _unit(np.add.reduceat(normals, starts))[own]).sum(axis=1)
        folded = turns < -TOLERANCE * np.linalg.norm(sides, axis=2).sum(axis=1)
    return np.flatnonzero(np.logical_or.reduceat(folded, starts))


def cut_concave(points: np.ndarray) -> np.ndarray | None:
    """Cut a polygon into triangles, seen along its normal.

    Args:
        points: floats [n, 3], its corners, not all at one place.

    Returns:
        int64 [n - 2, 3], rows of `points`, turning as the polygon does. Corners on a straight edge may be left out, and
        triangles without area then make up the number. None if the polygon has no normal, or if the triangles do not
        have its area: it crosses itself.
    """
    with np.errstate(all="ignore"):  # corners on a line have no normal
        flat = _flattened(points)
    area = _doubled_areas(flat[None])[0]
    if not np.isfinite(area):
        return None
    cut = mapbox_earcut.triangulate_float64(flat, np.array([len(flat)], np.uint32)).astype(np.int64).reshape(-1, 3)
    areas = _doubled_areas(flat[cut])
    cut[areas < 0] = cut[areas < 0, ::-1]
    if not len(cut) or len(cut) > len(points) - 2 or abs(np.abs(areas).sum() - area) > TOLERANCE * area:
        return None
    return np.concatenate([cut, np.repeat(cut[-1:, :1], 3, axis=1).repeat(len(points) - 2 - len(cut), axis=0)])


def _flattened(points: np.ndarray) -> np.ndarray:
    """Points [n, 2] in the plane across the normal of a polygon [n, 3], around which they turn to the left."""
    points = points - points[0]
    points = points / np.abs(points).max()
    normal = _unit(np.cross(points, np.roll(points, -1, axis=0)).sum(axis=0))
    across = _unit(np.cross(normal, np.eye(3)[np.abs(normal).argmin()]))
    return np.ascontiguousarray(points @ np.stack([across, np.cross(normal, across)], axis=1))


def _doubled_areas(polygons: np.ndarray) -> np.ndarray:
    """Twice the areas [m] of flat polygons [m, n, 2], positive where they turn to the left."""
    x, y = polygons[..., 0], polygons[..., 1]
    doubled: np.ndarray = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
    return doubled


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit
