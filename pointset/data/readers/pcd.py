"""Read PCD: fields of points as text, as binary records or compressed (the Point Cloud Library's page on PCD_V7).

Open3D reads PCD too, but a damaged compressed file can end its process (Open3D 0.19). The library packs a color into
one field, rgb or rgba, as the bits of a float32 or a uint32.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import COLORS, Columns, named_columns, numbered
from pointset.data.readers.lines import read_header, whole_number
from pointset.data.readers.ply import Element, Ragged, read_elements
from pointset.errors import PointsetError, quoted
from pointset.runs.files import read_file

KEYWORDS = ("VERSION", "FIELDS", "SIZE", "TYPE", "WIDTH", "HEIGHT", "POINTS", "DATA")
TYPES = {("F", "4"): "<f4", ("F", "8"): "<f8"}
TYPES |= {(kind, str(size)): f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}
PACKED = ("rgb", "rgba")
CHANNELS = {"blue": 0, "green": 1, "red": 2}
"""Byte of each channel in a packed color."""
MOST_COLUMNS = 1 << 16
MOST_RATIO = 88
"""Most unpacked bytes per byte of LZF: three give at most 264."""


def pcd_columns(path: Path) -> Columns:
    """The columns of a PCD file; a PointsetError if it is another file, or damaged."""
    lines, offset = read_header(path, "DATA")
    header = {words[0]: words[1:] for words in lines if not words[0].startswith("#")}
    if missing := [keyword for keyword in KEYWORDS if keyword not in header]:
        raise PointsetError(f"expected {', '.join(missing)} in the header of a PCD file, which may be cut off")
    width, height, count = (whole_number(" ".join(header[keyword])) for keyword in ("WIDTH", "HEIGHT", "POINTS"))
    if width < 0 or height < 0 or width * height != count:
        raise PointsetError("expected POINTS to be WIDTH times HEIGHT in the header of a PCD file")
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
    if not count:
        raise PointsetError("expected a point cloud, found no point")
    return _with_colors({name: column for name, column in columns.items() if not isinstance(column, Ragged)})


def _fields(header: Mapping[str, list[str]]) -> list[tuple[list[str], np.dtype]]:
    """The columns of each field and their type."""
    names, counts = header["FIELDS"], header.get("COUNT", ["1"] * len(header["FIELDS"]))
    types = [TYPES.get(pair, "") for pair in zip(header["TYPE"], header["SIZE"], strict=False)]
    repeats = [whole_number(word) for word in counts]
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
    has_colors = any({*group} & {*columns} for group in COLORS)
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
