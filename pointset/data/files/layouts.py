"""Where the points lie in a file: the headers of .npy, .ply and .pcd, read without reading the points.

Sources: numpy's documentation of the NPY format (numpy.lib.format); G. Turk, "The PLY Polygon File Format" (1994); the
Point Cloud Library's page on PCD_V7.
"""

import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from tokenize import TokenError

import numpy as np

from pointset.data.files.clouds import CloudError
from pointset.data.files.file_kinds import has_faces

AXES = ("x", "y", "z")
NORMALS = ("nx", "ny", "nz")
POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of the arrays in an .npz file."""
LONGEST_LINE = 1 << 16
MOST_LINES = 10_000
"""Of a header."""


@dataclass(frozen=True)
class Binary:
    """Points as numbers: records of one size, or columns one after another."""

    count: int
    offset: int
    """Byte of the first record."""
    record: np.dtype
    """With the fields x, y, z and perhaps nx, ny, nz; or, with `by_column`, the type of one number."""
    by_column: tuple[str, ...] = ()
    """Names of the columns, if they stand one after another."""

    @property
    def end(self) -> int:
        """Byte after the last record, or column."""
        return self.offset + self.count * self.record.itemsize * (len(self.by_column) or 1)

    @property
    def has_normals(self) -> bool:
        """Whether there are normals beside the points."""
        return {*NORMALS} <= {*(self.by_column or self.record.names or ())}


@dataclass(frozen=True)
class Text:
    """Points as lines of words."""

    names: tuple[tuple[str, ...], ...] = (AXES, AXES + NORMALS)
    """Of the words on a line, for each number of words that a line may have."""
    count: int | None = None
    """Points that the header announces."""
    offset: int = 0
    """Byte after the header."""
    first_line: int = 1
    """Number of that line in the file."""
    skipped: int = 0
    """Lines of something else before the points."""
    more: bool = False
    """Whether lines of something else may follow."""

    def columns(self, words: int) -> list[int]:
        """Places of the points, and of the normals if there are any, on a line with this number of words."""
        names = next(names for names in self.names if len(names) == words)
        return [names.index(name) for name in kept_columns(names)]


_UNREADABLE = (
    *(ValueError, TypeError, KeyError, AttributeError, EOFError, OverflowError, MemoryError),
    *(NotImplementedError, RuntimeError, TokenError, SyntaxError, zipfile.BadZipFile, zlib.error),
)
"""Raised by numpy and zipfile for damaged files, and for those that hold Python objects."""


def kept_columns(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are read: the points, and their normals if all three are there."""
    return AXES + NORMALS if {*NORMALS} <= {*names} else AXES


def find_layout(path: Path) -> Binary | Text | np.ndarray:
    """The layout of a file with one of `CLOUD_SUFFIXES`, or its points if they are compressed."""
    readers: dict[str, Callable[[Path], Binary | Text | np.ndarray]]
    readers = {".npy": _npy, ".npz": _npz, ".ply": _ply, ".pcd": _pcd}
    reader = readers.get(path.suffix.lower())
    return reader(path) if reader else Text()


def _npy(path: Path) -> Binary:
    formats = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with path.open("rb") as file:
        try:
            shape, by_column, dtype = formats[np.lib.format.read_magic(file)](file)
        except _UNREADABLE as error:
            raise CloudError("expected the header of a numpy array: save it with numpy.save") from error
        offset = file.tell()
    if len(shape) != 2 or shape[1] not in (3, 6) or dtype.kind not in "fiu":
        raise CloudError(f"expected numbers [n, 3] or [n, 6], found {dtype} {list(shape)}")
    names = (AXES + NORMALS)[: shape[1]]
    if by_column:
        return Binary(shape[0], offset, dtype, by_column=names)
    return Binary(shape[0], offset, _record(names, [dtype] * shape[1]))


