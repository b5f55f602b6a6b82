"""Read meshes with trimesh, behind checks of what the file announces: STL, GLB, glTF, 3MF, DAE.

trimesh (5.2) reads some cut-off or unusual files as other meshes without a word: text STL without its last line, glTF
with sparse accessors or fans of triangles. What a file announces is therefore counted here.
"""

import io
import json
import logging
import re
import struct
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from pointset.data.readers.meshes import Mesh
from pointset.data.readers.paths import read_regular
from pointset.errors import PointsetError, quoted

NEEDED = {".3mf": "lxml", ".dae": "pycollada"}
logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "KHR_mesh_quantization", "KHR_lights_punctual")
"""Beginnings of the names of glTF's extensions that do not change where points are."""
_SOLID = re.compile(rb"(?im)^[ \t]*(end)?solid\b[^\r\n]*")
_FACET = re.compile(rb"(?im)^[ \t]*facet[ \t]+normal\b")
_VERTEX = re.compile(rb"(?im)^[ \t]*vertex[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]*\r?$")
_END = re.compile(rb"(?im)^[ \t]*endfacet\b")


def parse_with_trimesh(path: Path) -> Mesh:
    """The triangles of all parts of a file, moved to their places in its scene; vertices are not merged.

    Raises:
        PointsetError: the file is cut off, damaged, or has what would be read as another mesh.
    """
    import trimesh  # takes half a second

    suffix, content = path.suffix.lower(), read_regular(path)
    faces = None
    if suffix == ".stl":
        content, faces = _checked_stl(content)
    elif suffix in (".glb", ".gltf"):
        faces = _check_gltf(_document(content, suffix))
    resolver = trimesh.resolvers.FilePathResolver(str(path))
    try:
        with np.errstate(all="ignore"):
            scene: Any = trimesh.load_scene(
                io.BytesIO(content), file_type=suffix[1:], resolver=resolver, process=False, skip_materials=True
            )
            parts = [part for part in scene.geometry.values() if isinstance(part, trimesh.Trimesh)]
            mesh = scene.to_mesh()
    except ImportError as error:  # trimesh raises it for formats that need another library
        library = NEEDED.get(suffix, error.name)
        raise PointsetError(f"{suffix} files need {library}: pip install {library}") from error
    read = sum(len(part.faces) for part in parts)
    if faces is not None and read != faces:
        raise PointsetError(f"announces {faces:,} triangles, and {read:,} can be read: it is cut off or damaged")
    if not len(mesh.faces):
        raise PointsetError("expected a mesh, found no triangles")
    return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _checked_stl(content: bytes) -> tuple[bytes, int]:
    """The content without padding, as trimesh reads it, and the number of triangles it announces."""
    count = int.from_bytes(content[80:84], "little")
    size = 84 + 50 * count
    if len(content) >= max(84, size) and not content[size:].strip(b"\0 \r\n") and not _is_text(content):
        return content[:size], count
    if not _is_text(content):
        raise PointsetError(
            f"has {len(content):,} bytes, and a binary STL of {count:,} triangles has {size:,}: it is damaged"
        )
    text = _SOLID.sub(lambda word: b"endsolid" if word[1] else b"solid", content)
    facets, corners, ends = (len(form.findall(text)) for form in (_FACET, _VERTEX, _END))
    if corners != 3 * facets or ends != facets:
        raise PointsetError(
            f"has {facets:,} facets with {corners:,} vertices and {ends:,} ends: it is cut off or damaged"
        )
    tail = text[max((end.end() for end in _END.finditer(text)), default=0) :].strip()
    if tail not in (b"", b"endsolid"):
        raise PointsetError("ends within a facet: it is cut off")
    if not tail:
        text = text.rstrip() + b"\nendsolid\n"
    return text, facets


def _is_text(content: bytes) -> bool:
    return content[:80].lower().split()[:1] == [b"solid"] and bool(_FACET.search(content[:4096]))


def _document(content: bytes, suffix: str) -> dict[str, Any]:
    """The JSON of a file in the format glTF."""
    if suffix == ".glb":
        if len(content) < 20 or content[:4] != b"glTF":
            raise PointsetError("expected a .glb file, which begins with the word glTF")
        length, chunk = struct.unpack_from("<I", content, 8)[0], struct.unpack_from("<I", content, 12)[0]
        if length != len(content) or 20 + chunk > length:
            raise PointsetError(f"has {len(content):,} bytes, and its header says {length:,}: it is cut off or damaged")
        content = content[20 : 20 + chunk]
    document = json.loads(content)
    if not isinstance(document, dict):
        raise PointsetError("expected the description of a scene, found something else")
    return document


def _check_gltf(document: dict[str, Any]) -> int:
    """Refuse what trimesh would leave out or misread; return the number of triangles in all meshes."""
    for name in document.get("extensionsRequired", ()):
        if not str(name).startswith(_HARMLESS):
            raise PointsetError(f"requires the extension {quoted(name)}, which is not supported: export without it")
    accessors, triangles = document.get("accessors", []), 0
    if any("sparse" in accessor for accessor in accessors):
        raise PointsetError("has sparse accessors, which are not supported: export the mesh in full")
    nodes, meshes = document.get("nodes", []), document.get("meshes", [])
    if any("skin" in node or "EXT_mesh_gpu_instancing" in node.get("extensions", ()) for node in nodes):
        raise PointsetError("has a skin or instances, which are not supported: export the mesh as it stands")
    if any(any(item.get("weights", ())) for item in nodes + meshes):
        raise PointsetError("has a morphed shape, which is not supported: export the mesh as it stands")
    for mesh in meshes:
        for primitive in mesh["primitives"]:
            mode = primitive.get("mode", 4)
            corners = int(accessors[primitive.get("indices", primitive["attributes"]["POSITION"])]["count"])
            triangles += {4: corners // 3, 5: max(0, corners - 2), 6: max(0, corners - 2)}.get(mode, 0)
    return triangles


def files_beside(path: Path) -> list[Path]:
    """The files that a .glb or .gltf file names for its numbers; empty if it cannot be read."""
    try:
        buffers = _document(path.read_bytes(), path.suffix.lower()).get("buffers", [])
        names = [buffer["uri"] for buffer in buffers if isinstance(buffer.get("uri"), str)]
    except (PointsetError, ValueError, AttributeError, TypeError, RecursionError):
        return []
    files = [path.parent / unquote(name) for name in names if not name.startswith("data:") and "\0" not in name]
    return [file for file in files if file.is_file()]
