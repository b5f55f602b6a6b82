"""Triangle meshes as two arrays, and the triangulation of polygons.

A polygon is cut into a fan of triangles. If the fan would reach outside, ear clipping is used instead (mapbox-earcut;
D. Eberly, "Triangulation by Ear Clipping", 2002). A flat polygon that crosses itself is left out.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import mapbox_earcut
import numpy as np

from pointset.errors import PointsetError

CORNER_TOLERANCE = 1e-6
"""Tolerated rounding error of a corner, relative to the size of the polygon. Files may have six digits."""


class MeshError(PointsetError, ValueError):
    """A mesh cannot be used. The message names the file and, if possible, the line."""


@dataclass(eq=False)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: float64 [V, 3], finite, in the file's own units and axes, after `corner` is subtracted.
        faces: int64 [F, 3], indices of vertices; F is at least 1. Degenerate faces, without an area, are allowed.
        corner: offset that `read_mesh` subtracted from the vertices of a mesh far from the origin (map coordinates).
        up: upward axis that the file declares: "x", "y" or "z" for a DAE file, empty for other files.

    Raises:
        MeshError: an array has a wrong shape or type, a coordinate is not finite, or an index is out of range.
    """

    vertices: np.ndarray
    faces: np.ndarray
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0)
    up: str = ""

    def __post_init__(self) -> None:
        vertices, faces = np.asarray(self.vertices), np.asarray(self.faces)
        if vertices.ndim != 2 or vertices.shape[1] != 3 or vertices.dtype.kind not in "fiu":
            raise MeshError(f"vertices must be numbers [V, 3], got {vertices.dtype} {list(vertices.shape)}")
        if faces.ndim != 2 or faces.shape[1] != 3 or faces.dtype.kind not in "iu":
            raise MeshError(f"faces must be integers [F, 3], got {faces.dtype} {list(faces.shape)}")
        if not len(faces):
            raise MeshError(f"a mesh needs at least one face, got {len(vertices)} vertices and no face")
        self.vertices = np.ascontiguousarray(vertices, dtype=np.float64)
        self.faces = np.ascontiguousarray(faces, dtype=np.int64)
        if not np.isfinite(self.vertices).all():
            row = int(np.flatnonzero(~np.isfinite(self.vertices).all(axis=1))[0])
            raise MeshError(f"vertex {row} has a coordinate that is not finite: {self.vertices[row].tolist()}")
        if self.faces.min() < 0 or self.faces.max() >= len(vertices):
            row = int(np.flatnonzero(((self.faces < 0) | (self.faces >= len(vertices))).any(axis=1))[0])
            raise MeshError(f"face {row} is {self.faces[row].tolist()}, but vertices run from 0 to {len(vertices) - 1}")


def mesh_of(shape: Any) -> Any:
    """Return the `Mesh` of an object with `vertices` and `faces`, such as a trimesh; return anything else unchanged."""
    other = not isinstance(shape, Mesh) and hasattr(shape, "vertices") and hasattr(shape, "faces")
    return Mesh(np.asarray(shape.vertices), np.asarray(shape.faces)) if other else shape


def mesh_of_polygons(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray, name: str) -> Mesh:
    """Return the mesh of polygons: `corners` are their concatenated vertex indices, `sizes` their numbers of corners.

    Polygons with fewer than three corners, and flat polygons that cross themselves, are left out, with a warning.
    """
    if wrong := corners[(corners < 0) | (corners >= len(vertices))].tolist():
        raise MeshError(f"has a face of vertex {wrong[0]}, but vertices run from 0 to {len(vertices) - 1}")
    large: np.ndarray = sizes >= 3
    triangles, polygons = cut_polygons(vertices, corners[np.repeat(large, sizes)], sizes[large])
    if left_out := len(sizes) - np.count_nonzero(np.diff(polygons, prepend=-1)):
        what = "have fewer than 3 corners, or cross themselves, and were left out"
        warnings.warn(f"{name}: {left_out:,} of {len(sizes):,} faces {what}", stacklevel=2)
    if not len(triangles):
        raise MeshError("expected a mesh, found no triangles (a point cloud alone has none)")
    return Mesh(vertices, triangles)


