"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994), as Blender, MeshLab and scanners write it.

trimesh (5.2) refuses binary faces of several sizes, which Blender writes, strips of triangles, and bytes after the
data; plyfile reads all, but its licence (GPL) does not fit this package.
"""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, Columns, named_columns
from pointset.data.readers.formats import MOST_HEADER, is_padding, require_count, warn_of_rest
from pointset.data.readers.lines import Line, lines_of, numbers_of, plain_text, require, widths_of
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file, require_file

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"bool": "u1", "float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
CORNERS = ("vertex_indices", "vertex_index")
Types = dict[str, tuple[np.dtype, ...]]
"""The types of properties by name: one, or for a list those of its length and its entries."""


class Ragged(NamedTuple):
    """A list of numbers for each entry, concatenated."""

    values: np.ndarray
    sizes: np.ndarray


Properties = Mapping[str, np.ndarray | Ragged]


def ply_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return the columns of the vertices of a PLY file without faces."""
    elements = read_ply(path)
    if "vertex" not in elements:
        raise PointsetError(f"expected points called vertex, found {quoted(', '.join(elements)) or 'nothing'}")
    columns = {name: column for name, column in elements["vertex"].items() if not isinstance(column, Ragged)}
    if not columns:
        raise PointsetError("expected a point cloud, found no point")
    return named_columns([*columns], columns.values())


def parse_ply(path: Path) -> Mesh:
    """Return the mesh of a PLY file, in the file's order."""
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
    """Return the triangles [F, 3] of strips, which -1 separates; every second triangle of a strip is reversed."""
    triples = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
    starts = np.maximum.accumulate(np.where(corners[:-2] < 0, np.arange(1, len(triples) + 1), 0))
    odd = (np.arange(len(triples)) - starts) % 2 == 1
    triples[odd] = triples[odd][:, [1, 0, 2]]
    return triples[(triples >= 0).all(axis=1)]


def read_ply(path: Path) -> dict[str, Properties]:
    """Return the properties of each element that has entries (none for an empty one); warn of what follows."""
    require_file(path, None)
    with path.open("rb") as file:
        head = file.read(MOST_HEADER)
    first = re.search(rb"\r\n|\n|\r", head)
    line_end = rb"\r" if first and first[0] == b"\r" else rb"\r?\n"  # a \r may stand in a comment, or begin numbers
    end = re.search(line_end + rb"[ \t]*end_header(?:[ \t][^\r\n]*)?" + line_end, head)
    if end is None or head[:3] != b"ply":
        raise PointsetError("expected a header from ply to end_header: it is another kind of file, or cut off")
    header = re.split(line_end, head[: end.end()])
    order, elements = _header(header, path)
    read, start = dict[str, Properties](), 0
    if order:
        content, start = np.memmap(path, np.uint8, "r"), end.end()
        for name, (count, types) in elements.items():
            read[name], start = _read_element(content, start, count, types)
        lists = [column.sizes for element in read.values() for column in element.values() if isinstance(column, Ragged)]
        rest = content[start:]
        if not is_padding(rest) and any(
            (sizes != sizes[0]).any() for sizes in lists
        ):  # one of which may have a damaged length
            raise PointsetError(f"has {len(rest):,} bytes after lists of several lengths: it is damaged")
        warn_of_rest(path, rest)
        return read
    lines = lines_of(plain_text(read_file(path)[end.end() :]), len(header))
    for name, (count, types) in elements.items():
        count = count if types else 0
        require_count(min(len(lines) - start, count), count, "entries")
        read[name] = _read_lines(lines[start : start + count], types, path)
        start += count
    if len(lines) > start:
        warnings.warn(
            f"{path}: has {len(lines) - start:,} lines more than its header says, which are not read", stacklevel=2
        )
    return read


def _read_lines(lines: list[Line], types: Types, path: Path) -> Properties:
    """Return the properties of an element in text, an entry a line; MeshLab writes more than its header says."""
    if not lines:
        return {}
    numbers, widths = numbers_of(lines, str(path)), widths_of(lines)
    ends, read = np.cumsum(widths), dict[str, np.ndarray | Ragged]()
    place = ends - widths
    for name, (*length, kind) in types.items():
        sizes = np.ones(len(lines), np.int64)
        if length:
            sizes = np.where(place < ends, numbers[np.minimum(place, len(numbers) - 1)], -1).astype(np.int64)
            place = place + 1
        expected = "expected as many numbers as the header says"
        require(lines, (sizes >= 0) & (place + sizes <= ends), str(path), expected)
        values = numbers[_ranges(place, sizes)]
        place = place + sizes
        read[name] = Ragged(values, sizes) if length else _typed(values, kind, name)
    if more := int((place < ends).sum()):
        warnings.warn(
            f"{path}: {more:,} lines have more numbers than the header says, which are not read", stacklevel=3
        )
    return read


def _ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the indices of ranges, given by their starts and sizes, one range after the other."""
    return np.arange(sizes.sum()) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)


def _typed(column: np.ndarray, kind: np.dtype, name: str) -> np.ndarray:
    """Numbers of text in their type."""
    with np.errstate(all="ignore"):
        typed = column.astype(kind)
    if kind.kind in "iu" and (typed != column).any():
        raise PointsetError(f"expected whole numbers of the type {kind} for {quoted(name)}")
    return typed


def _header(lines: Sequence[bytes], path: Path) -> tuple[str, dict[str, tuple[int, Types]]]:
    """Byte order (empty for text), and the number of entries and the types of each element.

    Other lines are ignored: Blender 2.47 wrote a comment without its keyword.
    """
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
            case ["format" | "element" | "property", *_]:
                kinds = []
            case _:
                warnings.warn(f"{path}: the line {quoted(' '.join(words))} of its header is ignored", stacklevel=3)
                continue
        if not kinds or not {*kinds} <= {*TYPES} or not elements or name in types or order is None:
            raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(words))}")
        types[name] = tuple(np.dtype(order + TYPES[kind]) for kind in kinds)
    if order is None:
        raise PointsetError("expected the format of a PLY file in its header")
    return order, elements


def _read_element(content: np.ndarray, offset: int, count: int, types: Types) -> tuple[Properties, int]:
    """Return the properties of some entries, and the offset of what follows."""
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
        values = content[_ranges(starts, lengths)].view(kind)
        read[name] = Ragged(values, sizes) if length else values
    return read, offset


def _length(content: np.ndarray, start: int, kind: np.dtype) -> int:
    """Return the length of a list, which must end in the file."""
    length = content[start : start + kind.itemsize].view(kind)
    if len(length) != 1 or not 0 <= length[0] <= len(content) - start or length[0] % 1:
        raise PointsetError("has a list that is longer than the file: it is cut off or damaged")
    return int(length[0])
