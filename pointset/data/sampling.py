"""From a mesh to points on its surface, the same for the same seed on any machine.

The samplers: "uniform" draws points independently, uniform in area. "fps" and "poisson" choose n of a larger
uniform draw so that they spread evenly: by farthest points, in the order in which they are found, or by Poisson
disk, in random order. Random numbers come from a PCG64 generator made from the seed; element-wise IEEE arithmetic,
square roots and running sums, which every processor rounds alike, turn them into points.
"""

import hashlib
from typing import Literal, overload

import numpy as np

from pointset.configuration import Count
from pointset.data.files.float32 import float32_fault
from pointset.data.files.meshes import Mesh, MeshError
from pointset.data.open3d_import import import_open3d
from pointset.data.options import SAMPLERS
from pointset.errors import PointsetError, quoted
from pointset.inputs import takes

CANDIDATES = {"uniform": 1, "fps": 4, "poisson": 5}
"""Uniform points drawn for each one that a sampler returns."""


@overload
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: Literal[False] = False
) -> np.ndarray: ...
@overload
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: Literal[True]
) -> tuple[np.ndarray, np.ndarray]: ...
@takes(mesh=Mesh, n=Count, seed=int, sampler=str, normals=bool)
def sample_points(
    mesh: Mesh, n: int, *, seed: int, sampler: str = "uniform", normals: bool = False
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Sample points on the surface of a mesh.

    Geometry is float64; the result is rounded to float32. With "uniform", the first k of n points are those of n = k.

    Args:
        mesh: faces without area get no points.
        n: number of points.
        seed: at least 0.
        sampler: "uniform", "fps" (farthest points) or "poisson" (Poisson disk; needs Open3D).
        normals: also return the unit normal of each point's face, by the right-hand rule.

    Returns:
        Points, float32 [n, 3], in the mesh's units and axes; with `normals`, also the normals, float32 [n, 3].

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
    if seed < 0:
        raise PointsetError(f"seed must not be negative, got {seed}")
    if sampler not in SAMPLERS:
        raise PointsetError(f"sampler must be one of {', '.join(SAMPLERS)}, got {quoted(sampler)}")
    corners = _corners(mesh)
    fault = float32_fault(corners.min(axis=2).min(axis=0), corners.max(axis=2).max(axis=0))
    if fault:
        raise MeshError(f"the mesh {fault}")
    crosses = _cross_products(corners)
    generator = np.random.Generator(np.random.PCG64(seed))
    areas = np.sqrt(_sum_of_squares(crosses))  # twice the areas, to be exact
    points, faces = _draw_uniform(corners, areas, CANDIDATES[sampler] * n, generator)
    if sampler == "fps":
        chosen = farthest_points(points, n, start=int(generator.integers(len(points))))
        points, faces = points[chosen], faces[chosen]
    elif sampler == "poisson":
        chosen = _poisson_disk(points, mesh, n)
        points, faces = points[chosen], faces[chosen]
    points = points.astype(np.float32, order="C")
    return (points, _directions(crosses.T[faces]).astype(np.float32, order="C")) if normals else points


@takes(points=np.ndarray, n=int, seed=int, sampler=str)
def downsample(points: np.ndarray, n: int, *, seed: int, sampler: str = "uniform") -> np.ndarray:
    """Choose n of the points [N, 3] of a cloud.

    Args:
        points: [N, 3], finite.
        n: from 1 to N.
        seed: at least 0.
        sampler: "uniform", a random subset in random order, or "fps", farthest points from a random start.

    Returns:
        Indices int64 [n], all different.

    Raises:
        PointsetError: n is more than there are points, or another argument is wrong.

    Example:
        >>> kept = pointset.data.downsample(X[0], 8, seed=0, sampler="fps")
        >>> X[0][kept].shape
        (8, 3)
    """
    if points.ndim != 2 or points.shape[1] != 3 or points.dtype.kind not in "fiu" or not np.isfinite(points).all():
        raise PointsetError(f"a cloud must be finite numbers [N, 3], got {list(points.shape)}")
    if not 1 <= n <= len(points):
        raise PointsetError(f"n must be from 1 to {len(points)}, the points of the cloud, got {n}")
    if seed < 0:
        raise PointsetError(f"seed must not be negative, got {seed}")
    generator = np.random.Generator(np.random.PCG64(seed))
    if sampler == "uniform":
        return generator.permutation(len(points))[:n]
    if sampler == "fps":
        return farthest_points(points, n, start=int(generator.integers(len(points))))
    raise PointsetError(f"sampler must be uniform or fps for clouds, got {quoted(sampler)}")


def seed_for(seed: int, name: str) -> int:
    """A seed for one shape, from the dataset's seed and its name: the same on any machine, in any order."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:8], "big")


def farthest_points(points: np.ndarray, n: int, *, start: int) -> np.ndarray:
    """Choose n of the points [N, 3] one by one, each the farthest from those chosen before (Gonzalez 1985).

    Returns:
        Indices int64 [n], in the order of choice; of equally far points the one with the lowest index.
    """
    columns = np.ascontiguousarray(_measurable(points).T)
    chosen = np.empty(n, dtype=np.int64)
    distances = np.full(len(points), np.inf)  # squared, to the nearest chosen point
    candidate = start
    for i in range(n):
        chosen[i] = candidate
        np.minimum(distances, _sum_of_squares(columns - columns[:, candidate, None]), out=distances)
        distances[candidate] = -1.0  # so that copies of one point are chosen once each
        candidate = int(distances.argmax())
    return chosen


def _measurable(points: np.ndarray) -> np.ndarray:
    """The points [N, 3], in a unit in which squares of their distances neither overflow nor vanish.

    The unit is a power of two, and axes along which nothing changes are set to zero: differences stay what they are.
    """
    if points.dtype.kind != "f":
        return points.astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float(np.max(high / 2 - low / 2))  # halved, for the difference itself may overflow
    kind = np.finfo(points.dtype)
    if extent == 0 or np.sqrt(kind.tiny) / kind.eps < extent < np.sqrt(kind.max) / 8:
        return points
    return np.ldexp(np.where(low == high, 0, points), -int(np.frexp(extent)[1]))


def _corners(mesh: Mesh) -> np.ndarray:
    """Coordinates of the faces' corners [3 corners, 3 axes, F]: long columns, on which arithmetic is fast."""
    return mesh.vertices.T.copy().take(mesh.faces.T, axis=1).swapaxes(0, 1)


def _cross_products(corners: np.ndarray) -> np.ndarray:
    """Cross products [3, F] of each face's edges from its first corner: its normal, twice its area long.

    No square of them overflows or vanishes: a mesh that float32 shows is between 1e-38 and 1e39 long.
    """
    x, y, z = corners[1] - corners[0]
    u, v, w = corners[2] - corners[0]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u])