def cut_polygons(vertices: np.ndarray, corners: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return triangles [m, 3] of polygons and the index [m] of each triangle's polygon, in the order of the polygons.

    `corners` are the concatenated vertex indices of the polygons, `sizes` their numbers of corners, at least 3.
    Polygons become fans from their first corners. Concave polygons whose fan reaches outside are cut by ear clipping. A
    flat polygon for which ear clipping fails crosses itself, and gets no triangle. If ear clipping fails for a polygon
    that is not flat, the fan is kept, because a fan uses every corner.
    """
    polygons = np.repeat(np.arange(len(sizes)), sizes - 2)
    if (sizes == 3).all():
        return corners.reshape(-1, 3), polygons
    firsts = np.cumsum(sizes) - sizes
    first = firsts[polygons]
    step = np.arange(len(polygons)) - (first - 2 * polygons)
    triangles: np.ndarray = corners[np.stack([first, first + step + 1, first + step + 2], axis=1)]
    cuts = {}
    for index in _find_folded(vertices[triangles], polygons).tolist():
        outline = corners[firsts[index] : firsts[index] + sizes[index]]
        if (cut := _cut_concave(vertices[outline])) is not None:
            cuts[index] = outline[cut]
    if cuts:
        kept = ~np.isin(polygons, [*cuts])
        triangles = np.concatenate([triangles[kept], *cuts.values()])
        polygons = np.concatenate([polygons[kept], np.repeat([*cuts], [*map(len, cuts.values())])])
        order = polygons.argsort(kind="stable")
        triangles, polygons = triangles[order], polygons[order]
    return triangles, polygons


def _find_folded(fans: np.ndarray, polygons: np.ndarray) -> np.ndarray:
    """Return the polygons whose fan reaches outside: one of its triangles [m, 3, 3] faces against Newell's normal."""
    starts = np.flatnonzero(np.diff(polygons, prepend=-1))
    with np.errstate(all="ignore"):  # non-finite coordinates are refused later; sizes and normals may be 0
        sides = fans[:, 1:] - fans[:, :1]
        sides = sides / np.maximum.reduceat(np.abs(sides).max(axis=(1, 2)), starts)[polygons, None, None]
        normals = np.cross(sides[:, 0], sides[:, 1])
        turning = (normals * _unit(np.add.reduceat(normals, starts))[polygons]).sum(axis=1)
        turning = np.where(np.isnan(turning), -np.linalg.norm(normals, axis=1), turning)
        folded = turning < -CORNER_TOLERANCE * np.linalg.norm(sides, axis=2).sum(axis=1)
    return np.flatnonzero(np.logical_or.reduceat(folded, starts))


def _cut_concave(points: np.ndarray) -> np.ndarray | None:
    """Return triangles [m, 3] of a polygon [n, 3], m = 0 if a flat polygon crosses itself, or None to use the fan."""
    length, _, height = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    is_flat = height <= CORNER_TOLERANCE * length
    with np.errstate(all="ignore"):  # a polygon whose corners are on a line has no normal
        flat = _flattened(points)
    area = _doubled_areas(flat[None])[0]
    if not np.isfinite(area):
        return np.empty((0, 3), np.int64) if is_flat else None
    cut = mapbox_earcut.triangulate_float64(flat, np.array([len(flat)], np.uint32)).astype(np.int64).reshape(-1, 3)
    areas = _doubled_areas(flat[cut])
    cut[areas < 0] = cut[areas < 0, ::-1]
    if abs(np.abs(areas).sum() - area) > CORNER_TOLERANCE:
        return np.empty((0, 3), np.int64) if is_flat else None
    # Ear clipping may leave out a corner above the plane; the fan uses every corner.
    return cut if is_flat or len(np.unique(cut)) == len(points) else None


def _flattened(points: np.ndarray) -> np.ndarray:
    """Return the corners [n, 2] of a polygon [n, 3] in its plane, in counterclockwise order."""
    points = points - points[0]
    points = points / np.abs(points).max()
    normal = _unit(np.cross(points, np.roll(points, -1, axis=0)).sum(axis=0))
    across = _unit(np.cross(normal, np.eye(3)[np.abs(normal).argmin()]))
    return np.ascontiguousarray(points @ np.stack([across, np.cross(normal, across)], axis=1))


def _doubled_areas(polygons: np.ndarray) -> np.ndarray:
    """Return twice the signed areas [m] of flat polygons [m, n, 2], positive if counterclockwise."""
    x, y = polygons[..., 0], polygons[..., 1]
    return (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
