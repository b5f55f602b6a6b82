"""Read GLB, glTF, 3MF and DAE by trimesh, and refuse the glTF that trimesh (5.2) reads as another mesh."""

import io
import json
import logging
import struct
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.formats import require_count, require_end
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError, quoted

GLTF_SUFFIXES = (".glb", ".gltf")
logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "KHR_mesh_quantization", "KHR_lights_punctual")
"""Beginnings of the names of glTF's extensions that do not change where points are."""
_FAN = 6
_LARGEST = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The number that stands for 1 in normalised integers of a glTF, by their type."""


def parse_scene(content: bytes, name: str) -> Mesh:
    """The triangles of all parts of a file, moved to their places in its scene; vertices are not merged."""
    import trimesh  # takes half a second

    suffix = Path(name).suffix.lower()
    if suffix in GLTF_SUFFIXES:
        document = _document(content, suffix)
        if suffix == ".glb":
            length = int.from_bytes(content[8:12], "little")
            require_end(name, len(content) - length)
            content = content[:length]
        _require_plain(document)
        if _move_scales_to_nodes(document):
            content = _with_document(content, document, suffix)
    with np.errstate(all="ignore"):
        scene: Any = trimesh.load_scene(
            io.BytesIO(content),
            file_type=suffix[1:],
            resolver=trimesh.resolvers.FilePathResolver(name),
            process=False,
            skip_materials=True,
        )
        mesh = scene.to_mesh()
    if not len(mesh.faces):
        raise PointsetError("expected a mesh, found no triangles")
    return Mesh(np.asarray(mesh.vertices), np.asarray(mesh.faces))


def _document(content: bytes, suffix: str) -> dict[str, Any]:
    """The JSON of a file in the format glTF."""
    if suffix == ".glb":
        if len(content) < 20 or content[:4] != b"glTF":
            raise PointsetError("expected a .glb file, which begins with the word glTF")
        length, chunk = struct.unpack_from("<2I", content, 8)
        require_count(min(len(content), length), length, "bytes")
        content = content[20 : 20 + chunk]
    return dict(json.loads(content))


def _with_document(content: bytes, document: dict[str, Any], suffix: str) -> bytes:
    """The file with another JSON."""
    text = json.dumps(document).encode()
    if suffix == ".gltf":
        return text
    text += b" " * (-len(text) % 4)
    rest = content[20 + int.from_bytes(content[12:16], "little") :]
    return struct.pack("<4s2I2I", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest


def _require_plain(document: dict[str, Any]) -> None:
    """Refuse what trimesh would leave out or misread."""
    accessors, nodes, meshes = (document.get(name, []) for name in ("accessors", "nodes", "meshes"))
    required = [name for name in document.get("extensionsRequired", ()) if not str(name).startswith(_HARMLESS)]
    faults = {
        f"the extension {quoted(required[0])}" if required else "": required,
        "sparse accessors": any("sparse" in accessor for accessor in accessors),
        "a skin": any("skin" in node for node in nodes),
        "instances": any("EXT_mesh_gpu_instancing" in node.get("extensions", ()) for node in nodes),
        "a morphed shape": any(any(item.get("weights", ())) for item in nodes + meshes),
        "fans of triangles": any(own.get("mode") == _FAN for mesh in meshes for own in mesh["primitives"]),
    }
    if fault := next((name for name, is_there in faults.items() if is_there), None):
        raise PointsetError(f"has {fault}, which would be read as another mesh: export it without")


def _move_scales_to_nodes(document: dict[str, Any]) -> bool:
    """Scale meshes of normalised integers by a node of their own, which trimesh obeys; True if there are any."""
    nodes, accessors = document.get("nodes", []), document.get("accessors", [])
    scales = {}
    for number, mesh in enumerate(document.get("meshes", [])):
        positions = [accessors[primitive["attributes"]["POSITION"]] for primitive in mesh["primitives"]]
        most = {_LARGEST[own["componentType"]] if own.get("normalized") else 1 for own in positions}
        if len(most) > 1:
            raise PointsetError("has a mesh with positions of several types: export it as floats")
        if most - {1}:
            scales[number] = [1 / most.pop()] * 3
    for node in nodes[:]:
        if node.get("mesh") in scales:
            node.setdefault("children", []).append(len(nodes))
            nodes.append({"mesh": node["mesh"], "scale": scales[node.pop("mesh")]})
    return bool(scales)
