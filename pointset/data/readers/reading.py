"""Read a triangle mesh or a point cloud from a file; `READERS` has a function for each format."""

import warnings
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from pathlib import Path

import numpy as np

from pointset.data.readers import las, obj, off, pcd, ply, scenes, stl, tables
from pointset.data.readers.clouds import (
    AXES,
    COLOR_COLUMNS,
    Cloud,
    CloudError,
    Columns,
    far_corner,
    feature_columns,
    require_cloud,
    require_finite,
)
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES, SHAPE_SUFFIXES, naming, require_shape_file
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.errors import PointsetError

READERS: dict[str, Callable[[Path, Sequence[str]], Mesh | Columns]] = {
    ".off": off.read_off,
    ".obj": obj.read_obj,
    ".ply": ply.read_ply,
    ".stl": stl.read_stl,
    ".dae": scenes.read_dae,
    ".glb": scenes.read_scene,
    ".gltf": scenes.read_scene,
    ".3mf": scenes.read_scene,
    ".npy": tables.npy_columns,
    ".npz": tables.npz_columns,
    ".pcd": pcd.pcd_columns,
    ".las": las.las_columns,
    ".laz": las.las_columns,
}
"""Reader of each suffix: a function of the path and the names of features. Clouds with other suffixes are text."""


def read_mesh(path: str | Path) -> Mesh:
    r"""Read a triangle mesh from an OFF, OBJ, PLY, STL, GLB, glTF, 3MF or DAE file.

    Polygons are triangulated, vertices are not merged, and a file with several parts gives one mesh.

    Args:
        path: the file, whose suffix determines the format.

    Returns:
        Vertices [V, 3] in the file's own units and axes, and triangles [F, 3]. If the vertices are far from the origin
        (map coordinates), `corner` is subtracted from them.

    Raises:
        MeshError: the file is missing or unreadable, its suffix is unsupported, no triangle has an area, a coordinate
            is not finite, or an index is out of range.

    Example:
        >>> Path("square.off").write_text("OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n")
        44
        >>> pointset.data.read_mesh("square.off").faces
        array([[0, 1, 2],
               [0, 2, 3]])
    """
    path = Path(path)
    with naming(path, MeshError):
        shape = _read(path, MESH_SUFFIXES)
        if not isinstance(shape, Mesh):
            raise MeshError("expected a mesh, found points without faces")
        return _checked(shape)


