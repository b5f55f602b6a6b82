"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994), as Blender, MeshLab and scanners write it.

trimesh (5.2) refuses binary faces of several sizes, which Blender writes, strips of triangles, and bytes after the
data; plyfile reads all, and has a licence (GPL) that this package could not keep.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, Columns, named_columns
from pointset.data.readers.formats import MOST_HEADER, require_count, warn_of_rest
from pointset.data.readers.lines import flat_numbers, lines_of, plain_text, widths_of
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file, require_file

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
CORNERS = ("vertex_indices", "vertex_index")
Types = dict[str, tuple[np.dtype, ...]]
"""The types of properties by name: one, or for a list those of its length and its entries."""


class Ragged(NamedTuple):
    """A list of numbers for each entry, laid end to end."""

    values: np.ndarray
    sizes: np.ndarray


Properties = Mapping[str, np.ndarray | Ragged]


def ply_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """The columns of the vertices in a PLY file without faces."""
    elements = read_ply(path)
    if elements.get("face") or elements.get("tristrips"):
        raise PointsetError("is a mesh, among point clouds: keep them in two folders, or sample points on it")
    if "vertex" not in elements:
        raise PointsetError(f"expected points called vertex, found {quoted(', '.join(elements)) or 'nothing'}")
    columns = {name: column for name, column in elements["vertex"].items() if not isinstance(column, Ragged)}
    if not columns:
        raise PointsetError("expected a point cloud, found no point")
    return named_columns([*columns], columns.values())


def parse_ply(path: Path) -> Mesh:
    """The mesh in a PLY file, in the file's order."""
    elements = read_ply(path)
    vertex, face, strips = (elements.get(name, {}) for name in ("vertex", "face", "tristrips"))
    if not face and not strips:
        raise PointsetError("expected a mesh, found no faces: a point cloud alone has none")
    lists = next((column for name in CORNERS if isinstance(column := (face or strips).get(name), Ragged)), None)
    if lists is None or not {*AXES} <= {*vertex}:
        names = quoted(", ".join([*vertex, *face, *strips]))
        raise PointsetError(f"expected x, y and z of vertices and lists {CORNERS[0]} of faces, found {names}")
    if (lists.values % 1).any():
        raise PointsetError("has an index of a vertex that is not a whole number")
    vertices = np.stack([np.asarray(vertex[axis], np.float64) for axis in AXES], axis=1)
    corners = lists.values.astype(np.int64)
    if not face:
        return Mesh(vertices, _triangles_of_strips(corners))
    return mesh_of_polygons(vertices, corners, lists.sizes, str(path))


def _triangles_of_strips(corners: np.ndarray) -> np.ndarray:
    """The triangles [F, 3] of strips, which -1 separates; every second triangle of a strip is turned over."""
    triples = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
    starts = np.maximum.accumulate(np.where(corners[:-2] < 0, np.arange(1, len(triples) + 1), 0))
    odd = (np.arange(len(triples)) - starts) % 2 == 1
    triples[odd] = triples[odd][:, [1, 0, 2]]
    return triples[(triples >= 0).all(axis=1)]


def read_ply(path: Path) -> dict[str, Properties]:
    """The properties of each element that has entries (none for an empty one); bytes that follow are warned of."""
    require_file(path, None)
    with path.open("rb") as file:
        head = file.read(MOST_HEADER)
    first = re.search(rb"\r\n|\n|\r", head)
    line_end = rb"\r" if first and first[0] == b"\r" else rb"\r?\n"  # a \r may stand in a comment, or begin numbers
    end = re.search(line_end + rb"[ \t]*end_header(?:[ \t][^\r\n]*)?" + line_end, head)
    if end is None or head[:3] != b"ply":
        raise PointsetError("expected a header from ply to end_header: it is another kind of file, or cut off")
    order, elements = _header(re.split(line_end, head[: end.end()]))
    content: np.ndarray
    if order:
        content, offset = np.memmap(path, np.uint8, "r"), end.end()
    else:  # numbers of text are read as records of float64
        text = plain_text(read_file(path)[end.end() :])
        numbers = flat_numbers(text)
        if numbers is None:
            raise PointsetError("expected only numbers after its header: it is damaged")
        content, offset = numbers.view(np.uint8), 0
    read, widths = dict[str, Properties](), [np.zeros(0, np.int64)]
    for name, (count, types) in elements.items():
        stored = types if order else {own: (np.dtype("f8"),) * len(kinds) for own, kinds in types.items()}
        read[name], offset = _read_element(content, offset, count, stored)
        if not order:
            read[name] = {own: _typed(column, types[own][-1], own) for own, column in read[name].items()}
        lists = [column.sizes for column in read[name].values() if isinstance(column, Ragged)]
        widths.append(sum(lists, np.full(count, len(types))))
    if not order:
        expected = np.concatenate(widths)
        found = widths_of(lines_of(text))
        if not np.array_equal(found[: len(expected)], expected):
            raise PointsetError("has other lines than its header says: it is cut off or damaged")
    if order:
        warn_of_rest(path, content[offset:])
    else:
        warn_of_rest(path, content[offset:].view(np.float64), "numbers")
    return read