def _draw_uniform(
    corners: np.ndarray, areas: np.ndarray, n: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw points [n, 3] and their faces [n]: faces by area, then uniformly within each.

    P = (1 - sqrt(r1)) A + sqrt(r1) (1 - r2) B + sqrt(r1) r2 C (Osada et al., Shape Distributions, ACM
    Transactions on Graphics 21(4), 2002).
    """
    cumulative = areas.cumsum()
    if cumulative[-1] == 0:
        raise MeshError(f"the mesh has no area to sample: each of its {len(areas)} faces is degenerate")
    r0, r1, r2 = generator.random((n, 3)).T.copy()
    faces = _first_above(cumulative, r0 * cumulative[-1])
    root = np.sqrt(r1)
    a, b, c = (corner.take(faces, axis=1) for corner in corners)
    return ((1 - root) * a + root * (1 - r2) * b + root * r2 * c).T, faces


def _first_above(cumulative: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Index of the first running sum above each number, which is never that of a face without area.

    Sorted numbers keep the search in the processor's cache: several times as fast.
    """
    order = numbers.argsort()
    found = np.empty(len(numbers), dtype=np.int64)
    found[order] = cumulative.searchsorted(numbers[order], side="right")
    return found


def _poisson_disk(candidates: np.ndarray, mesh: Mesh, n: int) -> np.ndarray:
    """Indices [n] of the candidates [N, 3] on a mesh that are left when those too close to others are eliminated.

    Yuksel, Sample Elimination for Generating Poisson Disk Sample Sets, Computer Graphics Forum 34(2), 2015, as
    Open3D does it; nothing in it is random.
    """
    open3d = import_open3d()
    vector3d = open3d.utility.Vector3dVector
    cloud = open3d.geometry.PointCloud(vector3d(candidates))
    # Open3D returns the points that are left but not which: each carries its index where its normal would be.
    cloud.normals = vector3d(np.repeat(np.arange(len(candidates), dtype=np.float64), 3).reshape(-1, 3))
    # Corners of their own for every face: what is read of the mesh are its areas.
    corners = vector3d(mesh.vertices[mesh.faces].reshape(-1, 3))
    triangles = open3d.utility.Vector3iVector(np.arange(3 * len(mesh.faces), dtype=np.int32).reshape(-1, 3))
    surface = open3d.geometry.TriangleMesh(corners, triangles)
    left = np.asarray(surface.sample_points_poisson_disk(n, pcl=cloud).normals)[:, 0].astype(np.int64)
    if len(left) != n:
        raise PointsetError(f"Open3D's Poisson-disk sampling gave {len(left)} points instead of {n}: use sampler 'fps'")
    return left


def _directions(vectors: np.ndarray) -> np.ndarray:
    """Unit vectors [N, 3]; each is scaled by its largest part first, since the square of a small one vanishes."""
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    return scaled / np.sqrt(_sum_of_squares(scaled.T))[:, None]


def _sum_of_squares(columns: np.ndarray) -> np.ndarray:
    """Squared lengths [N] of columns [3, N], term by term: a dot product may be fused and rounded differently."""
    x, y, z = columns
    return x * x + y * y + z * z