def _npz(path: Path) -> np.ndarray:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:  # pickles could run anything
            names = list(found)
            key = next((key for key in POINT_KEYS if key in names), names[0] if len(names) == 1 else None)
            if key is None:
                known = " or ".join(POINT_KEYS)
                raise CloudError(f"expected an array called {known}, found {', '.join(names) or 'none'}")
            normal_key = next((key for key in NORMAL_KEYS if key in names), None)
            points = found[key]
            normals = None if normal_key is None else found[normal_key]
    except _UNREADABLE as error:
        if isinstance(error, CloudError):
            raise
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise CloudError(f"holds no archive of arrays of numbers that can be read: {words}") from error
    if normals is not None:
        if points.shape != normals.shape or points.ndim != 2:
            shapes = f"{list(normals.shape)} beside {list(points.shape)}"
            raise CloudError(f"expected as many normals as points, found {shapes}")
        points = np.hstack([points, normals])
    if points.ndim != 2 or points.shape[1] not in (3, 6) or points.dtype.kind not in "fiu":
        raise CloudError(f"expected numbers [n, 3] or [n, 6], found {points.dtype} {list(points.shape)}")
    return records(points)


PLY_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
PLY_TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
PLY_TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
PLY_TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4)}
LIST = ""
"""Stands for the type of a list, which has no fixed size."""


@dataclass(frozen=True)
class _Element:
    name: str
    count: int
    names: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)
    """numpy's, without byte order."""


def _ply(path: Path) -> Binary | Text:
    if has_faces(path):
        raise CloudError("is a mesh, among point clouds: keep meshes and clouds in two folders, or sample points on it")
    lines, offset = _header(path, "end_header")
    if lines[0] != ["ply"] or len(lines[1]) < 2 or lines[1][0] != "format" or lines[1][1] not in PLY_ORDERS:
        raise CloudError("expected the header of a PLY file, that begins with ply and its format")
    order, elements = PLY_ORDERS[lines[1][1]], _elements(lines[2:])
    names = [element.name for element in elements]
    if "vertex" not in names:
        raise CloudError(f"expected an element called vertex, found {', '.join(names) or 'none'}")
    place = names.index("vertex")
    vertex, before = elements[place], elements[:place]
    if not {*AXES} <= {*vertex.names}:
        raise CloudError(f"expected x, y and z of every point, found {', '.join(vertex.names) or 'nothing'}")
    for element in (vertex, *before) if order else (vertex,):
        if LIST in element.types:
            raise CloudError(f"has lists in its element {element.name}, so that points have no fixed place: drop them")
    if not order:
        above = sum(element.count for element in before)
        more = len(elements) > place + 1
        return Text((tuple(vertex.names),), vertex.count, offset, len(lines) + 1, skipped=above, more=more)
    skipped = sum(element.count * np.dtype(kind).itemsize for element in before for kind in element.types)
    return Binary(vertex.count, offset + skipped, _record(vertex.names, [np.dtype(order + k) for k in vertex.types]))


def _elements(lines: list[list[str]]) -> list[_Element]:
    elements: list[_Element] = []
    for words in lines:
        match words:
            case ["element", name, count] if count.isdecimal():
                elements.append(_Element(name, int(count)))
            case ["property", "list", _, _, name] if elements:
                elements[-1].names.append(name)
                elements[-1].types.append(LIST)
            case ["property", kind, name] if elements and kind in PLY_TYPES:
                elements[-1].names.append(name)
                elements[-1].types.append(PLY_TYPES[kind])
            case [] | ["comment" | "obj_info" | "end_header", *_]:
                pass
            case _:
                raise CloudError(f"has a line in its header that is not PLY: {' '.join(words)[:60]!r}")
    return elements


PCD_KINDS = {"F": "f", "I": "i", "U": "u"}
PCD_NORMALS = {"normal_x": "nx", "normal_y": "ny", "normal_z": "nz"}


