"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994): points by a memory map, and meshes.

trimesh reads PLY too, but not binary files whose faces differ in size (trimesh 5.2), and some cut-off text without a
word. Here every count of the header must fit the file.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.columns import AXES, Columns, usual_names
from pointset.data.readers.headers import read_header, whole_number
from pointset.data.readers.meshes import Mesh
from pointset.data.readers.polygons import cut_polygons
from pointset.data.readers.text import number_table
from pointset.errors import PointsetError, quoted

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
CORNERS = ("vertex_indices", "vertex_index")


@dataclass
class Element:
    """An element: entries with the same properties, whose names are mapped to a type, or to those of a list."""

    name: str
    count: int
    properties: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def has_lists(self) -> bool:
        """True if entries may differ in size."""
        return any(len(types) > 1 for types in self.properties.values())


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of numbers for each entry, laid end to end."""

    values: np.ndarray
    sizes: np.ndarray


Read = dict[str, dict[str, Any]]
"""Arrays [count] or `Lists` by element and property."""


def ply_columns(path: Path) -> Columns:
    """The columns of the vertices in a PLY file without faces.

    Raises:
        PointsetError: the file is not PLY, is cut off or too long, or is a mesh.
    """
    order, elements, offset = _header(path)
    if any(element.count and element.name in ("face", "tristrips") for element in elements):
        raise PointsetError(
            "is a mesh, among point clouds: keep meshes and clouds in two folders, or sample points on it"
        )
    vertices = _read(path, order, elements, offset).get("vertex", {})
    if not vertices:
        raise PointsetError(f"expected points called vertex, found {quoted(', '.join(one.name for one in elements))}")
    names = usual_names([*vertices])
    return {
        name: column for name, column in zip(names, vertices.values(), strict=True) if not isinstance(column, Lists)
    }


def parse_ply(path: Path) -> Mesh:
    """The mesh in a PLY file, with vertices and faces in the file's order; polygons are triangulated.

    Raises:
        PointsetError: the file is not PLY, is cut off or too long, or has no faces.
    """
    order, elements, offset = _header(path)
    if any(element.count and element.name == "tristrips" for element in elements):
        raise PointsetError("has strips of triangles, which are not supported: save it with faces")
    if not any(element.count and element.name == "face" for element in elements):
        raise PointsetError("expected a mesh, found no faces: a point cloud alone has none")
    read = _read(path, order, elements, offset)
    if not {*AXES} <= {*read.get("vertex", {})}:
        raise PointsetError(f"expected x, y and z of every vertex, found {quoted(', '.join(read.get('vertex', {})))}")
    vertices = np.stack([np.asarray(read["vertex"][axis], np.float64) for axis in AXES], axis=1)
    lists = next((read["face"][name] for name in CORNERS if isinstance(read["face"].get(name), Lists)), None)
    if lists is None:
        raise PointsetError(
            f"expected lists called vertex_indices of its faces, found {quoted(', '.join(read['face']))}"
        )
    corners, sizes = lists.values.astype(np.int64), lists.sizes
    if len(corners) and (corners.min() < 0 or corners.max() >= len(vertices)):
        raise PointsetError(f"expected corners of faces from 0 to {len(vertices) - 1}, found {corners.max()}")
    area = sizes >= 3
    if not area.all():
        warnings.warn(
            f"{(~area).sum():,} of {len(sizes):,} faces have less than 3 corners and were left out", stacklevel=2
        )
        corners, sizes = corners[np.repeat(area, sizes)], sizes[area]
    return Mesh(vertices, cut_polygons(vertices, corners, sizes))


def _header(path: Path) -> tuple[str, list[Element], int]:
    """Byte order (empty for text), elements, and the offset of the data."""
    header = read_header(path, "end_header")
    words = [line for _, line in header.lines[1:] if line[0] not in ("comment", "obj_info")]
    formats = [line for line in words if line[0] == "format"]
    if header.first.strip() != b"ply" or len(formats) != 1 or len(formats[0]) != 3 or formats[0][1] not in ORDERS:
        raise PointsetError("expected a PLY file, which begins with ply and its format")
    elements: list[Element] = []
    for line in [line for line in words[:-1] if line[0] != "format"]:
        match line:
            case ["element", name, count] if whole_number(count) is not None:
                elements.append(Element(name, whole_number(count) or 0))
            case ["property", "list", length, kind, name] if (
                elements and TYPES.get(length, "f")[0] != "f" and kind in TYPES
            ):
                elements[-1].properties[name] = (TYPES[length], TYPES[kind])
            case ["property", kind, name] if elements and kind in TYPES and name not in elements[-1].properties:
                elements[-1].properties[name] = (TYPES[kind],)
            case _:
                raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(line))}")
    order = ORDERS[formats[0][1]]
    return order, elements, header.start_of_numbers if order else header.text


def _read(path: Path, order: str, elements: Sequence[Element], offset: int) -> Read:
    read = _read_binary(path, order, elements, offset) if order else _read_text(path, elements, offset)
    return {element.name: values for element, values in zip(elements, read, strict=True)}


def _read_binary(path: Path, order: str, elements: Sequence[Element], offset: int) -> list[dict[str, Any]]:
    size, read = path.stat().st_size, []
    cut_off = PointsetError(f"has {size:,} bytes, fewer than its header says: it is cut off")
    content = np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
    for element in elements:
        record = _uniform_record(element, order, content[offset:])
        entries = None
        if record is not None:
            end = offset + element.count * record.itemsize
            entries = content[offset:end].view(record) if end <= size else None
        if entries is not None and _is_uniform(entries, element):
            read.append(_columns_of(entries, element))
        elif not element.has_lists:
            raise cut_off
        else:
            values, end = _read_entries(content, offset, element, order)
            if end > size:
                raise cut_off
            read.append(values)
        offset = end
    if content[offset:].any():
        raise PointsetError(f"has {size:,} bytes, {size - offset:,} more than its header says: it is damaged")
    return read


def _uniform_record(element: Element, order: str, content: np.ndarray) -> np.dtype | None:
    """The type of an entry if all lists are as long as those of the first entry."""
    fields: list[Any] = []
    for name, types in element.properties.items():
        kinds = [np.dtype(order + kind) for kind in types]
        if len(kinds) > 1:
            start = np.dtype(fields).itemsize
            length = content[start : start + kinds[0].itemsize]
            if len(length) < kinds[0].itemsize or int(length.view(kinds[0])[0]) > len(content):
                return None
            fields.append((f"{name} length", kinds[0]))
            fields.append((name, kinds[1], (int(length.view(kinds[0])[0]),)))
        else:
            fields.append((name, kinds[0]))
    return np.dtype(fields)


def _is_uniform(entries: np.ndarray, element: Element) -> bool:
    lengths = [name for name, types in element.properties.items() if len(types) > 1]
    return all((entries[f"{name} length"] == entries.dtype[name].shape[0]).all() for name in lengths)


def _columns_of(entries: np.ndarray, element: Element) -> dict[str, Any]:
    return {
        name: entries[name]
        if len(types) == 1
        else Lists(entries[name].ravel(), np.full(len(entries), entries[name].shape[1]))
        for name, types in element.properties.items()
    }


def _read_entries(content: np.ndarray, offset: int, element: Element, order: str) -> tuple[dict[str, Any], int]:
    """Entry by entry; the second result is the offset after the last, beyond the file if that is cut off."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in element.properties}
    raw = content.tobytes()
    for _ in range(element.count):
        for name, types in element.properties.items():
            kinds, count = [np.dtype(order + kind) for kind in types], 1
            if len(kinds) > 1 and offset + kinds[0].itemsize <= len(raw):
                count = int(np.frombuffer(raw, kinds[0], 1, offset)[0])
                offset += kinds[0].itemsize
            end = offset + count * kinds[-1].itemsize
            if end > len(raw) or count < 0:
                return {}, len(raw) + 1
            parts[name].append(np.frombuffer(raw, kinds[-1], count, offset))
            offset = end
    return {name: _joined(arrays, len(element.properties[name]) > 1) for name, arrays in parts.items()}, offset


