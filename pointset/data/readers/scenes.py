"""Read files that may have several parts: GLB, glTF and 3MF by trimesh, DAE (Khronos, "COLLADA 1.4.1") by pycollada.

trimesh (5.2) misreads some glTF files: these are corrected, refused or read with a warning. DAE files are read without
trimesh, which leaves out parts that a controller moves.
"""

import io
import json
import logging
import re
import struct
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.formats import take_declared
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, counted, one_line

logging.getLogger("trimesh").addHandler(logging.NullHandler())  # else Python prints what trimesh logs
_PACKED = ("KHR_draco_mesh_compression", "EXT_meshopt_compression", "KHR_meshopt_compression")
"""Extensions of glTF for compressed positions, which trimesh cannot read."""
_FAN, _TRIANGLES = 6, 4
"""Modes of a glTF primitive; modes below 4 are points and lines."""
_LARGEST = {5120: 127, 5121: 255, 5122: 32767, 5123: 65535}
"""The integer that stands for 1 in normalised positions of a glTF, by component type."""


def read_scene(path: Path, features: Sequence[str] = ()) -> Mesh:
    """Return one mesh of all parts of a file, each moved to its place in the scene. Vertices are not merged."""
    import trimesh  # the import takes half a second

    content, name, suffix = path.read_bytes(), str(path), path.suffix.lower()
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
    """Return glTF's JSON, changed so that trimesh reads it correctly. Refuse files that trimesh would still misread."""
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
    """Move meshes with a skin to the root, because glTF ignores the transforms of their nodes."""
    nodes = document.get("nodes", [])
    for node in [node for node in nodes if node.pop("skin", None) is not None and "mesh" in node]:
        for scene in document.get("scenes", []):
            scene["nodes"].append(len(nodes))
        nodes.append({"mesh": node.pop("mesh")})


def _move_scales_to_nodes(document: dict[str, Any]) -> None:
    """Add a node with the scale to each mesh of normalised integers, because trimesh does not normalise integers."""
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


def read_dae(path: Path, features: Sequence[str] = ()) -> Mesh:
    """Return the mesh of all polygons in the scene of a DAE file, with the upward axis that the file states.

    A part with a skin is read in its bind pose. Lines, and parts that cannot be read, are left out with a warning.
    """
    import collada  # an optional dependency

    content = re.sub(rb"(?<=\d),(?=\d)", b".", path.read_bytes())  # 3ds Max wrote decimal commas in some languages
    document = collada.Collada(io.BytesIO(content), ignore=[collada.common.DaeError])
    with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):  # about numpy's matrix class
        parts = [*document.scene.objects("geometry")]
        for controller in document.scene.objects("controller"):  # a morph is read as its base shape
            is_skin = hasattr(controller, "skin")
            source = None if is_skin else controller.original.source_geometry
            parts.append(source.bind(controller.matrix, {}) if source else controller.geometry)
        primitives = [primitive for part in parts for primitive in part.primitives()]
    is_line = [isinstance(primitive, collada.lineset.BoundLineSet) for primitive in primitives]
    lines = sum(len(primitive) for primitive, line in zip(primitives, is_line, strict=True) if line)
    faces = [part for part, line in zip(primitives, is_line, strict=True) if not line and part.vertex is not None]
    if document.errors:
        reason = one_line(document.errors[0], 100)
        warnings.warn(f"{path}: {counted(len(document.errors), 'part')} cannot be read: {reason}", stacklevel=2)
    if lines:
        warnings.warn(f"{path}: {lines:,} lines are left out, only polygons are read", stacklevel=2)
    if not faces:
        raise PointsetError("expected a mesh, found no triangles")
    firsts = np.cumsum([0, *(len(part.vertex) for part in faces)])
    corners = [np.asarray(part.vertex_index).ravel() + first for part, first in zip(faces, firsts[:-1], strict=True)]
    sizes = [np.diff(part.polyindex)[:, 0] if hasattr(part, "polyindex") else np.full(len(part), 3) for part in faces]
    vertices = np.concatenate([part.vertex for part in faces])
    mesh = mesh_of_polygons(vertices, np.concatenate(corners), np.concatenate(sizes), str(path))
    return replace(mesh, up=document.assetInfo.upaxis[0].lower())
