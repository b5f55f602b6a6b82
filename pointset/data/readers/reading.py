"""Read a triangle mesh or a point cloud from a file of any format: a format is a line in a table here."""

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
"""Readers by suffix, from a path and the names of the features of points; other suffixes of clouds are text."""


def read_mesh(path: str | Path) -> Mesh:
    r"""Read a triangle mesh from an OFF, OBJ, PLY, STL, GLB, glTF, 3MF or DAE file.

    Polygons are triangulated, vertices are not merged, and a file with several parts gives one mesh.

    Args:
        path: the file, whose suffix determines the format.

    Returns:
        Vertices [V, 3] in the file's own units and axes, and triangles [F, 3]. A mesh far from the origin (map
        coordinates) is moved by its `corner`.

    Raises:
        MeshError: the file is missing, unreadable, of an unknown suffix, without triangles that have an area, or has a
            coordinate that is not finite or an index out of range.

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

    `.npy` and `.npz` hold an array [n, 3], [n, 6] (with normals) or with further columns, or records with fields x, y
    and z; an `.npz` of several arrays calls it "points", and normals [n, 3] "normals". `.ply`, `.obj` and `.off` must
    have no faces. `.las` and `.laz` (`pip install 'pointset-learn[las]'`) have the fields that laspy names, an
    intensity from 0 to 1, and colors of 16 bits, or 8 if all are below 256.

    `.xyz`, `.txt`, `.csv`, `.pts`, `.xyzn`, `.xyzrgb`, `.asc` and `.tsv` have a point per line, with numbers separated
    by blanks, commas or semicolons; a comma is not a decimal point. The number of points or the names of the columns
    may come first, and comments after `#` or `//`.

    Args:
        path: the file.
        normals: read the normals too, scaled to unit length.
        features: other features of each point, in this order: "colors", scaled to the range from 0 to 1 if they are
            integers (the full color of types of 16 bits is 65535, of others 255) or packed in a PCD file's field rgb;
            "columns", the further columns of files without names; or the name of a field, or of an array [n] or [n, f]
            of an `.npz` file.

    Returns:
        Points [n, 3] in the file's units and axes, with the wanted normals and features. A cloud far from the
        origin (UTM) is moved by its `corner` in float64, before it is rounded to float32.

    Warns:
        UserWarning: points without a position (NaN) are left out, or columns are taken for x, y and z by a guess.

    Raises:
        CloudError: the file is missing, of another kind, empty, cut off or damaged, has no x, y and z, lacks a feature,
            has a word that is not a number, or a feature that is not finite; float32 cannot represent the cloud, or all
            its points are at one place.

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
    """Read a mesh or a point cloud, as a PLY, OBJ or OFF file without faces is one; see `read_mesh` and `read_cloud`.

    Raises:
        PointsetError: the file cannot be read as either.
    """
    path = Path(path)
    with naming(path, PointsetError):
        shape = _read(path, SHAPE_SUFFIXES, normals, features)
        return _checked(shape) if isinstance(shape, Mesh) else _cloud(path, shape, normals, features)


def _read(path: Path, suffixes: Set[str], normals: bool = False, features: Sequence[str] = ()) -> Mesh | Columns:
    require_shape_file(path, suffixes)
    return READERS.get(path.suffix.lower(), tables.text_columns)(path, ["normals", *features] if normals else features)


def _checked(mesh: Mesh) -> Mesh:
    """Return a mesh whose faces have an area, near the origin."""
    if not any(_have_area(mesh.vertices[faces]) for faces in (mesh.faces[:1024], mesh.faces)):  # most often the first
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
    """Return the cloud of columns by name, without points that have no position."""
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
    require_finite(table)  # which names points as in the file
    start = 6 if normals else 3
    return require_cloud(table[placed, :start], table[placed, start:] if features else None)


def _table(columns: Columns, names: Sequence[str]) -> np.ndarray:
    """Return some columns float64 [n, names], integer colors as fractions."""
    types = [columns[name].dtype for name in names]
    colors = {name for group in (*COLOR_COLUMNS, ("colors",)) if {*group} <= {*names} for name in group}
    with np.errstate(invalid="ignore"):  # a signalling NaN
        table = np.stack([columns[name] for name in names], axis=1).astype(np.float64)
    for index, (name, kind) in enumerate(zip(names, types, strict=True)):
        if kind.kind in "iu" and (name in colors or name.startswith("colors ")):
            most = 65535 if kind.itemsize == 2 else 255
            table[:, index] /= most
            if table[:, index].min() < 0 or table[:, index].max() > 1:
                raise CloudError(f"has colors in whole numbers below 0 or above {most}: save them as fractions to 1")
    return table