def read_cloud(path: str | Path, *, normals: bool = False, features: Sequence[str] = ()) -> Cloud:
    r"""Read a point cloud.

    `.npy` and `.npz` files hold an array of points [n, 3], of points with normals [n, 6] or with further columns, or
    records with fields x, y and z. If an `.npz` file has several arrays, those of points and normals are called
    "points" and "normals". `.ply`, `.obj` and `.off` files must have no faces. Fields of `.las` and `.laz` files (`pip
    install 'pointset-learn[las]'`) have their laspy names. Intensities are from 0 to 1. Colors have 16 bits, or 8 bits
    if all values are below 256.

    `.xyz`, `.txt`, `.csv`, `.pts`, `.xyzn`, `.xyzrgb`, `.asc` and `.tsv` files have one point per line. Numbers have
    decimal points and are separated by blanks, commas or semicolons. The number of points or the names of the columns
    may come first. Comments begin with `#` or `//`.

    Args:
        path: the file.
        normals: read the normals too, scaled to unit length.
        features: other features of each point, in the order of the result: "colors", from 0 to 1 (integers are divided
            by 65535 if they have 16 bits, else by 255); "columns", the further columns of a file without column names;
            or the name of a field, or of an array [n] or [n, f] in an `.npz` file.

    Returns:
        Points [n, 3] in the file's units and axes, with the requested normals and features. If the points are far from
        the origin (UTM), `corner` is subtracted in float64 before rounding to float32.

    Warns:
        UserWarning: points without a position (NaN) are left out, or the columns x, y and z are guessed.

    Raises:
        CloudError: the file is missing, empty, damaged or not a cloud; x, y, z or a requested feature is missing; a
            word is not a number; a feature is not finite; all points are at the same place; float32 cannot represent
            the cloud.

    Example:
        >>> Path("three.xyz").write_text("0 0 0\n1 0 0\n0 1 0\n")
        18
        >>> pointset.data.read_cloud("three.xyz").points
        array([[0., 0., 0.],
               [1., 0., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    path = Path(path)
    with naming(path, CloudError):
        shape = _read(path, CLOUD_SUFFIXES, normals, features)
        if isinstance(shape, Mesh):
            raise CloudError("is a mesh, among point clouds: keep them in two folders, or sample points on it")
        return _cloud(path, shape, normals, features)


def read_shape(path: str | Path, *, normals: bool = False, features: Sequence[str] = ()) -> Mesh | Cloud:
    """Read a mesh or a point cloud; see `read_mesh` and `read_cloud`. A file without faces is a point cloud.

    Raises:
        PointsetError: the file can be read neither as a mesh nor as a point cloud.
    """
    path = Path(path)
    with naming(path, PointsetError):
        shape = _read(path, SHAPE_SUFFIXES, normals, features)
        return _checked(shape) if isinstance(shape, Mesh) else _cloud(path, shape, normals, features)


def _read(path: Path, suffixes: Set[str], normals: bool = False, features: Sequence[str] = ()) -> Mesh | Columns:
    require_shape_file(path, suffixes)
    return READERS.get(path.suffix.lower(), tables.text_columns)(path, ["normals", *features] if normals else features)


def _checked(mesh: Mesh) -> Mesh:
    """Return a mesh, moved to the origin if it is far from there. Raise a MeshError if no face has an area."""
    if not any(_have_area(mesh.vertices[faces]) for faces in (mesh.faces[:1024], mesh.faces)):  # a few often suffice
        raise MeshError(f"has no area: every face is degenerate, {len(mesh.faces):,} in all")
    corner = far_corner(mesh.vertices.min(axis=0), mesh.vertices.max(axis=0))
    if not corner.any():
        return mesh
    x, y, z = corner.tolist()
    return replace(mesh, vertices=mesh.vertices - corner, corner=(x, y, z))


def _have_area(triangles: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        a, b, c = triangles.swapaxes(0, 1)
        return bool(np.cross(b - a, c - a).any())


def _cloud(path: Path, columns: Columns, normals: bool, features: Sequence[str]) -> Cloud:
    """Return the cloud of these columns, without points that have no position."""
    if not len(columns["x"]):
        raise CloudError("expected a point cloud, found no point")
    wanted = ["normals", *features] if normals else features
    names = [*AXES, *(name for feature in wanted for name in feature_columns(feature, tuple(columns)))]
    table = _table(columns, names)
    placed = np.isfinite(table[:, :3]).all(axis=1)
    if not placed.any():
        raise CloudError(f"none of its {len(table):,} points has a position that is finite")
    if not placed.all():
        left_out = f"{(~placed).sum():,} of {len(table):,} points have no position and were left out"
        warnings.warn(f"{path}: {left_out}", stacklevel=3)
        table[~placed] = 0
    require_finite(table)  # before points are left out, so that errors number points as in the file
    start = 6 if normals else 3
    return require_cloud(table[placed, :start], table[placed, start:] if features else None)


def _table(columns: Columns, names: Sequence[str]) -> np.ndarray:
    """Return the named columns as float64 [n, names], with integer colors scaled to the range from 0 to 1."""
    types = [columns[name].dtype for name in names]
    colors = {name for group in (*COLOR_COLUMNS, ("colors",)) if {*group} <= {*names} for name in group}
    with np.errstate(invalid="ignore"):  # for signalling NaNs
        table = np.stack([columns[name] for name in names], axis=1).astype(np.float64)
    for index, (name, kind) in enumerate(zip(names, types, strict=True)):
        if kind.kind in "iu" and (name in colors or name.startswith("colors ")):
            most = 65535 if kind.itemsize == 2 else 255
            table[:, index] /= most
            if table[:, index].min() < 0 or table[:, index].max() > 1:
                raise CloudError(f"has colors in whole numbers below 0 or above {most}: save fractions from 0 to 1")
    return table
