"""Read the triangles of a glTF scene: nodes, meshes, primitives, accessors (glTF 2.0, sections 3.5 to 3.7).

Triangles, strips and fans are read; points and lines have no area and are skipped. The vertices of a primitive are all
of its accessor, as float64, transformed by its node and the node's ancestors. If the transform mirrors, the order of
the corners is reversed.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pointset.data.readers.json_items import Item
from pointset.errors import PointsetError

_INDEX_TYPES = {5121: "u1", 5123: "<u2", 5125: "<u4"}
_FLOAT = {5126: "<f4"}
_MOVES = ("translation", "rotation", "scale")
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
_MOST_STRIDE = 252
_MOST_BYTES = 64 << 20  # limit for the arrays of a small file that repeats its meshes
_MOST_RATIO = 100  # limit for the arrays, relative to the buffers, of a large file


class _Buffers(Protocol):
    found: dict[int, bytes]

    def read(self, index: int) -> bytes: ...


@dataclass
class _Parts:
    """The arrays of a mesh while it is read."""

    vertices: list[np.ndarray] = field(default_factory=list)
    faces: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    size: int = 0

    def require_room(self, more: int, buffers: _Buffers) -> None:
        """Raise a PointsetError if a file repeats its meshes so often that the arrays become too large."""
        self.size += more
        if self.size > max(_MOST_BYTES, _MOST_RATIO * sum(map(len, buffers.found.values()))):
            raise PointsetError(f"repeats its meshes to more than {self.size >> 20} MiB: export them once")


def read_scene(document: Item, buffers: _Buffers) -> tuple[np.ndarray, np.ndarray]:
    """Read the vertices float64 [V, 3] and faces int64 [F, 3] of the default scene.

    Raises:
        PointsetError: the document is wrong, or has no triangles; the message begins with the place in the document.
    """
    parts = _Parts()
    for node, transform in _nodes(document):
        if "mesh" in node:
            _add_mesh(document, buffers, node, transform, parts)
    if not parts.faces:
        raise PointsetError("expected a mesh, found no triangles (a point cloud alone has none)")
    return np.concatenate(parts.vertices), np.concatenate(parts.faces)


def _nodes(document: Item) -> Iterator[tuple[Item, np.ndarray]]:
    """The nodes of the default scene, parents first, with their global transforms [4, 4]."""
    count = len(document.array("nodes"))
    if "scenes" in document:
        roots = document.member("scenes", document.whole("scene", 0)).indices("nodes")
    else:
        below = {child for index in range(count) for child in document.member("nodes", index).indices("children")}
        roots = [index for index in range(count) if index not in below]
    seen: set[int] = set()
    waiting = [(root, np.eye(4)) for root in reversed(roots)]
    while waiting:
        index, above = waiting.pop()
        node = document.member("nodes", index)
        if index in seen:
            raise PointsetError(f"{node.place}: expected a node once in its scene, found it again")
        seen.add(index)
        with np.errstate(all="ignore"):
            transform = above @ _transform(node)
        waiting += [(child, transform) for child in reversed(node.indices("children"))]
        yield node, transform


def _transform(node: Item) -> np.ndarray:
    """The local transform [4, 4] of a node."""
    if "matrix" in node:
        if any(move in node for move in _MOVES):
            raise PointsetError(f"{node.place}: expected a matrix, or translation, rotation and scale, found both")
        return np.array(node.numbers("matrix", [0.0] * 16)).reshape(4, 4).T
    x, y, z, w = node.numbers("rotation", [0.0, 0.0, 0.0, 1.0])
    length = math.hypot(x, y, z, w)
    if abs(length - 1) > 1e-3:
        raise node.error("rotation", "a quaternion of length 1")
    x, y, z, w = x / length, y / length, z / length, w / length
    transform = np.eye(4)
    transform[:3, :3] = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    transform[:3, :3] *= node.numbers("scale", [1.0] * 3)
    transform[:3, 3] = node.numbers("translation", [0.0] * 3)
    return transform


def _add_mesh(document: Item, buffers: _Buffers, node: Item, transform: np.ndarray, parts: _Parts) -> None:
    mesh = document.member("meshes", node.whole("mesh"))
    if "skin" in node or "EXT_mesh_gpu_instancing" in node.item("extensions"):
        raise PointsetError(
            f"{node.place}: has a skin or instances, which are not supported: export the mesh as it stands"
        )
    if any(node.array("weights")) or any(mesh.array("weights")):
        raise PointsetError(f"{node.place}: has a morphed shape, which is not supported: export the mesh as it stands")
    if not mesh.array("primitives"):
        raise mesh.error("primitives", "a list of one at least")
    placed: dict[int, int] = {}
    for index in range(len(mesh.array("primitives"))):
        primitive = mesh.member("primitives", index)
        mode = primitive.whole("mode", _TRIANGLES)
        if mode > _FAN:
            raise primitive.error("mode", "a mode of 0 to 6")
        if mode < _TRIANGLES:
            continue
        source = primitive.item("attributes").whole("POSITION")
        points = _numbers(document, buffers, source, "VEC3", _FLOAT)
        order = np.arange(len(points))
        if "indices" in primitive:
            order = _numbers(document, buffers, primitive.whole("indices"), "SCALAR", _INDEX_TYPES)[:, 0]
            if order.max() >= len(points):
                raise PointsetError(
                    f"{primitive.place}: expected indices from 0 to {len(points) - 1}, found {order.max()}"
                )
        if len(order) < 3 or (mode == _TRIANGLES and len(order) % 3):
            raise PointsetError(f"{primitive.place}: expected three corners of each triangle, found {len(order)}")
        if source not in placed:  # primitives may share their vertices
            parts.require_room(24 * len(points), buffers)
            placed[source] = parts.count
            parts.vertices.append(_moved(points, transform, f"accessors[{source}]"))
            parts.count += len(points)
        parts.require_room(24 * len(order), buffers)
        faces = _triangles(order.astype(np.int64), mode) + placed[source]
        parts.faces.append(faces[:, ::-1] if np.linalg.det(transform[:3, :3]) < 0 else faces)


def _moved(points: np.ndarray, transform: np.ndarray, place: str) -> np.ndarray:
    with np.errstate(all="ignore"):  # signalling NaN and overflow are reported below
        vertices: np.ndarray = points.astype(np.float64)
        if not np.array_equal(transform, np.eye(4)):
            vertices = vertices @ transform[:3, :3].T + transform[:3, 3]
    wrong = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    if len(wrong):
        found = points[wrong[0]].tolist()
        raise PointsetError(
            f"{place}: expected finite coordinates, found {found} as vertex {wrong[0]}, before its transform"
        )
    return vertices


def _triangles(order: np.ndarray, mode: int) -> np.ndarray:
    """The triangles [n, 3] of a list, a strip or a fan of vertices."""
    if mode == _TRIANGLES:
        return order.reshape(-1, 3)
    if mode == _FAN:
        return np.stack([np.full(len(order) - 2, order[0]), order[1:-1], order[2:]], axis=1)
    strip = np.stack([order[:-2], order[1:-1], order[2:]], axis=1)
    strip[1::2] = strip[1::2, [0, 2, 1]]  # every second triangle of a strip has the opposite orientation
    return strip


def _numbers(document: Item, buffers: _Buffers, index: int, kind: str, types: dict[int, str]) -> np.ndarray:
    """The numbers [count, 1 or 3] of an accessor."""
    accessor = document.member("accessors", index)
    if accessor.values.get("type") != kind:
        raise accessor.error("type", kind)
    if accessor.whole("componentType") not in types:
        raise accessor.error("componentType", " or ".join(map(str, types)))
    if "sparse" in accessor:
        raise PointsetError(f"{accessor.place}: is sparse, which is not supported: export it in full")
    view = document.member("bufferViews", accessor.whole("bufferView"))
    component = np.dtype(types[accessor.whole("componentType")])
    width = 3 if kind == "VEC3" else 1
    size = stride = width * component.itemsize
    if "byteStride" in view:
        stride = view.whole("byteStride")
        if width == 1 or stride % 4 or not size <= stride <= _MOST_STRIDE:
            raise view.error("byteStride", f"a multiple of 4 from {size} to {_MOST_STRIDE}, only for vertices")
    count, start = accessor.whole("count", least=1), accessor.whole("byteOffset", 0)
    length, offset = view.whole("byteLength", least=1), view.whole("byteOffset", 0)
    if start + stride * (count - 1) + size > length:
        raise PointsetError(
            f"{accessor.place}: expected {count} numbers or vectors within {view.place}, which is shorter"
        )
    content = buffers.read(view.whole("buffer"))
    if offset + length > len(content):
        raise PointsetError(f"{view.place}: expected its bytes within the {len(content)} of its buffer")
    return np.ndarray((count, width), component, content, offset + start, (stride, component.itemsize))
