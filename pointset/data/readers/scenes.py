"""Read GLB, glTF and 3MF by trimesh (5.2); glTF that it reads as another mesh is refused, or read with a warning."""

import io
import json
import logging
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.formats import require_count, warn_of_rest
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError, counted, quoted

GLTF_SUFFIXES = (".glb", ".gltf")
logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_PACKED = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")
"""Extensions of glTF without which positions cannot be read."""
_POINTS, _FAN = 0, 6
_LINES = (1, 2, 3)
_LARGEST = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The number that stands for 1 in normalised integers of a glTF, by their type."""


def parse_scene(content: bytes, name: str) -> Mesh:
    """Return the triangles of all parts of a file, moved to their places in its scene; vertices are not merged."""
    import trimesh  # takes half a second

    suffix = Path(name).suffix.lower()
    if suffix in GLTF_SUFFIXES:
        document = _document(content, suffix)
        if suffix == ".glb":
            length = int.from_bytes(content[8:12], "little")
            warn_of_rest(name, content[length:])
            content = content[:length]
        if str(document.get("asset", {}).get("version", 2)).startswith("1"):
            raise PointsetError("is a glTF of version 1, which is not read: convert it to version 2")
        _require_plain(document)
        _warn_of_others(document, name)
        if _detach_skins(document) | _move_scales_to_nodes(document):
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
    """Return the JSON of a file in the format glTF."""
    if suffix == ".glb":
        if len(content) < 20 or content[:4] != b"glTF":
            raise PointsetError("expected a .glb file, which begins with the word glTF")
        length, chunk = struct.unpack_from("<2I", content, 8)
        require_count(min(len(content), length), length, "bytes")
        content = content[20 : 20 + chunk]
    return dict(json.loads(content))


def _with_document(content: bytes, document: dict[str, Any], suffix: str) -> bytes:
    """Return the file with another JSON."""
    text = json.dumps(document).encode()
    if suffix == ".gltf":
        return text
    text += b" " * (-len(text) % 4)
    rest = content[20 + int.from_bytes(content[12:16], "little") :]
    return struct.pack("<4s2I2I", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest


def _primitives(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [primitive for mesh in document.get("meshes", []) for primitive in mesh["primitives"]]


def _require_plain(document: dict[str, Any]) -> None:
    """Refuse what trimesh would leave out or misread."""
    accessors, primitives = document.get("accessors", []), _primitives(document)
    packed = [name for name in _PACKED if name in document.get("extensionsRequired", ())]
    used = [primitive["attributes"].get("POSITION") for primitive in primitives]
    used += [primitive.get("indices") for primitive in primitives]
    instanced = any("EXT_mesh_gpu_instancing" in node.get("extensions", ()) for node in document.get("nodes", []))
    faults = {
        f"the extension {quoted(packed[0])}" if packed else "": packed,
        "sparse accessors": any("sparse" in accessors[index] for index in used if index is not None),
        "instances": instanced,
        "fans of triangles": any(primitive.get("mode") == _FAN for primitive in primitives),
    }
    if fault := next((name for name, is_there in faults.items() if is_there), None):
        raise PointsetError(f"has {fault}, which would be read as another mesh: export it without")


def _warn_of_others(document: dict[str, Any], name: str) -> None:
    """Warn of points and lines beside triangles, and of skins and morphs, which move vertices."""
    accessors, nodes, meshes = (document.get(key, []) for key in ("accessors", "nodes", "meshes"))
    points = sum(
        accessors[primitive["attributes"]["POSITION"]]["count"]
        for primitive in _primitives(document)
        if primitive.get("mode") == _POINTS
    )
    lines = sum(primitive.get("mode") in _LINES for primitive in _primitives(document))
    left_out = [counted(count, what) for count, what in ((points, "point"), (lines, "line part")) if count]
    if left_out:
        warnings.warn(f"{name}: {' and '.join(left_out)} beside the triangles are left out", stacklevel=4)
    moved = [what for what, key in (("a skin", "skin"), ("a morph", "weights")) if any(key in node for node in nodes)]
    moved += ["a morph"] * any(any(mesh.get("weights", ())) for mesh in meshes)
    if moved:
        warnings.warn(f"{name}: {' and '.join(dict.fromkeys(moved))} is not applied to the mesh", stacklevel=4)


def _detach_skins(document: dict[str, Any]) -> bool:
    """Move meshes with a skin to the root, because their nodes do not place them; True if there are any."""
    nodes, scenes = document.get("nodes", []), document.get("scenes", [])
    skinned = [node for node in nodes if "skin" in node and "mesh" in node]
    for node in skinned:
        node.pop("skin")
        for scene in scenes:
            scene["nodes"].append(len(nodes))
        nodes.append({"mesh": node.pop("mesh")})
    return bool(skinned)


def _move_scales_to_nodes(document: dict[str, Any]) -> bool:
    """Scale meshes of normalised integers by a further node, which trimesh applies; True if there are any."""
    nodes, accessors = document.get("nodes", []), document.get("accessors", [])
    scales = {}
    for number, mesh in enumerate(document.get("meshes", [])):
        positions = [accessors[primitive["attributes"]["POSITION"]] for primitive in mesh["primitives"]]
        most = {_LARGEST[position["componentType"]] if position.get("normalized") else 1 for position in positions}
        if len(most) > 1:
            raise PointsetError("has a mesh with positions of several types: export it as floats")
        if most - {1}:
            scales[number] = [1 / most.pop()] * 3
    for node in nodes[:]:
        if node.get("mesh") in scales:
            node.setdefault("children", []).append(len(nodes))
            nodes.append({"mesh": node["mesh"], "scale": scales[node.pop("mesh")]})
    return bool(scales)