def _joined(arrays: Sequence[np.ndarray], lists: bool) -> Any:
    values = np.concatenate(arrays)
    return Lists(values, np.array([len(array) for array in arrays])) if lists else values


def _read_text(path: Path, elements: Sequence[Element], offset: int) -> list[dict[str, Any]]:
    lines = [line for line in path.read_bytes()[offset:].decode("latin-1").splitlines() if line.strip()]
    expected = sum(element.count for element in elements)
    if len(lines) != expected:
        raise PointsetError(
            f"has {len(lines):,} lines after its header, which says {expected:,}: it is cut off or damaged"
        )
    read, first = [], 0
    for element in elements:
        own = lines[first : first + element.count]
        first += element.count
        read.append(_text_lists(own, element) if element.has_lists else _text_columns(own, element))
    return read


def _text_columns(lines: Sequence[str], element: Element) -> dict[str, Any]:
    table = number_table(lines, len(element.properties), f"the element {element.name}")
    pairs = zip(element.properties.items(), table.T, strict=True)
    return {name: _typed(column, types[0]) for (name, types), column in pairs}


def _typed(column: np.ndarray, kind: str) -> np.ndarray:
    """Numbers rounded to the declared type, as in a binary file."""
    if kind[0] == "f":
        with np.errstate(over="ignore"):
            return column.astype(kind)
    bounds = np.iinfo(kind)
    if not ((column >= bounds.min) & (column <= bounds.max) & (column % 1 == 0)).all():
        raise PointsetError(f"expected whole numbers from {bounds.min} to {bounds.max}")
    return column.astype(kind)


def _text_lists(lines: Sequence[str], element: Element) -> dict[str, Any]:
    values: dict[str, list[float]] = {name: [] for name in element.properties}
    sizes: dict[str, list[int]] = {name: [] for name in element.properties}
    for line in lines:
        try:
            numbers = [float(word) for word in line.split()]
        except ValueError as error:
            raise PointsetError(f"expected numbers, found {quoted(line, 40)}") from error
        start = 0
        for name, types in element.properties.items():
            count = 1
            if len(types) > 1:
                count, start = int(numbers[start]) if start < len(numbers) else -1, start + 1
            values[name] += numbers[start : start + count]
            sizes[name].append(count)
            start += count
        if start != len(numbers) or min(sizes[name][-1] for name in sizes) < 0:
            raise PointsetError(f"expected the numbers of an entry of {element.name}, found {quoted(line, 40)}")
    read: dict[str, Any] = {}
    for name, types in element.properties.items():
        column = _typed(np.array(values[name]), types[-1])
        read[name] = Lists(column, np.array(sizes[name], np.int64)) if len(types) > 1 else column
    return read