def _typed(column: np.ndarray | Ragged, kind: np.dtype, name: str) -> np.ndarray | Ragged:
    """Numbers of text in their type."""
    if isinstance(column, Ragged):
        return column
    with np.errstate(all="ignore"):
        typed = column.astype(kind)
    if kind.kind in "iu" and (typed != column).any():
        raise PointsetError(f"expected whole numbers of the type {kind} for {quoted(name)}")
    return typed


def _header(lines: Sequence[bytes]) -> tuple[str, dict[str, tuple[int, Types]]]:
    """Byte order (empty for text), and the number of entries and the types of each element."""
    order, elements, types = None, dict[str, tuple[int, Types]](), Types()
    for words in (line.decode("utf-8", "replace").split() for line in lines[1:-1]):
        match words:
            case [] | ["comment" | "obj_info" | "end_header", *_]:
                continue
            case ["format", kind, _] if kind in ORDERS and order is None:
                order = ORDERS[kind]
                continue
            case ["element", name, count] if count.isdecimal() and name not in elements:
                types = {}
                elements[name] = int(count), types
                continue
            case ["property", "list", length, kind, name] if TYPES.get(length, "f")[0] != "f":
                kinds = [length, kind]
            case ["property", kind, name]:
                kinds = [kind]
            case _:
                kinds = []
        if not kinds or not {*kinds} <= {*TYPES} or not elements or name in types or order is None:
            raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(words))}")
        types[name] = tuple(np.dtype(order + TYPES[kind]) for kind in kinds)
    if order is None:
        raise PointsetError("expected the format of a PLY file in its header")
    return order, elements


def _read_element(content: np.ndarray, offset: int, count: int, types: Types) -> tuple[Properties, int]:
    """The properties of some entries, and the offset of what follows."""
    if not count or not types:
        return {}, offset
    fields: list[tuple] = []
    widths: dict[str, int] = {}
    for name, (*length, kind) in types.items():
        if length:  # lists are as long as that of the first entry in most files
            widths[name] = _length(content, offset + np.dtype(fields).itemsize, length[0])
            fields += [(f"{name} length", length[0]), (name, kind, (widths[name],))]
        else:
            fields.append((name, kind))
    record = np.dtype(fields)
    end = offset + count * record.itemsize
    if end > len(content) and not widths:
        require_count((len(content) - offset) // record.itemsize, count, "entries")
    entries = content[offset:end].view(record) if end <= len(content) else None
    if entries is None or any((entries[f"{name} length"] != width).any() for name, width in widths.items()):
        return _read_entries(content, offset, count, types)
    read: dict[str, np.ndarray | Ragged] = {name: entries[name] for name in types}
    for name, width in widths.items():
        read[name] = Ragged(entries[name].ravel(), np.full(count, width))
    return read, end


def _read_entries(content: np.ndarray, offset: int, count: int, types: Types) -> tuple[Properties, int]:
    """As `_read_element`, entry by entry, for lists that differ in size."""
    places: dict[str, tuple[list[int], list[int]]] = {name: ([], []) for name in types}
    for _ in range(count):
        for name, (*length, kind) in types.items():
            size = 1
            if length:
                size = _length(content, offset, length[0])
                offset += length[0].itemsize
            places[name][0].append(offset)
            places[name][1].append(size)
            offset += size * kind.itemsize
    if offset > len(content):
        raise PointsetError("has less than its header says: it is cut off or damaged")
    read: dict[str, np.ndarray | Ragged] = {}
    for name, (*length, kind) in types.items():
        starts, sizes = (np.array(numbers, np.int64) for numbers in places[name])
        lengths = sizes * kind.itemsize
        own = np.arange(lengths.sum()) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        values = content[own].view(kind)
        read[name] = Ragged(values, sizes) if length else values
    return read, offset


def _length(content: np.ndarray, start: int, kind: np.dtype) -> int:
    """The length of a list, which must end in the file."""
    length = content[start : start + kind.itemsize].view(kind)
    if len(length) != 1 or not 0 <= length[0] <= len(content) - start or length[0] % 1:
        raise PointsetError("has a list that is longer than the file: it is cut off or damaged")
    return int(length[0])
