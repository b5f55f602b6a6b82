"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994): points by a memory map, and meshes.

trimesh reads PLY too, but not binary files whose faces differ in size (trimesh 5.2), and some cut-off text without a
word. Here every count of the header must fit the file.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, Columns, named_columns
from pointset.data.readers.formats import has_faces
from pointset.data.readers.lines import Lines, lines_after, read_header, whole_number
from pointset.data.readers.meshes import Mesh, cut_polygons
from pointset.errors import PointsetError, quoted

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
CORNERS = ("vertex_indices", "vertex_index")


@dataclass
class Element:
    """Entries with the same properties: a type by name, and for a list that of its length before it."""

    name: str
    count: int
    properties: dict[str, tuple[np.dtype, ...]] = field(default_factory=dict)


class Ragged(NamedTuple):
    """A list of numbers for each entry, laid end to end."""

    values: np.ndarray
    sizes: np.ndarray


Properties = dict[str, np.ndarray | Ragged]


def ply_columns(path: Path) -> Columns:
    """The columns of the vertices in a PLY file without faces; a PointsetError if it is another file, or damaged."""
    if has_faces(path):
        raise PointsetError("is a mesh, among point clouds: keep them in two folders, or sample points on it")
    elements = read_elements(path, *_header(path))
    vertices = elements.get("vertex")
    if not vertices:
        raise PointsetError(f"expected points called vertex, found {quoted(', '.join(elements))}")
    columns = {name: column for name, column in vertices.items() if not isinstance(column, Ragged)}
    return named_columns([*columns], columns.values())


def parse_ply(path: Path) -> Mesh:
    """The mesh in a PLY file, in the file's order; a PointsetError if it is another file, damaged, or has no faces."""
    elements = read_elements(path, *_header(path))
    if elements.get("tristrips"):
        raise PointsetError("has strips of triangles, which are not supported: save it with faces")
    vertex, face = (elements.get(name, {}) for name in ("vertex", "face"))
    if not face:
        raise PointsetError("expected a mesh, found no faces: a point cloud alone has none")
    lists = next((face[name] for name in CORNERS if isinstance(face.get(name), Ragged)), None)
    if lists is None or not {*AXES} <= {*vertex}:
        names = quoted(", ".join([*vertex, *face]))
        raise PointsetError(f"expected x, y and z of vertices and lists {CORNERS[0]} of faces, found {names}")
    vertices = np.stack([np.asarray(vertex[axis], np.float64) for axis in AXES], axis=1)
    corners, sizes = lists[0].astype(np.int64), lists[1]
    if len(corners) and (corners.min() < 0 or corners.max() >= len(vertices)):
        raise PointsetError(f"expected corners of faces from 0 to {len(vertices) - 1}, found {corners.max()}")
    has_area = sizes >= 3
    if not has_area.all():
        left_out = f"{(~has_area).sum():,} of {len(sizes):,} faces have less than 3 corners and were left out"
        warnings.warn(f"{path}: {left_out}", stacklevel=2)
        corners, sizes = corners[np.repeat(has_area, sizes)], sizes[has_area]
    return Mesh(vertices, cut_polygons(vertices, corners, sizes))


def _header(path: Path) -> tuple[str, list[Element], int]:
    """Byte order (empty for text), elements, and the offset of the data."""
    header, offset = read_header(path, "end_header")
    words = [line for line in header[1:-1] if line[0] not in ("comment", "obj_info")]
    orders = [ORDERS.get(line[1]) for line in words if line[0] == "format" and len(line) == 3]
    if header[0] != ["ply"] or len(orders) != 1 or orders[0] is None:
        raise PointsetError("expected a PLY file, which begins with ply and its format")
    elements: list[Element] = []
    for line in words:
        match line:
            case ["format", _, _]:
                continue
            case ["element", name, count] if whole_number(count) >= 0:
                elements.append(Element(name, whole_number(count)))
                continue
            case ["property", "list", length, kind, name] if TYPES.get(length, "f")[0] != "f":
                kinds = [length, kind]
            case ["property", kind, name]:
                kinds = [kind]
            case _:
                kinds = []
        if not kinds or not {*kinds} <= {*TYPES} or not elements or name in elements[-1].properties:
            raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(line))}")
        elements[-1].properties[name] = tuple(np.dtype(orders[0] + TYPES[kind]) for kind in kinds)
    return orders[0], elements, offset


