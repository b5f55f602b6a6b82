"""Read PCD, the format of the Point Cloud Library (its page "The PCD file format").

The package pypcd4 (1.5) is not used, because it refuses repeated blanks, versions before .7 and headers without COUNT
or POINTS, and rounds numbers in text of the type F 4 to float32. Only its library for compressed data, lzf, is used.
"""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import COLOR_COLUMNS, Columns, named_columns
from pointset.data.readers.formats import require_count, take_declared
from pointset.errors import PointsetError, quoted, require_extra
from pointset.runs.files import require_unpackable

PACKED_COLORS = ("rgb", "rgba")
CHANNELS = {"blue": 0, "green": 1, "red": 2}
"""Byte of each channel in a color that is packed into one field of 4 bytes."""
_DATA = re.compile(rb"(?m)^[ \t]*DATA[ \t]+(\w+)[ \t]*\r?\n")


def pcd_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return the columns of a PCD file; packed colors become the columns red, green and blue."""
    content = path.read_bytes()
    data = _DATA.search(content)
    if data is None:
        raise PointsetError("is not a PCD file: it has no line DATA")
    lines = [line.split() for line in content[: data.start()].decode("utf-8", "replace").splitlines()]
    header = {words[0].upper(): words[1:] for words in lines if words and not words[0].startswith("#")}
    kind, body = _record_type(header), content[data.end() :]
    width, height = (int(header.get(name, ["1"])[0]) for name in ("WIDTH", "HEIGHT"))
    count = int(header["POINTS"][0]) if "POINTS" in header else width * height
    if data[1] == b"ascii":
        columns = _text_columns(path, body, kind, count)
    elif data[1] == b"binary":
        records = np.frombuffer(take_declared(path, body, count * kind.itemsize), kind)
        columns = {name: records[name] for name in kind.names or ()}
    elif data[1] == b"binary_compressed":
        columns = _unpacked_columns(path, body, kind, count)
    else:
        raise PointsetError(f"has data of the unknown kind {quoted(data[1].decode())}")
    for name in {*PACKED_COLORS} & {*columns}:
        if kind[name].itemsize == 4 and not any({*group} <= {*columns} for group in COLOR_COLUMNS):
            channels = np.ascontiguousarray(columns.pop(name), kind[name]).view(np.uint8).reshape(-1, 4)
            columns |= {color: channels[:, place] for color, place in CHANNELS.items()}
    columns = {name: column for name, column in columns.items() if not name.startswith("_")}
    return named_columns([*columns], columns.values())


def _record_type(header: dict[str, list[str]]) -> np.dtype:
    """Return the numpy type of a point. A field of several numbers becomes numbered fields. Padding is _0, _1, ..."""
    names = header.get("FIELDS", header.get("COLUMNS", []))
    letters, sizes, counts = (header.get(key, ["1"] * len(names)) for key in ("TYPE", "SIZE", "COUNT"))
    if not len(names) == len(letters) == len(sizes) == len(counts):
        raise PointsetError("is not a PCD file, or damaged: its header lacks the type or the size of a field")
    fields = list[tuple[str, str]]()
    for place, (name, letter, size, count) in enumerate(zip(names, letters, sizes, counts, strict=True)):
        name, kind = f"_{place}" if name == "_" else name, f"<{letter.lower()}{size}"
        fields += [(name if count == "1" else f"{name} {number}", kind) for number in range(int(count))]
    return np.dtype(fields)


def _text_columns(path: Path, body: bytes, kind: np.dtype, count: int) -> dict[str, np.ndarray]:
    """Return the columns of text data. Floats become float64, because a field of type F 4 may hold map coordinates."""
    names = kind.names or ()
    body = body.replace(b"nan(ind)", b"nan").replace(b",", b" ")  # some programs write these
    table = np.empty((0, len(names)))
    if body.strip():
        table = np.loadtxt(io.BytesIO(body), np.float64, comments=None, ndmin=2)
    columns = dict(zip(names, take_declared(path, table, count, "points").T, strict=True))
    return {name: column if kind[name].kind == "f" else column.astype(kind[name]) for name, column in columns.items()}


def _unpacked_columns(path: Path, body: bytes, kind: np.dtype, count: int) -> dict[str, np.ndarray]:
    """Return the columns of compressed data, which are stored one after the other."""
    require_extra("pcd", "a compressed .pcd file", "lzf")
    import lzf

    packed, unpacked = np.frombuffer(body, "<u4", 2).tolist()
    require_unpackable(path, unpacked)
    content = lzf.decompress(take_declared(path, body[8:], packed), unpacked) or b""
    require_count(len(content), unpacked, "bytes")
    stored = unpacked // kind.itemsize
    take_declared(path, range(stored), count, "points")
    columns, start = dict[str, np.ndarray](), 0
    for name in kind.names or ():
        columns[name] = np.frombuffer(content, kind[name], stored, start)[:count]
        start += stored * kind[name].itemsize
    return columns
