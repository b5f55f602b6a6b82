"""Read a triangle mesh from a file: STL here, GLB, glTF, 3MF and DAE with trimesh, others by modules of their own.

trimesh (5.2) reads some files as other meshes without a word: cut-off text of STL as fewer triangles, and glTF with
sparse accessors or fans of triangles.
"""

import io
import json
import logging
import re
import struct
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from pointset.data.readers.elements import parse_ply
from pointset.data.readers.formats import MESH_SUFFIXES, naming, require_shape_file
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.obj import parse_obj
from pointset.data.readers.off import parse_off
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file, require_file

REQUIRED_PACKAGES = {".3mf": "lxml", ".dae": "pycollada"}
GLTF_SUFFIXES = (".glb", ".gltf")
logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "KHR_mesh_quantization", "KHR_lights_punctual")
"""Beginnings of the names of glTF's extensions that do not change where points are."""
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
"""Bytes before the first record: a comment, and the number of triangles in the last four."""
_CORNER = rb"vertex\s+([-+.\deE]+)\s+([-+.\deE]+)\s+([-+.\deE]+)\s+"
_FACET = re.compile(
    rb"\bfacet\s+normal\s+\S+\s+\S+\s+\S+\s+outer\s+loop\s+" + 3 * _CORNER + rb"endloop\s+endfacet\b", re.IGNORECASE
)
_ONCE = re.compile(rb"\b(outer\s+loop|endloop|endfacet)\b", re.IGNORECASE)
"""Words that stand once in every facet."""


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
        parsers = {".off": parse_off, ".obj": parse_obj, ".stl": _parse_stl}
        return parsers.get(suffix, _parse_with_trimesh)(read_file(path), str(path))


def _parse_stl(content: bytes, name: str) -> Mesh:
    """The mesh in an STL file; a PointsetError if it is damaged, a warning if text lacks its last line."""
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    size = _HEADER + count * _RECORD.itemsize
    if content[:_HEADER].lower().split()[:1] == [b"solid"] and re.search(rb"(?i)\bfacet\s+normal\b", content[:4096]):
        corners = _corners_of_text(content, name)
    elif len(content) >= max(_HEADER, size) and not content[size:].strip(b"\0 \r\n"):
        corners = np.frombuffer(content, _RECORD, count, _HEADER)["corners"]
    else:
        found = f"has {len(content):,} bytes, and a binary STL of {count:,} triangles has {size:,}"
        raise PointsetError(f"{found}: it is cut off or damaged")
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def _corners_of_text(content: bytes, name: str) -> np.ndarray:
    """Coordinates [facets, 9]."""
    facets = list(_FACET.finditer(content))
    words = len(_ONCE.findall(content))
    rest = content[facets[-1].end() :].split() if facets else []
    if not facets or words != 3 * len(facets) or (rest and rest[0].lower() != b"endsolid"):
        raise PointsetError(f"has {len(facets):,} whole facets, and {words:,} words for 3 in each: it is damaged")
    if not rest:
        warnings.warn(f"{name}: does not end with endsolid: the last facets may be missing", stacklevel=2)
    return np.array([facet.groups() for facet in facets]).astype(np.float64)


def _parse_with_trimesh(content: bytes, name: str) -> Mesh:
    """The triangles of all parts of a file, moved to their places in its scene; vertices are not merged."""
    import trimesh  # takes half a second

    path = Path(name)
    suffix = path.suffix.lower()
    announced = _triangles(_document(content, suffix)) if suffix in GLTF_SUFFIXES else None
    resolver = trimesh.resolvers.FilePathResolver(str(path))
    for file in files_beside(path) if announced is not None else ():
        require_file(file)
    try:
        with np.errstate(all="ignore"):
            scene: Any = trimesh.load_scene(
                io.BytesIO(content), file_type=suffix[1:], resolver=resolver, process=False, skip_materials=True
            )
            mesh = scene.to_mesh()
    except ImportError as error:  # trimesh raises it for formats that need another library
        library = REQUIRED_PACKAGES.get(suffix, error.name)
        raise PointsetError(f"{suffix} files need {library}: pip install {library}") from error
    read = sum(len(part.faces) for part in scene.geometry.values() if isinstance(part, trimesh.Trimesh))
    if announced is not None and read != announced:
        raise PointsetError(f"announces {announced:,} triangles, and {read:,} can be read: it is cut off or damaged")
    if not len(mesh.faces):
        raise PointsetError("expected a mesh, found no triangles")
    return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _document(content: bytes, suffix: str) -> dict[str, Any]:
    """The JSON of a file in the format glTF."""
    if suffix == ".glb":
        if len(content) < 20 or content[:4] != b"glTF":
            raise PointsetError("expected a .glb file, which begins with the word glTF")
        length, chunk = struct.unpack_from("<2I", content, 8)
        if length != len(content) or 20 + chunk > length:
            raise PointsetError(f"has {len(content):,} bytes, and its header says {length:,}: it is cut off or damaged")
        content = content[20 : 20 + chunk]
    return dict(json.loads(content))


def _triangles(document: dict[str, Any]) -> int:
    """The number of triangles in all meshes of a glTF; refuse what trimesh would leave out or misread."""
    accessors, nodes, meshes = (document.get(name, []) for name in ("accessors", "nodes", "meshes"))
    primitives = [primitive for mesh in meshes for primitive in mesh["primitives"]]
    below = [child for node in nodes for child in node.get("children", ())]
    below += {root for scene in document.get("scenes", ()) for root in scene.get("nodes", ())}
    required = [name for name in document.get("extensionsRequired", ()) if not str(name).startswith(_HARMLESS)]
    faults = {
        f"the extension {quoted(required[0])}" if required else "": required,
        "sparse accessors": any("sparse" in accessor for accessor in accessors),
        "a skin": any("skin" in node for node in nodes),
        "instances": any("EXT_mesh_gpu_instancing" in node.get("extensions", ()) for node in nodes),
        "a morphed shape": any(any(item.get("weights", ())) for item in nodes + meshes),
        "fans of triangles": any(primitive.get("mode") == _FAN for primitive in primitives),
        "nodes in a circle, or below two others": len({*below}) < len(below),
    }
    if fault := next((name for name, is_there in faults.items() if is_there), None):
        raise PointsetError(f"has {fault}, which would be read as another mesh: export it without")
    count = 0
    for primitive in primitives:
        mode = primitive.get("mode", _TRIANGLES)
        corners = int(accessors[primitive.get("indices", primitive["attributes"]["POSITION"])]["count"])
        count += {_TRIANGLES: corners // 3, _STRIP: max(0, corners - 2)}.get(mode, 0)
    return count


def names_of_others(path: Path) -> list[str]:
    """The URIs in a .glb or .gltf file that name other files for its numbers; empty if it cannot be read."""
    try:
        buffers = _document(read_file(path), path.suffix.lower()).get("buffers", [])
        uris = [str(buffer["uri"]) for buffer in buffers if isinstance(buffer, dict) and "uri" in buffer]
    except (PointsetError, ValueError, TypeError, RecursionError):
        return []
    return [uri for uri in uris if "base64," not in uri]  # as trimesh tells them apart


def files_beside(path: Path) -> list[Path]:
    """The files that `names_of_others` names, as far as they are there."""
    files = [path.parent / unquote(name) for name in names_of_others(path) if "\0" not in name]
    return [file for file in files if file.exists()]
