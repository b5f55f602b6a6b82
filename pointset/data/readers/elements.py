"""Read PLY (G. Turk, "The PLY Polygon File Format", 1994) and PCD (the Point Cloud Library's page on PCD_V7).

Both have a header, and then entries as text or as binary records, which are mapped into memory. Every count of a header
must fit the file: trimesh (5.2) reads some cut-off text without a word, and refuses binary faces of several sizes;
damaged compressed PCD can end a process with Open3D (0.19).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, Columns, named_columns, numbered
from pointset.data.readers.formats import has_faces, read_header
from pointset.data.readers.lines import Lines, flat_numbers, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
PLY_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
PLY_TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
PLY_TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4, 8)}
CORNERS = ("vertex_indices", "vertex_index")
KEYWORDS = ("VERSION", "FIELDS", "SIZE", "TYPE", "WIDTH", "HEIGHT", "POINTS", "DATA")
PCD_TYPES = {("F", "4"): "<f4", ("F", "8"): "<f8"}
PCD_TYPES |= {(kind, str(size)): f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}
PACKED = ("rgb", "rgba")
CHANNELS = {"blue": 0, "green": 1, "red": 2}
"""Byte of each channel in a color that is packed into one field, as the bits of a float32 or a uint32."""
MOST_COLUMNS = 1 << 16
MOST_RATIO = 88
"""Most unpacked bytes per byte of LZF: three give at most 264."""


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


def ply_columns(path: Path, features: Sequence[str] = ()) -> Columns:
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
    lists = next((column for name in CORNERS if isinstance(column := face.get(name), Ragged)), None)
    if lists is None or not {*AXES} <= {*vertex}:
        names = quoted(", ".join([*vertex, *face]))
        raise PointsetError(f"expected x, y and z of vertices and lists {CORNERS[0]} of faces, found {names}")
    vertices = np.stack([np.asarray(vertex[axis], np.float64) for axis in AXES], axis=1)
    return mesh_of_polygons(vertices, lists.values.astype(np.int64), lists.sizes, str(path))


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
            case ["element", name, count] if count.isdecimal():
                elements.append(Element(name, int(count)))
                continue
            case ["property", "list", length, kind, name] if PLY_TYPES.get(length, "f")[0] != "f":
                kinds = [length, kind]
            case ["property", kind, name]:
                kinds = [kind]
            case _:
                kinds = []
        if not kinds or not {*kinds} <= {*PLY_TYPES} or not elements or name in elements[-1].properties:
            raise PointsetError(f"expected a line of a PLY file's header, found {quoted(' '.join(line))}")
        elements[-1].properties[name] = tuple(np.dtype(orders[0] + PLY_TYPES[kind]) for kind in kinds)
    return orders[0], elements, offset


def read_elements(path: Path, order: str, elements: Sequence[Element], offset: int) -> dict[str, Properties]:
    """The properties of each element, as text without a byte order; the file must have exactly their entries."""
    if not order:
        return _read_text(plain_text(read_file(path)[offset:]), elements)
    content, read = np.memmap(path, np.uint8, "r"), dict[str, Properties]()
    for element in elements:
        read[element.name], offset = _read_element(content, offset, element.count, element.properties)
    if not np.isin(content[offset:], list(b"\0\r\n")).all():  # padding, or a last line end
        raise PointsetError(f"has {len(content) - offset:,} bytes more than its header says: it is damaged")
    return read


def _read_text(text: bytes, elements: Sequence[Element]) -> dict[str, Properties]:
    """As `read_elements`, with an entry on each line: numbers are float64 until their types and lines are checked."""
    numbers, read, offset = flat_numbers(text), dict[str, Properties](), 0
    if numbers is None:
        raise PointsetError("expected only numbers after its header: it is damaged")
    widths = [np.zeros(0, np.int64)]
    for element in elements:
        types = {name: (np.dtype(np.float64),) * len(kinds) for name, kinds in element.properties.items()}
        columns, offset = _read_element(numbers.view(np.uint8), offset, element.count, types)
        width = np.zeros(element.count, np.int64)
        for name, column in columns.items():
            values, sizes = column if isinstance(column, Ragged) else (column, None)
            kind = element.properties[name][-1]
            with np.errstate(all="ignore"):
                typed = values.astype(kind)
            if kind.kind in "iu" and (typed != values).any():
                raise PointsetError(f"expected whole numbers of the type {kind} for {quoted(name)}")
            columns[name] = typed if sizes is None else Ragged(typed, sizes)
            width += 1 if sizes is None else 1 + sizes
        read[element.name] = columns
        widths.append(width)
    if not np.array_equal(Lines(text, "").widths, np.concatenate(widths)):
        raise PointsetError("has other lines than its header says: it is cut off or damaged")
    return read


def _read_element(
    content: np.ndarray, offset: int, count: int, types: Mapping[str, tuple[np.dtype, ...]]
) -> tuple[Properties, int]:
    """The properties of some entries, and the offset of what follows."""
    if not count:
        return {}, offset
    fields: list[tuple] = []
    widths: dict[str, int] = {}
    for name, (*length, kind) in types.items():
        if length:
            widths[name] = _length(content, offset + np.dtype(fields).itemsize, length[0])
            fields += [(f"{name} length", length[0]), (name, kind, (widths[name],))]
        else:
            fields.append((name, kind))
    record = np.dtype(fields)
    end = offset + count * record.itemsize
    entries = content[offset:end].view(record) if end <= len(content) else None
    if entries is None and not widths:
        raise PointsetError("has less than its header says: it is cut off or damaged")
    # Lists are as long as that of the first entry in most files.
    if entries is None or any((entries[f"{name} length"] != width).any() for name, width in widths.items()):
        return _read_entries(content, offset, count, types)
    read: Properties = {name: entries[name] for name in types}
    for name, width in widths.items():
        read[name] = Ragged(entries[name].ravel(), np.full(len(entries), width))
    return read, end


def _read_entries(
    content: np.ndarray, offset: int, count: int, types: Mapping[str, tuple[np.dtype, ...]]
) -> tuple[Properties, int]:
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
    read: Properties = {}
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


def pcd_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """The columns of a PCD file; a PointsetError if it is another file, or damaged."""
    lines, offset = read_header(path, "DATA")
    header = {words[0]: words[1:] for words in lines if not words[0].startswith("#")}
    if missing := [keyword for keyword in KEYWORDS if keyword not in header]:
        raise PointsetError(f"expected {', '.join(missing)} in the header of a PCD file, which may be cut off")
    width, height, count = (int(" ".join(header[keyword])) for keyword in ("WIDTH", "HEIGHT", "POINTS"))
    if width * height != count or count < 1:
        raise PointsetError("expected POINTS to be WIDTH times HEIGHT, at least 1, in the header of a PCD file")
    fields = _fields(header)
    points = Element("points", count, {name: (kind,) for names, kind in fields for name in names})
    columns: Mapping[str, np.ndarray | Ragged]
    match header["DATA"]:
        case ["ascii"]:
            columns = read_elements(path, "", [points], offset)["points"]
        case ["binary"]:
            columns = read_elements(path, "<", [points], offset)["points"]
        case ["binary_compressed"]:
            columns = _unpacked(read_file(path)[offset:], fields, count)
        case words:
            raise PointsetError(f"holds its points as {quoted(' '.join(words))}: save them as ascii or binary")
    return _with_colors({name: column for name, column in columns.items() if not isinstance(column, Ragged)})


def _fields(header: Mapping[str, list[str]]) -> list[tuple[list[str], np.dtype]]:
    """The columns of each field and their type."""
    names, counts = header["FIELDS"], header.get("COUNT", ["1"] * len(header["FIELDS"]))
    types = [PCD_TYPES.get(pair, "") for pair in zip(header["TYPE"], header["SIZE"], strict=False)]
    repeats = [int(word) for word in counts]
    if not len(names) == len(types) == len(repeats) == len(header["SIZE"]) or "" in types or min(repeats) < 1:
        raise PointsetError("expected a SIZE, a TYPE and a COUNT for each of the FIELDS of a PCD file")
    if sum(repeats) > MOST_COLUMNS:
        raise PointsetError(f"expected at most {MOST_COLUMNS:,} numbers for each point of a PCD file, by its COUNT")
    own = [name if name != "_" else f"_{place}" for place, name in enumerate(names)]  # padding has no name
    if len({*own}) < len(own):
        raise PointsetError("has two fields of one name in its header: the name is ambiguous")
    columns = [[name] if repeat == 1 else numbered(name, repeat) for name, repeat in zip(own, repeats, strict=True)]
    return list(zip(columns, map(np.dtype, types), strict=True))


def _unpacked(content: bytes, fields: list[tuple[list[str], np.dtype]], count: int) -> Columns:
    """The columns after two sizes, field by field, packed by LZF."""
    length, size = (int.from_bytes(content[place : place + 4], "little") for place in (0, 4))
    packed, rest = content[8 : 8 + length], content[8 + length :]
    expected = count * sum(len(names) * kind.itemsize for names, kind in fields)
    if len(packed) != length or size != expected or rest.strip(b"\0"):
        raise PointsetError(f"expected {length:,} bytes of {count:,} points: it is cut off or damaged")
    numbers, start = unpack_lzf(packed, size), 0
    columns: dict[str, np.ndarray] = {}
    for names, kind in fields:
        table = np.frombuffer(numbers, kind, count * len(names), start).reshape(count, -1)
        columns |= dict(zip(names, table.T, strict=True))
        start += table.nbytes
    return columns


def _with_colors(columns: Columns) -> Columns:
    """The columns in the usual spelling, with the channels of packed colors."""
    known: dict[str, np.ndarray] = {}
    has_colors = any({*group} & {*columns} for group in COLOR_COLUMNS)
    for name, column in columns.items():
        if name in PACKED and column.dtype.itemsize == 4 and not has_colors:
            channels = np.ascontiguousarray(column).view(np.uint8).reshape(-1, 4)
            known |= {color: channels[:, place] for color, place in CHANNELS.items()}
        else:
            known[name] = column
    return named_columns([*known], known.values())


def unpack_lzf(packed: bytes, size: int) -> bytes:
    """Unpack exactly `size` bytes of LZF (M. Lehmann, LibLZF): literal runs and back references."""
    damaged = PointsetError(f"expected {size:,} bytes in {len(packed):,} compressed ones: they are damaged")
    if size > MOST_RATIO * len(packed):
        raise damaged
    unpacked, place = bytearray(), 0
    try:
        while place < len(packed):
            control = packed[place]
            if control < 32:
                unpacked += packed[place + 1 : place + control + 2]
                place += control + 2
                continue
            length = control >> 5
            if length == 7:
                place += 1
                length += packed[place]
            back = len(unpacked) - ((control & 31) << 8) - packed[place + 1] - 1
            place, length = place + 2, length + 2
            if back < 0:
                raise damaged
            copy = unpacked[back : back + length]
            unpacked += (copy * (length // len(copy) + 1))[:length]  # a back reference may overlap its own output
    except IndexError as error:
        raise damaged from error
    if len(unpacked) != size or place != len(packed):
        raise damaged
    return bytes(unpacked)
