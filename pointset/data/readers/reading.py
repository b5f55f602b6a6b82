"""Read a triangle mesh or a point cloud from a file of any format: a format is a line in a table here."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from pointset.data.readers import dae, las, obj, off, pcd, ply, scenes, stl, tables
from pointset.data.readers.clouds import (
    AXES,
    COLOR_COLUMNS,
    NORMAL_COLUMNS,
    Cloud,
    CloudError,
    Columns,
    far_corner,
    feature_columns,
    require_cloud,
    require_finite,
)
from pointset.data.readers.formats import CLOUD_SUFFIXES, MESH_SUFFIXES, is_mesh_file, naming, require_shape_file
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.runs.files import read_file

MESHES: dict[str, Callable[[bytes, str], Mesh]] = {
    ".off": off.parse_off,
    ".obj": obj.parse_obj,
    ".stl": stl.parse_stl,
    ".dae": dae.parse_dae,
}
"""Readers of meshes by suffix, from the content and the name of a file; PLY is mapped, others are read by trimesh."""
CLOUDS: dict[str, Callable[[Path, Sequence[str]], Columns]] = {
    ".npy": tables.npy_columns,
    ".npz": tables.npz_columns,
    ".ply": ply.ply_columns,
    ".obj": obj.obj_columns,
    ".off": off.off_columns,
    ".pcd": pcd.pcd_columns,
    ".las": las.las_columns,
    ".laz": las.las_columns,
}
"""Readers of point clouds by suffix, from a path and the names of the features; others are text."""


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
        require_shape_file(path, MESH_SUFFIXES)
        suffix = path.suffix.lower()
        mesh = (
            ply.parse_ply(path)
            if suffix == ".ply"
            else MESHES.get(suffix, scenes.parse_scene)(read_file(path), str(path))
        )
        if not _has_area(mesh):
            raise MeshError(f"has no area: every face is degenerate, {len(mesh.faces):,} in all")
        corner = far_corner(mesh.vertices.min(axis=0), mesh.vertices.max(axis=0))
        if not corner.any():
            return mesh
        x, y, z = corner.tolist()
        return replace(mesh, vertices=mesh.vertices - corner, corner=(x, y, z))


def _has_area(mesh: Mesh) -> bool:
    """Return True if a face has an area; most often one of the first has."""
    for faces in (mesh.faces[:1024], mesh.faces[1024:]):
        a, b, c = mesh.vertices[faces].swapaxes(0, 1)
        with np.errstate(all="ignore"):
            if np.cross(b - a, c - a).any():
                return True
    return False


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
    path, wanted = Path(path), [*["normals"] * normals, *features]
    columns = read_columns(path, wanted)
    with naming(path, CloudError):
        names = [*AXES, *(name for feature in wanted for name in feature_columns(feature, tuple(columns)))]
        table = _table(columns, names)
        placed = np.isfinite(table[:, :3]).all(axis=1)
        if not placed.any():
            raise CloudError(f"none of its {len(table):,} points has a position that is finite")
        if not placed.all():
            left_out = f"{(~placed).sum():,} of {len(table):,} points have no position and were left out"
            warnings.warn(f"{path}: {left_out}", stacklevel=2)
            table[~placed] = 0
        require_finite(table)  # which names points as in the file
        start = len(AXES) + len(NORMAL_COLUMNS) * normals
        return require_cloud(table[placed, :start], table[placed, start:] if features else None)


def read_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return all columns of a file of at least one point, by name; arguments and errors as of `read_cloud`."""
    with naming(path, CloudError):
        require_shape_file(path, CLOUD_SUFFIXES)
        if is_mesh_file(path):
            raise CloudError("is a mesh, among point clouds: keep them in two folders, or sample points on it")
        columns = CLOUDS.get(path.suffix.lower(), tables.text_columns)(path, features)
        if not len(columns["x"]):
            raise CloudError("expected a point cloud, found no point")
        return columns


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
