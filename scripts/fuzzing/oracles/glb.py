"""GLB (Khronos' glTF 2.0, chapters 3 and 4.4): the triangles of the default scene."""

import base64
import binascii
import itertools
import json
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzzing.oracles.words import Illegal, require

SIZES = {5121: "u1", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
MOVES = ("translation", "rotation", "scale")


def read(content: bytes) -> np.ndarray:
    """Triangles [F, 3, 3]."""
    document, binary = chunks(content)
    require(re.fullmatch(r"2\.[0-9]+", text(document.get("asset"), "version")) is not None, "another version")
    require(not document.get("extensionsRequired"), "an extension")
    nodes = array(document, "nodes")
    if "scenes" in document:
        scene = item(array(document, "scenes"), document.get("scene", 0))
        roots = array(scene, "nodes")
    else:
        children = [child for node in nodes for child in array(node, "children")]
        roots = [place for place in range(len(nodes)) if place not in children]
    found: list[np.ndarray] = []
    seen: set[int] = set()
    waiting = [(root, np.eye(4)) for root in roots]
    while waiting:
        place, above = waiting.pop()
        node = item(nodes, place)
        require(place not in seen, "a node twice")
        seen.add(place)
        transform = above @ local(node)
        waiting += [(child, transform) for child in array(node, "children")]
        if "mesh" in node:
            mesh = item(array(document, "meshes"), node["mesh"])
            require(bool(array(mesh, "primitives")), "a mesh without primitives")
            for primitive in array(mesh, "primitives"):
                corners = triangles(document, binary, primitive)
                with np.errstate(all="ignore"):
                    moved = corners @ transform[:3, :3].T + transform[:3, 3]
                require(bool(np.isfinite(moved).all()), "not finite")
                found.append(moved)
    require(bool(found) and sum(map(len, found)) > 0, "no triangles")
    return np.concatenate(found)


def chunks(content: bytes) -> tuple[dict, bytes]:
    """The description, and the bytes of the first buffer."""
    require(len(content) >= 20 and content[:4] == b"glTF", "no GLB")
    version, length = struct.unpack_from("<2I", content, 4)
    require(version == 2 and length == len(content), "version or length")
    found = []
    place = 12
    while place < length:
        require(place + 8 <= length, "cut off")
        size, kind = struct.unpack_from("<I4s", content, place)
        require(size % 4 == 0 and place + 8 + size <= length, "a chunk's length")
        found.append((kind, content[place + 8 : place + 8 + size]))
        place += 8 + size
    require(found[0][0] == b"JSON", "no JSON")
    kinds = [kind for kind, _ in found[1:]]
    require(b"JSON" not in kinds and b"BIN\0" not in kinds[1:], "a chunk twice")
    try:
        document = json.loads(found[0][1].decode("utf-8"), object_pairs_hook=once, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Illegal("JSON") from None
    require(isinstance(document, dict), "no object")
    return document, found[1][1] if kinds[:1] == [b"BIN\0"] else b""


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object that has every key once."""
    require(len({key for key, _ in pairs}) == len(pairs), "a key twice")
    return dict(pairs)


def refuse(word: str) -> None:
    """NaN and Infinity are not JSON."""
    raise Illegal(word)


def text(mapping: Any, key: str) -> str:
    """A string under a key."""
    require(isinstance(mapping, dict) and isinstance(mapping.get(key), str), key)
    return mapping[key]


def array(mapping: Any, key: str) -> list:
    """A list under a key, empty if there is none."""
    require(isinstance(mapping, dict) and isinstance(mapping.get(key, []), list), key)
    return mapping.get(key, [])


def item(values: list, place: Any) -> dict:
    """An object of a list."""
    require(type(place) is int and 0 <= place < len(values) and isinstance(values[place], dict), "an index")
    return values[place]


def count(mapping: dict, key: str, default: int | None = None, least: int = 0) -> int:
    """A whole number under a key."""
    value: Any = mapping.get(key, default)
    require(type(value) is int and value >= least, key)
    return value


def numbers(mapping: dict, key: str, default: list[float]) -> list[float]:
    """Finite numbers under a key, as many as by default."""
    values = mapping.get(key, default)
    require(isinstance(values, list) and len(values) == len(default), key)
    require(all(type(value) in (int, float) and abs(value) < 1e300 for value in values), key)
    return [float(value) for value in values]


def local(node: dict) -> np.ndarray:
    """A node's transform."""
    if "matrix" in node:
        require(not any(key in node for key in MOVES), "matrix and moves")
        return np.array(numbers(node, "matrix", [0.0] * 16)).reshape(4, 4).T
    x, y, z, w = numbers(node, "rotation", [0.0, 0.0, 0.0, 1.0])
    length = math.hypot(x, y, z, w)
    require(abs(length - 1) <= 1e-3, "a rotation that is not a unit quaternion")
    x, y, z, w = x / length, y / length, z / length, w / length
    turn = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    transform = np.eye(4)
    transform[:3, :3] = turn * numbers(node, "scale", [1.0] * 3)
    transform[:3, 3] = numbers(node, "translation", [0.0] * 3)
    return transform


def triangles(document: dict, binary: bytes, primitive: Any) -> np.ndarray:
    """Triangles [F, 3, 3] of one primitive, none for points and lines."""
    require(isinstance(primitive, dict), "a primitive")
    mode = count(primitive, "mode", 4)
    require(mode <= 6, "mode")
    if mode < 4:
        return np.empty((0, 3, 3))
    attributes = primitive.get("attributes")
    require(isinstance(attributes, dict) and "POSITION" in attributes, "no positions")
    places = numbers_of(document, binary, attributes["POSITION"], "VEC3", (5126,))
    require(bool(np.isfinite(places).all()), "not finite")
    order = list(range(len(places)))
    if "indices" in primitive:
        order = numbers_of(document, binary, primitive["indices"], "SCALAR", (5121, 5123, 5125))[:, 0].tolist()
    require(max(order) < len(places), "a vertex that is not there")
    return places[np.array(list(corners_of(mode, order)))].astype(np.float64)


def corners_of(mode: int, order: list[int]) -> Iterator[tuple[int, int, int]]:
    """Corners of triangles, strips and fans."""
    require(len(order) >= 3 and (mode != 4 or len(order) % 3 == 0), "corners")
    if mode == 4:
        yield from zip(order[::3], order[1::3], order[2::3], strict=True)
    elif mode == 5:
        yield from zip(order, order[1:], order[2:], strict=False)
    else:
        yield from ((order[0], a, b) for a, b in itertools.pairwise(order[1:]))


def numbers_of(document: dict, binary: bytes, place: Any, kind: str, types: tuple[int, ...]) -> np.ndarray:
    """The numbers [n, 1 or 3] of an accessor."""
    accessor = item(array(document, "accessors"), place)
    require(accessor.get("type") == kind and accessor.get("componentType") in types, "type of an accessor")
    require(type(accessor["componentType"]) is int, "type of an accessor")
    require("sparse" not in accessor, "sparse")
    view = item(array(document, "bufferViews"), accessor.get("bufferView"))
    component = np.dtype(SIZES[accessor["componentType"]])
    width = 3 if kind == "VEC3" else 1
    size = width * component.itemsize
    stride = size
    if "byteStride" in view:
        stride = count(view, "byteStride", least=4)
        require(width == 3 and stride % 4 == 0 and size <= stride <= 252, "stride")
    total = count(accessor, "count", least=1)
    start, length = count(accessor, "byteOffset", 0), count(view, "byteLength", least=1)
    require(start + stride * (total - 1) + size <= length, "an accessor beyond its view")
    data = buffer(document, binary, view.get("buffer"))
    offset = count(view, "byteOffset", 0)
    require(offset + length <= len(data), "a view beyond its buffer")
    rows = [np.frombuffer(data, component, width, offset + start + stride * row) for row in range(total)]
    return np.array(rows)


def buffer(document: dict, binary: bytes, place: Any) -> bytes:
    """The bytes of a buffer."""
    described = item(array(document, "buffers"), place)
    length = count(described, "byteLength", least=1)
    if "uri" in described:
        head, _, data = text(described, "uri").partition(",")
        require(head.startswith("data:") and head.endswith(";base64"), "a uri")
        try:
            binary = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise Illegal("base64") from None
        require(len(binary) >= length, "a buffer cut off")
    else:
        require(place == 0 and length <= len(binary) <= length + 3, "the length of the buffer")
    return binary[:length]
