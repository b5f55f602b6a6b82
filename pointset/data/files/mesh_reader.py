"""Reading a triangle mesh from a file."""

import warnings
from pathlib import Path

import numpy as np

from pointset.data.files.file_kinds import MESH_SUFFIXES
from pointset.data.files.meshes import Mesh, MeshError
from pointset.data.files.obj import parse_obj
from pointset.data.files.off import parse_off
from pointset.data.files.ply_meshes import parse_ply
from pointset.data.files.stl import parse_stl


def read_mesh(path: str | Path) -> Mesh:
    """Read a triangle mesh from an OFF, OBJ, PLY, STL, GLB or glTF file.

    Polygons are cut into triangles, vertices are not merged, and a file of several parts gives one mesh with each part
    in its place.

    Raises:
        MeshError: the file is missing, unreadable, of an unknown suffix, without triangles, or has a coordinate that is
            not finite or an index out of range.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        known = ", ".join(sorted(MESH_SUFFIXES))
        raise MeshError(f"{path}: a mesh file ends in one of {known}, not in {path.suffix or 'no suffix'!r}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MeshError(f"{path}: cannot be read: {error.strerror or error}") from error
    if suffix == ".off":
        return parse_off(content, str(path))
    if not content.strip():
        raise MeshError(f"{path}: expected a mesh, found an empty file")
    if suffix == ".obj":
        return parse_obj(content, str(path))
    if suffix == ".stl":
        return parse_stl(content, str(path))
    if suffix == ".ply":
        return parse_ply(content, path)
    return _read_with_trimesh(path, suffix)


def _read_with_trimesh(path: Path, suffix: str) -> Mesh:
    import trimesh

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of texture coordinates that not every face has
            scene = trimesh.load_scene(path, process=False)
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh) and len(part.faces)]
    except Exception as error:  # trimesh fails in a different way for each kind of broken file
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise MeshError(f"{path}: cannot be read as {suffix[1:].upper()}: {reason}") from error
    if not parts:
        raise MeshError(f"{path}: expected a mesh, found no triangles (a point cloud alone has none)")
    try:
        meshes = [Mesh(np.asarray(part.vertices), np.asarray(part.faces)) for part in parts]
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from error
    first_vertex = np.cumsum([0] + [len(mesh.vertices) for mesh in meshes])
    faces = [mesh.faces + first for mesh, first in zip(meshes, first_vertex, strict=False)]
    return Mesh(np.concatenate([mesh.vertices for mesh in meshes]), np.concatenate(faces))
