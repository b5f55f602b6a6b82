"""Read meshes with trimesh, behind checks of what the file announces: GLB, glTF, 3MF, DAE.

trimesh (5.2) reads some unusual glTF files as other meshes without a word: with sparse accessors, or fans of triangles.
"""

import io
import json
import logging
import struct
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file, require_file

NEEDED = {".3mf": "lxml", ".dae": "pycollada"}
GLTF_SUFFIXES = (".glb", ".gltf")
logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "KHR_mesh_quantization", "KHR_lights_punctual")
"""Beginnings of the names of glTF's extensions that do not change where points are."""
_TRIANGLES, _STRIP, _FAN = 4, 5, 6


def parse_with_trimesh(content: bytes, path: Path) -> Mesh:
    """The triangles of all parts of a file, moved to their places in its scene; vertices are not merged."""
    import trimesh  # takes half a second

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
        library = NEEDED.get(suffix, error.name)
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
    document = json.loads(content)
    if not isinstance(document, dict):
        raise PointsetError("expected the description of a scene, found something else")
    return document


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