def read_elements(path: Path, order: str, elements: Sequence[Element], offset: int) -> dict[str, Properties]:
    """The properties of each element, as text without a byte order; the file must have exactly their entries."""
    read: dict[str, Properties] = {}
    if not order:
        lines, first = lines_after(path, offset), 0
        expected = sum(element.count for element in elements)
        if len(lines) != expected:
            found = f"has {len(lines):,} lines after its header, which says {expected:,}"
            raise PointsetError(f"{found}: it is cut off or damaged")
        for element in elements:
            read[element.name] = _read_text(lines[first : first + element.count], element) if element.count else {}
            first += element.count
        return read
    content = np.memmap(path, np.uint8, "r")
    for element in elements:
        read[element.name], offset = _read_binary(content, offset, element) if element.count else ({}, offset)
    if content[offset:].any():
        raise PointsetError(f"has {len(content) - offset:,} bytes more than its header says: it is damaged")
    return read


def _read_binary(content: np.ndarray, offset: int, element: Element) -> tuple[Properties, int]:
    """The properties of at least one entry, and the offset of what follows."""
    fields: list[tuple] = []
    widths: dict[str, int] = {}
    for name, (*length, kind) in element.properties.items():
        if length:
            start = offset + np.dtype(fields).itemsize
            first = content[start : start + length[0].itemsize].tobytes()
            widths[name] = min(int.from_bytes(first, _order(length[0])), len(content))
            fields += [(f"{name} length", length[0]), (name, kind, (widths[name],))]
        else:
            fields.append((name, kind))
    record = np.dtype(fields)
    end = offset + element.count * record.itemsize
    entries = content[offset:end].view(record) if end <= len(content) else None
    if entries is None and not widths:
        raise PointsetError(f"has {len(content):,} bytes, fewer than its header says: it is cut off")
    # Lists are as long as that of the first entry in most files.
    if entries is None or any((entries[f"{name} length"] != width).any() for name, width in widths.items()):
        return _read_entries(content, offset, element)
    read: Properties = {name: entries[name] for name in element.properties}
    for name, width in widths.items():
        read[name] = Ragged(entries[name].ravel(), np.full(len(entries), width))
    return read, end


def _read_entries(content: np.ndarray, offset: int, element: Element) -> tuple[Properties, int]:
    """As `_read_binary`, entry by entry, for lists that differ in size."""
    raw = content.tobytes()
    places: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in element.properties}
    for _ in range(element.count):
        for name, (*length, kind) in element.properties.items():
            size = 1
            if length:
                start, offset = offset, offset + length[0].itemsize
                size = int.from_bytes(raw[start:offset], _order(length[0]))
            places[name][0].append(offset)
            places[name][1].append(size)
            offset += size * kind.itemsize
        if offset > len(raw):
            raise PointsetError(f"has {len(raw):,} bytes, fewer than its header says: it is cut off")
    read: Properties = {}
    for name, (*length, kind) in element.properties.items():
        starts, sizes = (np.array(numbers, np.int64) for numbers in places[name])
        values = content[_ranges(starts, sizes * kind.itemsize)].view(kind)
        read[name] = Ragged(values, sizes) if length else values
    return read, offset


def _order(kind: np.dtype) -> Literal["big", "little"]:
    return "big" if kind.str[0] == ">" else "little"


def _read_text(lines: Lines, element: Element) -> Properties:
    numbers, widths = lines.numbers(), lines.widths
    ends = np.cumsum(widths)
    places, expected = ends - widths, f"expected the numbers of an entry of {element.name}"
    read: Properties = {}
    for name, (*length, kind) in element.properties.items():
        lines.require(places < ends, expected)
        sizes = numbers[places].astype(np.int64) if length else np.ones(len(lines), np.int64)
        places = places + len(length)
        lines.require((sizes >= 0) & (sizes <= ends - places), expected)
        values = numbers[_ranges(places, sizes)]
        with np.errstate(all="ignore"):
            typed = values.astype(kind)
        if kind.kind in "iu" and (typed != values).any():
            raise PointsetError(f"expected whole numbers of the type {kind} for {quoted(name)}")
        read[name] = Ragged(typed, sizes) if length else typed
        places = places + sizes
    lines.require(places == ends, expected)
    return read


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers from each start on, as many as its size, laid end to end."""
    return np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
