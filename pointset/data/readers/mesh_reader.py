"""Read a triangle mesh from a file."""

from collections.abc import Callable
from pathlib import Path

from pointset.data.readers.formats import MESH_SUFFIXES
from pointset.data.readers.gltf import parse_gltf
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.obj import parse_obj
from pointset.data.readers.off import parse_off
from pointset.data.readers.paths import path_fault, read_regular
from pointset.data.readers.ply_meshes import parse_ply
from pointset.data.readers.stl import parse_stl
from pointset.errors import PointsetError
from pointset.inputs import takes


@takes(path=str | Path)
def read_mesh(path: str | Path) -> Mesh:
    r"""Read a triangle mesh from an OFF, OBJ, PLY, STL, GLB or glTF file.

    Polygons are triangulated, vertices are not merged, and a file with several parts gives one mesh.

    Args:
        path: the file, whose suffix determines the format.

    Returns:
        Vertices [V, 3] in the file's own units and axes, and triangles [F, 3].

    Raises:
        MeshError: the file is missing, unreadable, of an unknown suffix, without triangles, or has a coordinate that is
            not finite or an index out of range.

    Example:
        >>> Path("square.off").write_text("OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n")
        44
        >>> pointset.data.read_mesh("square.off").faces
        array([[0, 1, 2],
               [0, 2, 3]])
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        if fault := path_fault(path):
            raise MeshError(f"{path}: {fault}")
        known = ", ".join(sorted(MESH_SUFFIXES))
        raise MeshError(f"{path}: a mesh file ends in one of {known}, not in {path.suffix or 'no suffix'!r}")
    try:
        content = read_regular(path)
    except PointsetError as error:
        raise MeshError(str(error)) from error
    if not content or content.isspace():
        raise MeshError(f"{path}: expected a mesh, found an empty file")
    return _PARSERS[suffix](content, path)


_PARSERS: dict[str, Callable[[bytes, Path], Mesh]] = {
    ".off": lambda content, path: parse_off(content, str(path)),
    ".obj": lambda content, path: parse_obj(content, str(path)),
    ".stl": lambda content, path: parse_stl(content, str(path)),
    ".ply": parse_ply,
    ".glb": parse_gltf,
    ".gltf": parse_gltf,
}
