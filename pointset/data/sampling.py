"""Sample points on the surface of a mesh. A seed gives the same points on any machine.

Samplers: "uniform" draws points independently, with equal probability per area. "fps" (farthest-point sampling) and
"poisson" (Poisson-disk sampling) choose n evenly spread points from a larger uniform draw. The points of "fps" are in
the order of choice, those of "poisson" in random order. Random numbers come from a PCG64 generator. All else is
element-wise IEEE arithmetic, square roots and cumulative sums, which all processors round in the same way.
"""

import hashlib
import importlib
from types import ModuleType
from typing import Literal, overload

import numpy as np

from pointset.configuration import Count, check
from pointset.data.options import Sampler
from pointset.data.readers.clouds import far_corner, in_float32
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.errors import REPEATED, PointsetError, one_line

CANDIDATES = {"uniform": 1, "fps": 4, "poisson": 5}
"""Number of uniform points drawn for each point that a sampler returns."""


@overload
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: Literal[False] = False
) -> np.ndarray: ...
@overload
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: Literal[True]
) -> tuple[np.ndarray, np.ndarray]: ...
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: bool = False
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Sample points on the surface of a mesh.

    Points are computed in float64, then rounded to float32. With "uniform", the first k of n points are the same as
    with n = k.

    Args:
        mesh: a mesh; faces without area get no points.
        n: number of points.
        seed: a whole number, at least 0.
        sampler: "uniform", "fps" (farthest points) or "poisson" (Poisson disk; needs the extra open3d).
        normals: also return the unit normal of each point's face, by the right-hand rule.

    Returns:
        Points, float32 [n, 3], in the units and axes of the mesh, relative to the corner of a mesh far from the origin.
            With `normals`, also the normals, float32 [n, 3].

    Raises:
        MeshError: the mesh has no area, or float32 cannot hold its points.
        PointsetError: another argument is wrong, or Open3D is missing.

    Example:
        >>> square = pointset.data.Mesh(
        ...     np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([[0, 1, 2], [0, 2, 3]])
        ... )
        >>> points, normals = pointset.data.sample_points(square, 100, seed=0, normals=True)
        >>> points.shape, normals[0]
        ((100, 3), array([0., 0., 1.], dtype=float32))
    """
    check("n", n, Count)
    check("sampler", sampler, Sampler)
    # [3 corners, 3 axes, F]: the long last axis makes arithmetic fast.
    corners = mesh.vertices.T.copy().take(mesh.faces.T, axis=1).swapaxes(0, 1)
    least, most = corners.min(axis=2).min(axis=0), corners.max(axis=2).max(axis=0)
    corner = far_corner(least, most)
    if corner.any():
        corners = corners - corner[:, None]
    in_float32(np.stack([least - corner, most - corner]), MeshError)
    (x, y, z), (u, v, w) = corners[1] - corners[0], corners[2] - corners[0]
    crosses = np.stack([y * w - z * v, z * u - x * w, x * v - y * u])  # normals, with twice the face's area as length
    generator = _generator(seed)
    areas = np.sqrt(_sum_of_squares(crosses))  # in fact twice the areas
    points, faces = _draw_uniform(corners, areas, CANDIDATES[sampler] * n, generator)
    if sampler != "uniform":
        start = int(generator.integers(len(points)))
        chosen = farthest_points(points, n, start=start) if sampler == "fps" else _poisson_disk(points, mesh, n)
        points, faces = points[chosen], faces[chosen]
    drawn = points.astype(np.float32, order="C")
    if not normals:
        return drawn
    scaled = crosses.T[faces]
    scaled = scaled / np.abs(scaled).max(axis=1, keepdims=True)  # small squares underflow
    return drawn, (scaled / np.sqrt(_sum_of_squares(scaled.T))[:, None]).astype(np.float32, order="C")


def downsample(points: np.ndarray, n: int, *, seed: int, sampler: str = "uniform") -> np.ndarray:
    """Choose n of the points [N, 3] of a cloud.

    Args:
        points: finite numbers [N, 3], an array or nested lists.
        n: number of points, from 1 to N.
        seed: a whole number, at least 0.
        sampler: "uniform" for a random subset in random order, or "fps" for farthest points from a random start.

    Returns:
        Indices int64 [n], all different.

    Raises:
        PointsetError: n is larger than N, or another argument is wrong.
    """
    points = np.asarray(points)
    if points.ndim != 2 or points.shape[1] != 3 or points.dtype.kind not in "fiu" or not np.isfinite(points).all():
        raise PointsetError(f"a cloud must be finite numbers [N, 3], got {list(points.shape)}")
    if not 1 <= n <= len(points):
        raise PointsetError(f"n must be from 1 to {len(points)}, the points of the cloud, got {n}")
    check("sampler", sampler, Literal["uniform", "fps"])
    generator = _generator(seed)
    if sampler == "uniform":
        return generator.permutation(len(points))[:n]
    return farthest_points(points, n, start=int(generator.integers(len(points))))


def seed_for(seed: int, name: str) -> int:
    """Return a seed for one shape, which depends only on the dataset's seed and the shape's name."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")


