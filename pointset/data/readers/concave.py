"""Triangulate concave polygons for which a fan of triangles is wrong.

The triangulation is by mapbox-earcut, which clips ears (D. Eberly, "Triangulation by Ear Clipping", 2002).
"""

import mapbox_earcut
import numpy as np

TOLERANCE = 1e-6
"""Tolerated displacement of a corner, relative to the polygon's size: the rounding of files with six digits."""


def find_folded(fans: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Find the polygons whose fan has a triangle of the opposite orientation, with respect to Newell's normal.

    Such a triangle lies outside its polygon. Convex polygons have none, nor have other polygons that are completely
    visible from their first corner.

    Args:
        fans: floats [triangles, 3, 3], corners of the triangles, concatenated over polygons; the first corner of each
            triangle is the polygon's first.
        counts: integers [polygons], numbers of triangles, at least 1.

    Returns:
        int64 [k], indices of the polygons found. Polygons without a normal are never found.
    """
    starts = np.cumsum(counts) - counts
    own = np.repeat(np.arange(len(counts)), counts)
    with np.errstate(all="ignore"):  # non-finite coordinates are refused later; a polygon of size 0 divides by 0
        sides = fans[:, 1:] - fans[:, :1]
        sides = sides / np.maximum.reduceat(np.abs(sides).max(axis=(1, 2)), starts)[own, None, None]
        normals = np.cross(sides[:, 0], sides[:, 1])
        turns = (normals * _unit(np.add.reduceat(normals, starts))[own]).sum(axis=1)
        folded = turns < -TOLERANCE * np.linalg.norm(sides, axis=2).sum(axis=1)
    return np.flatnonzero(np.logical_or.reduceat(folded, starts))


def cut_concave(points: np.ndarray) -> np.ndarray | None:
    """Triangulate a polygon in the plane of its normal.

    Args:
        points: floats [n, 3], corners of the polygon, not all at one place.

    Returns:
        int64 [n - 2, 3], indices into `points`, with the orientation of the polygon. Corners on a straight edge may be
        left out; triangles without area then complete the number. None if the polygon has no normal, or if it crosses
        itself, so that the areas differ.
    """
    with np.errstate(all="ignore"):  # a polygon whose corners are on a line has no normal
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
    """The corners [n, 2] of a polygon [n, 3] in the plane orthogonal to its normal, in counterclockwise order."""
    points = points - points[0]
    points = points / np.abs(points).max()
    normal = _unit(np.cross(points, np.roll(points, -1, axis=0)).sum(axis=0))
    across = _unit(np.cross(normal, np.eye(3)[np.abs(normal).argmin()]))
    return np.ascontiguousarray(points @ np.stack([across, np.cross(normal, across)], axis=1))


def _doubled_areas(polygons: np.ndarray) -> np.ndarray:
    """Twice the signed areas [m] of flat polygons [m, n, 2], positive if counterclockwise."""
    x, y = polygons[..., 0], polygons[..., 1]
    doubled: np.ndarray = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
    return doubled


def _unit(vectors: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return unit
