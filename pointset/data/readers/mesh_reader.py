"""Read a triangle mesh from a file."""

from pathlib import Path

from pointset.data.readers.formats import MESH_SUFFIXES, naming, require_shape_file
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.obj import parse_obj
from pointset.data.readers.off import parse_off
from pointset.data.readers.ply import parse_ply
from pointset.data.readers.stl import parse_stl
from pointset.data.readers.trimesh_meshes import parse_with_trimesh
from pointset.runs.files import read_file


def read_mesh(path: str | Path) -> Mesh:
    r"""Read a triangle mesh from an OFF, OBJ, PLY, STL, GLB, glTF, 3MF or DAE file.

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
    with naming(path, MeshError):
        require_shape_file(path, MESH_SUFFIXES)
        if suffix == ".ply":
            return parse_ply(path)
        content = read_file(path)
        if not content.strip():
            raise MeshError("expected a mesh, found an empty file")
        match suffix:
            case ".off":
                return parse_off(content, str(path))
            case ".obj":
                return parse_obj(content, str(path))
            case ".stl":
                return parse_stl(content, str(path))
            case _:
                return parse_with_trimesh(content, path)