def _generator(seed: int) -> np.random.Generator:
    if seed < 0:
        raise PointsetError(f"seed must not be negative, got {seed}")
    return np.random.Generator(np.random.PCG64(seed))


def farthest_points(points: np.ndarray, n: int, *, start: int) -> np.ndarray:
    """Return the indices int64 [n] of points [N, 3], each of which is farthest from those before (Gonzalez 1985)."""
    columns = np.ascontiguousarray(points.T if points.dtype.kind == "f" else points.T.astype(np.float64))
    columns = np.ldexp(columns, -np.frexp(np.abs(columns).max(initial=0.0))[1])  # exact; squares stay in range
    chosen = np.empty(n, dtype=np.int64)
    distances = np.full(len(points), np.inf)  # squared, to the nearest chosen point
    candidate = start
    for i in range(n):
        chosen[i] = candidate
        np.minimum(distances, _sum_of_squares(columns - columns[:, candidate, None]), out=distances)
        distances[candidate] = -1.0  # so that an index is chosen only once, even among identical points
        candidate = int(distances.argmax())
    return chosen


def _draw_uniform(
    corners: np.ndarray, areas: np.ndarray, n: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points [n, 3] and their faces [n]: a face with probability proportional to its area, then a point in it."""
    cumulative = areas.cumsum()
    if cumulative[-1] == 0:
        raise MeshError(f"the mesh has no area to sample: every face is degenerate, {len(areas):,} in all")
    r0, r1, r2 = generator.random((n, 3)).T.copy()
    # The first cumulative sum above each number is never that of a face without area. Sorted numbers keep the search in
    # the processor's cache, which makes it several times faster.
    numbers = r0 * cumulative[-1]
    order, faces = numbers.argsort(), np.empty(n, dtype=np.int64)
    faces[order] = cumulative.searchsorted(numbers[order], side="right")
    # P = (1 - sqrt(r1)) A + sqrt(r1) (1 - r2) B + sqrt(r1) r2 C (Osada et al., Shape Distributions, ACM Transactions on
    # Graphics 21(4), 2002).
    root = np.sqrt(r1)
    a, b, c = (corner.take(faces, axis=1) for corner in corners)
    return ((1 - root) * a + root * (1 - r2) * b + root * r2 * c).T, faces


def _poisson_disk(candidates: np.ndarray, mesh: Mesh, n: int) -> np.ndarray:
    """Return the indices [n] of the candidates [N, 3] that remain after those too close to others are removed."""
    # Yuksel, Sample Elimination for Generating Poisson Disk Sample Sets, Computer Graphics Forum 34(2), 2015.
    open3d = import_open3d()
    vector3d = open3d.utility.Vector3dVector
    cloud = open3d.geometry.PointCloud(vector3d(candidates))
    # Open3D returns the remaining points but not their indices, so each point carries its index as its normal.
    cloud.normals = vector3d(np.repeat(np.arange(len(candidates), dtype=np.float64), 3).reshape(-1, 3))
    # Faces need not share corners: Open3D only uses the surface area of this mesh.
    corners = vector3d(mesh.vertices[mesh.faces].reshape(-1, 3))
    triangles = open3d.utility.Vector3iVector(np.arange(3 * len(mesh.faces), dtype=np.int32).reshape(-1, 3))
    surface = open3d.geometry.TriangleMesh(corners, triangles)
    left = np.asarray(surface.sample_points_poisson_disk(n, pcl=cloud).normals)[:, 0].astype(np.int64)
    if len(left) != n:
        raise PointsetError(f"Open3D's Poisson-disk sampling gave {len(left)} points instead of {n}: use sampler 'fps'")
    return left


def import_open3d() -> ModuleType:
    """Import `open3d`, whose wheel needs graphics and USB libraries that a minimal Debian 12 does not have."""
    try:
        return importlib.import_module("open3d")
    except (ImportError, OSError) as error:
        raise PointsetError(
            f"Open3D cannot be imported ({one_line(error, REPEATED)}): install the extra open3d, and if a system "
            "library is missing, on Debian `apt-get install libegl1 libgl1 libidn2-0 libudev1 libusb-1.0-0 libx11-6`"
        ) from error


def _sum_of_squares(columns: np.ndarray) -> np.ndarray:
    """Return squared lengths [N] of columns [3, N]; not by a dot product, as its rounding depends on the processor."""
    x, y, z = columns
    return x * x + y * y + z * z
