"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994), as Blender, MeshLab and scanners write it.

trimesh (5.2) is not used, because it refuses binary faces of different sizes (which Blender writes), triangle strips,
and bytes after the data. plyfile reads all of these, but its licence (GPL) does not fit this package.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, Columns, named_columns
from pointset.data.readers.formats import is_padding, require_count, warn_of_rest
from pointset.data.readers.lines import Lines, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, quoted

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"bool": "u1", "float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
MOST_HEADER = 1 << 20
"""Maximum number of bytes of the header."""
CORNERS = ("vertex_indices", "vertex_index")
_HEADER = re.compile(rb"\Aply[ \t]*(\r\n|\n|\r)(?s:.*?\1)??[ \t]*end_header[^\r\n]*\r??\1")
"""A header whose lines all end in the same way. Other carriage returns may be in a comment, or begin the data."""
Types = dict[str, tuple[np.dtype, ...]]
"""The types of properties by name. A list has two types, that of its length and that of its entries."""


class Ragged(NamedTuple):
    """One list of numbers per entry of an element: all numbers concatenated, and the sizes of the lists."""

    values: np.ndarray
    sizes: np.ndarray


Properties = Mapping[str, np.ndarray | Ragged]


def read_ply(path: Path, features: Sequence[str] = ()) -> Mesh | Columns:
    """Return the mesh of a PLY file or, if it has no faces, the columns of its points."""
    elements = read_elements(path)
    vertex, face, strips = (elements.get(name, {}) for name in ("vertex", "face", "tristrips"))
    if not face and not strips:
        if "vertex" not in elements:
            raise PointsetError(f"expected an element called vertex, found {quoted(', '.join(elements)) or 'nothing'}")
        columns = {name: column for name, column in vertex.items() if not isinstance(column, Ragged)}
        if not columns:
            raise PointsetError("expected a point cloud, found no point")
        return named_columns([*columns], columns.values())
    lists = next((column for name in CORNERS if isinstance(column := (face or strips).get(name), Ragged)), None)
    if lists is None or not {*AXES} <= {*vertex}:
        names = quoted(", ".join([*vertex, *face, *strips]))
        raise PointsetError(f"expected x, y and z of vertices and lists {CORNERS[0]} of faces, found {names}")
    if (lists.values % 1).any():
        raise PointsetError("has a vertex index that is not a whole number")
    vertices = np.stack([np.asarray(vertex[axis], np.float64) for axis in AXES], axis=1)
    corners = lists.values.astype(np.int64)
    if not face:
        return Mesh(vertices, _triangles_of_strips(corners))
    return mesh_of_polygons(vertices, corners, lists.sizes, str(path))


def _triangles_of_strips(corners: np.ndarray) -> np.ndarray:
    """Return the triangles [F, 3] of strips that are separated by -1. Every second triangle of a strip is reversed."""
    triples = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
    starts = np.maximum.accumulate(np.where(corners[:-2] < 0, np.arange(1, len(triples) + 1), 0))
    odd = (np.arange(len(triples)) - starts) % 2 == 1
    triples[odd] = triples[odd][:, [1, 0, 2]]
    return triples[(triples >= 0).all(axis=1)]


def read_elements(path: Path) -> dict[str, Properties]:
    """Return the properties of each element (empty for one without entries). Warn of data after the last element."""
    content = path.read_bytes()
    header = _HEADER.match(content[:MOST_HEADER])
    if header is None:
        raise PointsetError("expected a header from ply to end_header: it is another kind of file, or cut off")
    header_lines = header[0].decode("utf-8", "replace").split(header[1].decode())
    order, elements = _elements(header_lines)
    read, start = dict[str, Properties](), 0
    if order:
        body = np.frombuffer(content, np.uint8)[header.end() :]
        for name, (count, types) in elements.items():
            read[name], start = _read_records(body, start, count, types)
        lists = [column.sizes for element in read.values() for column in element.values() if isinstance(column, Ragged)]
        if not is_padding(body[start:]) and any((sizes != sizes[0]).any() for sizes in lists):  # a size may be damaged
            raise PointsetError(f"has {len(body) - start:,} bytes after lists of several lengths: it is damaged")
        warn_of_rest(path, body[start:])
        return read
    lines = Lines.of(b"\n" * (len(header_lines) - 1) + plain_text(content[header.end() :]))
    for name, (count, types) in elements.items():
        count = count if types else 0
        require_count(min(len(lines) - start, count), count, "entries")
        read[name] = _read_lines(path, lines.part(start, start + count), types)
        start += count
    warn_of_rest(path, range(len(lines) - start), "lines")
    return read


