"""The kind of GLB files: good ones, damages to the description and to the numbers."""

import itertools
import json
import struct
from random import Random
from typing import Any

import numpy as np

from fuzzing import mutations
from fuzzing.kinds.base import FileKind
from fuzzing.kinds.mesh_seeds import PLACES, POLYGONS
from fuzzing.oracles import glb
from pointset.data.readers.mesh_reader import read_mesh
from pointset.data.readers.meshes import Mesh

FLOATS = struct.pack("<18f", *(x for place in PLACES for x in place))
CORNERS = [corner for corners in POLYGONS for corner in corners]
TURN = [0.0, 0.6, 0.0, 0.8]
MATRIX = [1, 0, 0, 0, 0, 0, 2, 0, 0, -1, 0, 0, 5, 6, 7, 1]


def packed(document: dict[str, Any], binary: bytes, *more: tuple[bytes, bytes], indent: int | None = None) -> bytes:
    """A GLB file of a description and its bytes."""
    return chunked(json.dumps(document, indent=indent).encode(), (b"BIN\0", binary), *more)


def chunked(description: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """A GLB file of chunks, each padded to a multiple of four bytes."""
    body = b""
    for kind, data in ((b"JSON", description), *more):
        data += (b" " if kind == b"JSON" else b"\0") * (-len(data) % 4)
        body += struct.pack("<I4s", len(data), kind) + data
    return struct.pack("<4s2I", b"glTF", 2, 12 + len(body)) + body


def scene(nodes: list[dict[str, Any]], code: str = "H", mode: int = 4, corners: list[int] = CORNERS) -> bytes:
    """One mesh, its vertices and corners, in some nodes."""
    indices = struct.pack(f"<{len(corners)}{code}", *corners)
    component = {"B": 5121, "H": 5123, "I": 5125}[code]
    return packed(
        {
            "asset": {"version": "2.0", "generator": "by hand"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": nodes,
            "meshes": [{"name": "shape", "primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "mode": mode}]}],
            "accessors": [
                {
                    "bufferView": 0,
                    "componentType": 5126,
                    "count": 6,
                    "type": "VEC3",
                    "min": [-2, -0.5, -3],
                    "max": [2, 12346, 8],
                },
                {"bufferView": 1, "componentType": component, "count": len(corners), "type": "SCALAR"},
            ],
            "bufferViews": [
                {"buffer": 0, "byteLength": 72, "target": 34962},
                {"buffer": 0, "byteOffset": 72, "byteLength": len(indices)},
            ],
            "buffers": [{"byteLength": 72 + len(indices)}],
        },
        FLOATS + indices,
        indent=0 if code == "B" else None,
    )


def interleaved() -> bytes:
    """Positions beside normals, without indices; points beside triangles; a chunk that nobody knows; no scenes."""
    rows = b"".join(struct.pack("<6f", *PLACES[corner], 0, 0, 1) for corner in CORNERS)
    view = {"buffer": 0, "byteOffset": 4, "byteLength": len(rows), "byteStride": 24}
    positions = {"bufferView": 0, "componentType": 5126, "count": len(CORNERS), "type": "VEC3"}
    return packed(
        {
            "asset": {"version": "2.0"},
            "nodes": [{"mesh": 0, "scale": [2, 2, 0.5]}, {"children": [0], "translation": [1, 2, 3]}],
            "meshes": [
                {"primitives": [{"attributes": {"POSITION": 0}}, {"attributes": {"POSITION": 0}, "mode": 0}]},
            ],
            "accessors": [positions, {**positions, "byteOffset": 12}],
            "bufferViews": [view],
            "buffers": [{"byteLength": 4 + len(rows)}],
        },
        b"\xff" * 4 + rows,
        (b"MORE", b"anything"),
    )


GLB_FILES = [
    scene([{"mesh": 0}]),
    scene([{"children": [1, 2]}, {"mesh": 0, "translation": [1, 2, 3]}, {"mesh": 0, "matrix": MATRIX}], "I"),
    scene([{"mesh": 0, "rotation": TURN, "scale": [1, 2, 3]}, {"mesh": 0}], "B"),
    scene([{"mesh": 0}], "H", 5, [0, 1, 2, 3, 4, 5]),
    scene([{"mesh": 0}], "I", 6, [5, 1, 2, 3, 0]),
    interleaved(),
]
VALUES: list[Any] = [
    0,
    1,
    2,
    3,
    5,
    6,
    7,
    12,
    24,
    72,
    -1,
    1.0,
    0.5,
    1e40,
    2**40,
    True,
    None,
    "x",
    "VEC3",
    "SCALAR",
    [],
    {},
    [0],
    [[]],
]
VALUES += [5120, 5121, 5123, 5125, 5126, "2.1", "3.0", "data:application/octet-stream;base64,AAAA", "a.bin"]
KEYS = [
    "mesh",
    "children",
    "mode",
    "byteOffset",
    "byteStride",
    "matrix",
    "scale",
    "scene",
    "indices",
    "extensionsRequired",
]
KEYS += ["uri", "translation", "rotation", "bufferView", "name", "extras"]


def change_value(content: bytes, random: Random) -> bytes:
    """Change, drop, add or repeat one value of the description."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return content
    held = [value for value in walk(document) if value]
    if not held:
        return content
    holder = random.choice(held)
    place: Any = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
    how = random.randrange(5)
    if how == 0:
        del holder[place]
    elif how == 1 and isinstance(holder, dict):
        holder[random.choice(KEYS)] = random.choice(VALUES)
    elif how == 2 and isinstance(holder, list):
        holder.append(holder[place])
    elif type(holder[place]) is int and random.random() < 0.5:
        holder[place] += random.choice([-1, 1, 4])
    else:
        holder[place] = random.choice(VALUES)
    return json.dumps(document).encode()


def walk(value: Any) -> list[Any]:
    """All objects and lists of a description."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [value, *(found for one in inner for found in walk(one))]
    return []


def damage(content: bytes, random: Random) -> bytes:
    """Change the description, with lengths put right, or the bytes."""
    size = int.from_bytes(content[12:16], "little")
    part = random.random()
    if part < 0.45 and len(content) >= 20 + size:
        description = content[20 : 20 + size]
        change = change_value if part < 0.3 else random.choice(mutations.TEXT)
        description = change(description, random)
        description += b" " * (-len(description) % 4)
        rest = content[20 + size :]
        return (
            struct.pack("<4s4I", b"glTF", 2, 20 + len(description) + len(rest), len(description), 0x4E4F534A)
            + description
            + rest
        )
    start = random.choice([0, 20 + size, 20 + size])
    return content[:start] + random.choice(mutations.BINARY)(content[start:], random)


def difference(ours: Mesh, truth: np.ndarray) -> str:
    """Whether two sets of triangles are the same, in any order and sense, but for rounding."""
    found = ours.vertices[ours.faces]
    if found.shape != truth.shape:
        return f"{len(found)} triangles, not {len(truth)}"
    tolerance = 1e-5 * max(float(np.abs(truth).max()), 1e-30)
    left = list(range(len(truth)))
    for triangle in found:
        for place in left:
            same = (np.abs(triangle[list(order)] - truth[place]).max() for order in itertools.permutations(range(3)))
            if min(same) <= tolerance:
                left.remove(place)
                break
        else:
            return f"triangle {triangle.tolist()}, not one of {truth.tolist()}"
    return ""


GLB = FileKind(
    name="glb",
    suffix=".glb",
    seeds=GLB_FILES,
    mutations=[*[damage] * 20, mutations.joined(GLB_FILES)],
    read=read_mesh,
    oracle=glb.read,
    difference=difference,
)
