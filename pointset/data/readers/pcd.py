"""Read PCD: fields of points as text, as binary records or compressed (the Point Cloud Library's page on PCD_V7).

Open3D reads PCD too, but a damaged compressed file can end its process (Open3D 0.19), so that the fields are read here
by numpy. The library packs a color into one field, rgb or rgba, as the bits of a float32 or a uint32.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.columns import COLORS, Columns, numbered, usual_names
from pointset.data.readers.headers import read_header, whole_number
from pointset.data.readers.lzf import unpack_lzf
from pointset.data.readers.text import number_table
from pointset.errors import PointsetError, quoted

KEYWORDS = ("VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "WIDTH", "HEIGHT", "VIEWPOINT", "POINTS", "DATA")
TYPES = {("F", "4"): "<f4", ("F", "8"): "<f8"}
TYPES |= {(kind, str(size)): f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}
PACKED = ("rgb", "rgba")
CHANNELS = {"blue": 0, "green": 1, "red": 2}
"""Byte of each channel in a packed color."""
PADDING = "_"
"""The name of fields without meaning."""


def pcd_columns(path: Path) -> Columns:
    """The columns of a PCD file.

    Raises:
        PointsetError: the file is not PCD, or is cut off or damaged.
    """
    header = read_header(path, "DATA")
    said = {words[0]: words[1:] for _, words in header.lines if not words[0].startswith("#")}
    record, count = _record(said), _count(said)
    match said["DATA"]:
        case ["ascii"]:
            fields = _text_fields(path, header.text, record, count)
        case ["binary"]:
            fields = _binary_fields(path, header.start_of_numbers, record, count)
        case ["binary_compressed"]:
            fields = _unpacked_fields(path, header.start_of_numbers, record, count)
        case words:
            raise PointsetError(f"holds its points as {quoted(' '.join(words))}: save them as ascii or binary")
    return _columns(fields)


def _record(said: Mapping[str, list[str]]) -> np.dtype:
    if missing := [keyword for keyword in KEYWORDS if keyword not in ("COUNT", "VIEWPOINT") and keyword not in said]:
        raise PointsetError(f"expected {', '.join(missing)} in the header of a PCD file, which may be cut off")
    if unknown := [keyword for keyword in said if keyword not in KEYWORDS]:
        raise PointsetError(f"expected a line of a PCD file's header, found {quoted(unknown[0])}")
    names, counts = said["FIELDS"], said.get("COUNT", ["1"] * len(said["FIELDS"]))
    types = [TYPES.get(pair, "") for pair in zip(said["TYPE"], said["SIZE"], strict=False)]
    repeats = [whole_number(word) or 0 for word in counts]
    if not len(names) == len(types) == len(repeats) == len(said["SIZE"]) or "" in types or 0 in repeats:
        raise PointsetError("expected a SIZE, a TYPE and a COUNT for each of the FIELDS of a PCD file")
    if sum(repeats) > 1 << 16:
        raise PointsetError("expected at most 65,536 numbers for each point of a PCD file, by its COUNT")
    fields = [(name if name != PADDING else f"{PADDING}{place}") for place, name in enumerate(names)]
    if len({*fields}) < len(fields):
        raise PointsetError("has two fields of one name in its header: the name is ambiguous")
    return np.dtype([(name, kind, (repeat,)) for name, kind, repeat in zip(fields, types, repeats, strict=True)])


def _count(said: Mapping[str, list[str]]) -> int:
    sizes = [whole_number(" ".join(said[keyword])) for keyword in ("WIDTH", "HEIGHT", "POINTS")]
    width, height, count = (-1 if size is None else size for size in sizes)
    if width * height != count or count < 0:
        raise PointsetError("expected POINTS to be WIDTH times HEIGHT in the header of a PCD file")
    return count


def _binary_fields(path: Path, offset: int, record: np.dtype, count: int) -> dict[str, np.ndarray]:
    size, end = path.stat().st_size, offset + count * record.itemsize
    if size < end:
        raise PointsetError(f"expected {end:,} bytes, as its header says, found {size:,}: it is cut off")
    content = np.memmap(path, np.uint8, "r")
    if content[end:].any():  # old versions of the Point Cloud Library fill a page with zeros
        raise PointsetError(f"expected {end:,} bytes, as its header says, found {size:,}: its header is damaged")
    records = content[offset:end].view(record)
    return {name: records[name] for name in record.names or ()}


def _text_fields(path: Path, offset: int, record: np.dtype, count: int) -> dict[str, np.ndarray]:
    lines = [line for line in path.read_bytes()[offset:].decode("latin-1").splitlines() if line.strip()]
    if len(lines) != count:
        raise PointsetError(f"has {len(lines):,} points, and its header says {count:,}: it is cut off or damaged")
    widths = [record[name].shape[0] for name in record.names or ()]
    table = number_table(lines, sum(widths), "points")
    parts = np.split(table, np.cumsum(widths)[:-1], axis=1)
    return {
        name: np.ascontiguousarray(part).astype(record[name].base)
        for name, part in zip(record.names or (), parts, strict=True)
    }


def _unpacked_fields(path: Path, offset: int, record: np.dtype, count: int) -> dict[str, np.ndarray]:
    """Two sizes, then the numbers, field by field, packed by LZF."""
    content = path.read_bytes()[offset:]
    length, size = (int.from_bytes(content[place : place + 4], "little") for place in (0, 4))
    packed, rest = content[8 : 8 + length], content[8 + length :]
    if len(packed) != length or size != count * record.itemsize or rest.strip(b"\0"):
        raise PointsetError(
            f"expected {length:,} bytes of {count:,} points, as its header says: it is cut off or damaged"
        )
    numbers, fields, start = unpack_lzf(packed, size), {}, 0
    for name in record.names or ():
        kind: Any = record[name]
        fields[name] = np.frombuffer(numbers, kind.base, count * kind.shape[0], start).reshape(count, -1)
        start += count * kind.itemsize
    return fields


def _columns(fields: Mapping[str, np.ndarray]) -> Columns:
    """Fields [n, repeat] as columns [n], with packed colors as channels from 0 to 1."""
    columns: dict[str, np.ndarray] = {}
    has_colors = any({*group} & {*fields} for group in COLORS)
    for name, field in fields.items():
        if name in PACKED and field.dtype.itemsize == 4 and field.shape[1] == 1 and not has_colors:
            channels = np.ascontiguousarray(field).view(np.uint8).reshape(-1, 4)
            columns |= {color: channels[:, place] for color, place in CHANNELS.items()}
        elif field.shape[1] == 1:
            columns[name] = field[:, 0]
        else:
            columns |= {own: field[:, index] for index, own in enumerate(numbered(name, field.shape[1]))}
    return dict(zip(usual_names([*columns]), columns.values(), strict=True))