def _elements(header: Iterable[str]) -> tuple[str, dict[str, tuple[int, Types]]]:
    """Return the byte order (empty for text), and the number of entries and the types of each element.

    Lines with other keywords are ignored, because Blender 2.47 wrote a comment without its keyword.
    """
    order, elements, types = None, dict[str, tuple[int, Types]](), Types()
    for line in header:
        match line.split():
            case ["format", kind, *_] if kind in ORDERS:
                order = ORDERS[kind]
            case ["element", name, count]:
                types = {}
                elements[name] = int(count), types
            case ["property", *kinds, name] if kinds and {*kinds} <= {"list", *TYPES} and order is not None:
                types[name] = tuple(np.dtype(order + TYPES[kind]) for kind in kinds if kind != "list")
            case ["format" | "element" | "property", *_]:
                raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(line.split()))}")
    if order is None:
        raise PointsetError("expected the format of a PLY file in its header")
    return order, elements


def _read_lines(path: Path, lines: Lines, types: Types) -> Properties:
    """Return the properties of an element in text, one entry per line. Warn of further numbers, as from MeshLab."""
    if not len(lines):
        return {}
    numbers, ends, read = lines.numbers(), np.cumsum(lines.widths), dict[str, np.ndarray | Ragged]()
    places = ends - lines.widths
    for name, (*length, kind) in types.items():
        sizes = np.ones(len(ends), np.int64)
        if length:
            sizes = np.where(places < ends, numbers[np.minimum(places, len(numbers) - 1)], -1).astype(np.int64)
            places = places + 1
        lines.require((sizes >= 0) & (places + sizes <= ends), "expected as many numbers as the header says")
        values = numbers[np.arange(sizes.sum()) + np.repeat(places - np.cumsum(sizes) + sizes, sizes)]
        with np.errstate(all="ignore"):
            typed = values.astype(kind)
        values = typed if kind.kind in "iu" and (typed == values).all() else values  # floats keep all digits
        places = places + sizes
        read[name] = Ragged(values, sizes) if length else values
    if (places < ends).any():
        warnings.warn(f"{path}: has lines with more numbers than its header says", stacklevel=4)
    return read


def _read_records(content: np.ndarray, start: int, count: int, types: Types) -> tuple[Properties, int]:
    """Return the properties of a binary element, and the offset of its end."""
    if not count or not types:
        return {}, start
    fields: list[tuple] = []
    widths: dict[str, int] = {}
    for name, (*length, kind) in types.items():
        if length:  # in most files, all lists have the same length
            widths[name] = _length(content, start + np.dtype(fields).itemsize, length[0])
            fields += [(f"{name} length", length[0]), (name, kind, (widths[name],))]
        else:
            fields.append((name, kind))
    record = np.dtype(fields)
    end = start + count * record.itemsize
    if end > len(content) and not widths:
        require_count((len(content) - start) // record.itemsize, count, "entries")
    entries = content[start:end].view(record) if end <= len(content) else None
    if entries is None or any((entries[f"{name} length"] != width).any() for name, width in widths.items()):
        return _read_entries(content, start, count, types)
    lists = {name: Ragged(entries[name].ravel(), np.full(count, width)) for name, width in widths.items()}
    return {name: lists[name] if name in lists else entries[name] for name in types}, end


def _read_entries(content: np.ndarray, start: int, count: int, types: Types) -> tuple[Properties, int]:
    """Read like `_read_records`, but entry by entry, for lists of different sizes."""
    parts: dict[str, list[np.ndarray]] = {name: [] for name in types}
    for _ in range(count):
        for name, (*length, kind) in types.items():
            size = 1
            if length:
                size = _length(content, start, length[0])
                start += length[0].itemsize
            end = start + size * kind.itemsize
            if end > len(content):
                raise PointsetError("has less than its header says: it is cut off or damaged")
            parts[name].append(content[start:end].view(kind))
            start = end
    read: dict[str, np.ndarray | Ragged] = {}
    for name, lists in parts.items():
        values = np.concatenate(lists)
        read[name] = Ragged(values, np.array([*map(len, lists)])) if len(types[name]) == 2 else values
    return read, start


def _length(content: np.ndarray, start: int, kind: np.dtype) -> int:
    """Return the length of a list; raise a PointsetError if the list is longer than the file."""
    length = content[start : start + kind.itemsize].view(kind)
    if len(length) != 1 or not 0 <= length[0] <= len(content) - start:
        raise PointsetError("has a list that is longer than the file: it is cut off or damaged")
    return int(length[0])
