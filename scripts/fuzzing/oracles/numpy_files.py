"""NPY (numpy's documentation of its format) and NPZ: such arrays in a ZIP (PKWARE's APPNOTE)."""

import ast
import re
import struct
import zlib

import numpy as np

from fuzzing.oracles.words import Illegal, require

DESCRIPTION = re.compile(r"([<>=|]?)([iuf])([1248])")
KEYS = ("points", "pos", "xyz", "vertices", "data")
ENTRY = struct.Struct("<4s4B4HL2L5H2L")
LOCAL = struct.Struct("<4s5H3L2H")


def read_npy(content: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and normals, if there are any."""
    table = read_array(content)
    points = table[:, :3]
    require(bool(np.isfinite(points).all()), "not finite")
    return points, table[:, 3:] if table.shape[1] == 6 else None


def read_array(content: bytes) -> np.ndarray:
    """The numbers [n, 3] or [n, 6]."""
    require(content[:6] == b"\x93NUMPY" and content[6:8] in (b"\1\0", b"\2\0", b"\3\0"), "magic")
    size = "<H" if content[6] == 1 else "<I"
    start = 8 + struct.calcsize(size)
    require(len(content) >= start, "cut off")
    (length,) = struct.unpack_from(size, content, 8)
    require(len(content) >= start + length, "cut off")
    try:
        text = content[start : start + length].decode("utf-8" if content[6] == 3 else "latin-1")
    except UnicodeDecodeError:
        raise Illegal("no UTF-8") from None
    description, fortran, shape = read_description(text)
    order, kind, width = description.groups()
    require(kind + width != "f1", "unknown type")
    numbers = np.dtype(f"{order.replace('|', '=')}{kind}{width}")
    require(len(content) == start + length + shape[0] * shape[1] * numbers.itemsize, "another number of bytes")
    flat = np.frombuffer(content, numbers, offset=start + length)
    return flat.reshape(shape, order="F" if fortran else "C").astype(np.float64)


def read_description(text: str) -> tuple[re.Match[str], bool, tuple[int, int]]:
    """The three entries of a header."""
    try:
        found = ast.literal_eval(re.sub(r"(\d)L\b", r"\1", text))
    except Exception:
        raise Illegal("no dictionary") from None
    require(isinstance(found, dict) and set(found) == {"descr", "fortran_order", "shape"}, "keys")
    description, shape = found["descr"], found["shape"]
    match = DESCRIPTION.fullmatch(description) if isinstance(description, str) else None
    if match is None:
        raise Illegal("unknown type")
    require(isinstance(found["fortran_order"], bool), "order")
    require(isinstance(shape, tuple) and len(shape) == 2 and all(type(axis) is int for axis in shape), "shape")
    require(1 <= shape[0] < 10**15 and shape[1] in (3, 6), "shape")
    return match, found["fortran_order"], shape


def read_npz(content: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and normals, if there are any."""
    found = directory(content)
    for entry, name, before in found.values():
        data_of(content, entry, name, before)
    members = {name.removesuffix(".npy"): entry for name, entry in found.items()}
    chosen = [name for name in KEYS if name in members] if len(members) > 1 else list(members)
    require(bool(chosen), "no array, or no telling which")
    normal = [name for name in ("normals", "normal") if name in members and len(members) > 1]
    if not normal:
        return read_npy(unpacked(content, *members[chosen[0]]))
    points, normals = (read_array(unpacked(content, *members[name])) for name in (chosen[0], normal[0]))
    require(points.shape == normals.shape and points.shape[1] == 3, "as many normals as points")
    require(bool(np.isfinite(points).all()), "not finite")
    return points, normals


def directory(content: bytes) -> dict[str, tuple[tuple, bytes, int]]:
    """Entries of the archive's directory by name, and how many bytes stand before the archive."""
    end = content.rfind(b"PK\5\6")
    require(end >= 0 and len(content) >= end + 22, "no directory")
    disk, other, here, count, size, offset, comment = struct.unpack_from("<4H2LH", content, end + 4)
    require(disk == other == 0 and here == count, "several disks")
    require(len(content) == end + 22 + comment, "something after the end")
    before = end - size - offset
    require(before >= 0, "sizes")
    place, members = before + offset, {}
    for _ in range(count):
        require(place + ENTRY.size <= end, "directory cut off")
        entry = ENTRY.unpack_from(content, place)
        require(entry[0] == b"PK\1\2", "directory")
        raw = content[place + ENTRY.size : place + ENTRY.size + entry[12]]
        place += ENTRY.size + sum(entry[12:15])
        require(place <= end, "directory cut off")
        try:
            name = raw.decode("utf-8" if entry[5] & 0x800 else "cp437")
        except UnicodeDecodeError:
            raise Illegal("a name") from None
        require(name not in members, "a name twice")
        members[name] = entry, raw, before
    require(place == end, "directory longer than its entries")
    return members


def data_of(content: bytes, entry: tuple, name: bytes, before: int) -> int:
    """Where the data of a member begin, after a header that says the same name."""
    require(not entry[5] & 0x61 and entry[3] <= 63, "encrypted, or of another version")
    require(entry[6] in (0, 8, 12, 14), "unknown method")
    place = before + entry[18]
    require(place + LOCAL.size <= len(content), "cut off")
    local = LOCAL.unpack_from(content, place)
    require(local[0] == b"PK\3\4" and content[place + LOCAL.size :].startswith(name), "local header")
    require(local[9] == len(name), "local name")
    return place + LOCAL.size + local[9] + local[10]


def unpacked(content: bytes, entry: tuple, name: bytes, before: int) -> bytes:
    """One member, whole by its checksum, whatever is said of its packed size."""
    method, crc, packed, full = entry[6], entry[9], entry[10], entry[11]
    place = data_of(content, entry, name, before)
    data = content[place : place + packed]
    if method == 8:
        require(full <= max(64 * 2**20, 100 * len(content)), "a bomb")
        unpack = zlib.decompressobj(-15)
        try:
            data = unpack.decompress(data, full + 1)
        except zlib.error:
            raise Illegal("deflated data") from None
    else:
        require(method == 0, "unknown method")
        data = data[:full]
    require(len(data) == full and zlib.crc32(data) == crc, "CRC")
    return data
