"""Read GLB, glTF and 3MF by trimesh (5.2); glTF that it reads as another mesh is refused, or read with a warning."""

import io
import json
import logging
import struct
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.formats import take_declared
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError, counted

logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_PACKED = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")
"""Extensions of glTF without which positions cannot be read."""
_FAN, _TRIANGLES = 6, 4
"""Modes of a primitive; lower modes are points and lines."""
_LARGEST = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The number that stands for 1 in normalised integers of a glTF, by their type."""


def parse_scene(content: bytes, name: str) -> Mesh:
    """Return the triangles of all parts of a file, moved to their places in its scene; vertices are not merged."""
    import trimesh  # takes half a second

    suffix = Path(name).suffix.lower()
    if suffix == ".gltf":
        content = json.dumps(_readable(json.loads(content), name)).encode()
    elif suffix == ".glb":
        if len(content) < 20 or content[:4] != b"glTF":
            raise PointsetError("expected a .glb file, which begins with the word glTF")
        _, length, chunk = struct.unpack_from("<3I", content, 4)
        content = take_declared(name, content, length)
        text = json.dumps(_readable(json.loads(content[20 : 20 + chunk]), name)).encode()
        text += b" " * (-len(text) % 4)
        rest = content[20 + chunk :]
        content = struct.pack("<4s2I2I", b"glTF", 2, 20 + len(text) + len(rest), len(text), 0x4E4F534A) + text + rest
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


def _readable(document: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the JSON of a glTF as trimesh reads it right; refuse what it would leave out or misread."""
    accessors, nodes, meshes = (document.get(key, []) for key in ("accessors", "nodes", "meshes"))
    primitives = [primitive for mesh in meshes for primitive in mesh["primitives"]]
    modes = [primitive.get("mode", _TRIANGLES) for primitive in primitives]
    used = [primitive["attributes"].get("POSITION") for primitive in primitives]
    used += [primitive.get("indices") for primitive in primitives]
    packed = [extension for extension in _PACKED if extension in document.get("extensionsRequired", ())]
    faults = {
        f"the extension {packed[:1]}": packed,
        "sparse accessors": any("sparse" in accessors[index] for index in used if index is not None),
        "instances": any("EXT_mesh_gpu_instancing" in node.get("extensions", ()) for node in nodes),
        "fans of triangles": _FAN in modes,
    }
    if fault := next((fault for fault, is_there in faults.items() if is_there), None):
        raise PointsetError(f"has {fault}, which would be read as another mesh: export it without")
    if others := sum(mode < _TRIANGLES for mode in modes):
        warnings.warn(f"{name}: {counted(others, 'part')} of points or lines left out", stacklevel=4)
    if any("skin" in node for node in nodes) or any(any(part.get("weights", ())) for part in [*nodes, *meshes]):
        warnings.warn(f"{name}: a skin or a morph is not applied to the mesh", stacklevel=4)
    _detach_skins(document)
    _move_scales_to_nodes(document)
    return document


def _detach_skins(document: dict[str, Any]) -> None:
    """Move meshes with a skin to the root, because their nodes do not place them."""
    nodes = document.get("nodes", [])
    for node in [node for node in nodes if node.pop("skin", None) is not None and "mesh" in node]:
        for scene in document.get("scenes", []):
            scene["nodes"].append(len(nodes))
        nodes.append({"mesh": node.pop("mesh")})


def _move_scales_to_nodes(document: dict[str, Any]) -> None:
    """Scale meshes of normalised integers by a further node, which trimesh applies."""
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
