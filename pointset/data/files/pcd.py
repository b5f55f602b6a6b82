"""PCD: fields of points as text, as records or compressed (the Point Cloud Library's page on PCD_V7)."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from pointset.data.files.clouds import CloudError
from pointset.data.files.layouts import AXES, Binary, Text, header_lines, kept_columns, record_of, records
from pointset.data.files.lzf import unpack_lzf

PCD_KINDS = {"F": "f", "I": "i", "U": "u"}
PCD_NORMALS = {"normal_x": "nx", "normal_y": "ny", "normal_z": "nz"}


def pcd_layout(path: Path) -> Binary | Text | np.ndarray:
    """The layout of a PCD file, or its points if they are compressed."""
    lines, offset = header_lines(path, "DATA")
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
    return Binary(int(points[0]), offset, record_of(names, types))


def _decompressed(path: Path, offset: int, count: int, names: Sequence[str], types: Sequence[np.dtype]) -> np.ndarray:
    """The points of a compressed PCD file: two sizes, then all numbers of each field in turn, packed by LZF."""
    with path.open("rb") as file:
        file.seek(offset)
        packed, size = (int.from_bytes(file.read(4), "little") for _ in range(2))
        content = file.read(packed)
    starts = [count * start for start in accumulate((one.itemsize for one in types), initial=0)]
    if len(content) != packed or size != starts[-1]:
        raise CloudError(f"expected {packed} bytes of {count} points, as its header says: it may be cut off")
    numbers = unpack_lzf(content, size)
    kept = [names.index(name) for name in kept_columns(names)]
    columns = [np.frombuffer(numbers, types[i], count, starts[i]).astype(np.float64) for i in kept]
    return records(np.stack(columns, axis=1))