def _pcd(path: Path) -> Binary | Text | np.ndarray:
    lines, offset = _header(path, "DATA")
    header = {words[0]: words[1:] for words in lines if words}
    names, points = header.get("FIELDS", []), header.get("POINTS", [])
    if not {*AXES} <= {*names} or len(points) != 1 or not points[0].isdecimal():
        raise CloudError("expected the header of a PCD file with fields x, y, z and a number of points")
    try:
        repeats = [int(count) for count in header.get("COUNT", ["1"] * len(names))]
        kinds = [f"<{PCD_KINDS[kind]}{size}" for kind, size in zip(header["TYPE"], header["SIZE"], strict=True)]
        types = [np.dtype((kind, (repeat,) if repeat > 1 else ())) for kind, repeat in zip(kinds, repeats, strict=True)]
    except (KeyError, ValueError, TypeError) as error:
        raise CloudError("expected a SIZE, a TYPE and a COUNT for each of the FIELDS of a PCD file") from error
    names = [PCD_NORMALS.get(name, name) for name in names]
    if header["DATA"] == ["ascii"]:
        words = [name for name, repeat in zip(names, repeats, strict=True) for name in [name] * repeat]
        return Text((tuple(words),), int(points[0]), offset, len(lines) + 1)
    if header["DATA"] == ["binary_compressed"]:
        return _decompressed(path, offset, int(points[0]), names, types)
    if header["DATA"] != ["binary"]:
        raise CloudError(f"holds its points as {' '.join(header['DATA'])!r}: save them as ascii or binary")
    return Binary(int(points[0]), offset, _record(names, types))


def _header(path: Path, last: str) -> tuple[list[list[str]], int]:
    """The words of each line up to the one that begins with `last`, and the byte after it."""
    lines: list[list[str]] = []
    with path.open("rb") as file:
        while len(lines) < MOST_LINES:
            line = file.readline(LONGEST_LINE)
            lines.append(line.decode("latin-1").split())
            if lines[-1][:1] == [last]:
                return lines, file.tell()
            if not line.endswith(b"\n"):
                break
    raise CloudError(f"expected a header that ends with {last}: it is another kind of file, or cut off")


def _record(names: Sequence[str], types: Sequence[np.dtype]) -> np.dtype:
    """One point in the file, with x, y, z and perhaps nx, ny, nz as its fields."""
    starts = [*accumulate((one.itemsize for one in types), initial=0)]
    kept = kept_columns(names)
    where = [names.index(name) for name in kept]
    formats, offsets = [types[i] for i in where], [starts[i] for i in where]
    return np.dtype({"names": kept, "formats": formats, "offsets": offsets, "itemsize": starts[-1]})


def records(points: np.ndarray) -> np.ndarray:
    """Numbers [n, 3] or [n, 6] as records."""
    record = _record((AXES + NORMALS)[: points.shape[1]], [points.dtype] * points.shape[1])
    return np.frombuffer(points.tobytes(), record)


def _decompressed(path: Path, offset: int, count: int, names: Sequence[str], types: Sequence[np.dtype]) -> np.ndarray:
    """The points of a compressed PCD file: two sizes, then all numbers of each field in turn, packed by LZF."""
    with path.open("rb") as file:
        file.seek(offset)
        packed, size = (int.from_bytes(file.read(4), "little") for _ in range(2))
        content = file.read(packed)
    starts = [count * start for start in accumulate((one.itemsize for one in types), initial=0)]
    if len(content) != packed or size != starts[-1]:
        raise CloudError(f"expected {packed} bytes of {count} points, as its header says: it may be cut off")
    numbers = _unpack_lzf(content, size)
    kept = [names.index(name) for name in kept_columns(names)]
    columns = [np.frombuffer(numbers, types[i], count, starts[i]).astype(np.float64) for i in kept]
    return records(np.stack(columns, axis=1))


def _unpack_lzf(packed: bytes, size: int) -> bytes:
    """Undo LZF (M. Lehmann, LibLZF): runs of new bytes, and copies of bytes that came before."""
    found, place = bytearray(), 0
    try:
        while place < len(packed):
            control = packed[place]
            if control < 32:
                found += packed[place + 1 : place + 2 + control]
                place += 2 + control
                continue
            length = control >> 5
            if length == 7:
                place += 1
                length += packed[place]
            back = len(found) - ((control & 31) << 8) - packed[place + 1] - 1
            place, length = place + 2, length + 2
            copy = found[back : back + length] if back >= 0 else b""
            found += (copy * (length // len(copy) + 1))[:length]  # it may run into itself
    except (IndexError, ZeroDivisionError) as error:
        raise CloudError("its compressed points are damaged") from error
    if len(found) != size:
        raise CloudError(f"expected {size} bytes of compressed points, found {len(found)}: they are damaged")
    return bytes(found)
