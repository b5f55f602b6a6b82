"""Good PCD, npy, npz and xyz files in the spellings of several writers."""

import io
import struct
from typing import Any

import numpy as np

from fuzzing.kinds.mesh_seeds import GRID_PLACES, PLACES
from fuzzing.kinds.ply_seeds import COLOURED, NORMALS, ORIENTED, WHOLE_PLACES

CODES = {"I1": "b", "I2": "h", "I4": "i", "I8": "q", "U1": "B", "U2": "H", "U4": "I", "U8": "Q", "F4": "f", "F8": "d"}
SINGLE = [("x", "F4", 1), ("y", "F4", 1), ("z", "F4", 1)]
DOUBLE = [("x", "F8", 1), ("y", "F8", 1), ("z", "F8", 1)]


def pcd_file(
    data: str,
    fields: list[tuple[str, str, int]],
    rows: list[tuple],
    *,
    height: int = 1,
    end: str = "\n",
    drop: tuple[str, ...] = (),
) -> bytes:
    """A PCD file: name, type with size, and count of each field, and all numbers of each point."""
    names, types, counts = zip(*fields, strict=True)
    head: dict[str, object] = {"VERSION": "0.7" if height == 1 else ".7", "FIELDS": " ".join(names)}
    head |= {"SIZE": " ".join(kind[1] for kind in types), "TYPE": " ".join(kind[0] for kind in types)}
    head |= {"COUNT": " ".join(map(str, counts)), "WIDTH": len(rows) // height, "HEIGHT": height}
    head |= {"VIEWPOINT": "0 0 0 1 0 0 0", "POINTS": len(rows), "DATA": data}
    lines = [
        "# .PCD v0.7 - Point Cloud Data file format",
        *(f"{key} {value}" for key, value in head.items() if key not in drop),
    ]
    text = (end.join(lines) + end).encode()
    if data == "ascii":
        return text + "".join(" ".join(map(str, row)) + end for row in rows).encode()
    codes = "".join(CODES[kind] * count for kind, count in zip(types, counts, strict=True))
    if data == "binary":
        return text + b"".join(struct.pack("<" + codes, *row) for row in rows)
    columns, place = b"", 0
    for kind, count in zip(types, counts, strict=True):
        numbers = [number for row in rows for number in row[place : place + count]]
        columns += struct.pack(f"<{len(numbers)}{CODES[kind]}", *numbers)
        place += count
    packed = compressed(columns)
    return text + struct.pack("<2I", len(packed), len(columns)) + packed


def compressed(content: bytes) -> bytes:
    """LZF: copies of the nearest three or more bytes that came before, else new bytes."""
    packed, fresh, place = b"", b"", 0
    while place < len(content):
        length = 0
        for size in range(3, min(40, len(content) - place) + 1):
            found = content.rfind(content[place : place + size], max(0, place - 8000), place + size - 1)
            if found < 0:
                break
            length, back = size, place - found - 1
        if length:
            packed += literal(fresh)
            fresh = b""
            high = min(length - 2, 7)
            packed += bytes([high << 5 | back >> 8, *([length - 9] if high == 7 else []), back & 255])
            place += length
        else:
            fresh += content[place : place + 1]
            place += 1
    return packed + literal(fresh)


def literal(fresh: bytes) -> bytes:
    """New bytes, in runs of up to 32."""
    return b"".join(bytes([len(run) - 1]) + run for i in range(0, len(fresh), 32) if (run := fresh[i : i + 32]))


def pcd_files(data: str) -> list[bytes]:
    """Clouds of the Point Cloud Library, of Open3D and by hand."""
    normals = [("normal_x", "F4", 1), ("normal_y", "F4", 1), ("normal_z", "F4", 1), ("curvature", "F4", 1)]
    padded = [("x", "F4", 1), ("_", "U1", 3), ("y", "F8", 1), ("z", "F4", 1), ("ring", "U2", 1), ("_", "U1", 1)]
    nan = float("nan")
    return [
        pcd_file(data, SINGLE, PLACES),
        pcd_file(data, SINGLE, GRID_PLACES),
        pcd_file(data, DOUBLE, PLACES, drop=("COUNT", "VIEWPOINT"), end="\r\n"),
        pcd_file(data, [*SINGLE, *normals], [(*row, nan) for row in ORIENTED], height=2),
        pcd_file(data, padded, [(x, 1, 2, 3, y, z, 900, 0) for x, y, z in PLACES]),
        pcd_file(data, [*SINGLE, ("rgb", "U4", 1)], [(*row[:3], 4278190080 + row[5]) for row in COLOURED], height=3),
        pcd_file(data, [("x", "I1", 1), ("y", "I2", 1), ("z", "U8", 1)], WHOLE_PLACES),
    ]


POINTS = np.array(PLACES)
BOTH = np.array(ORIENTED, dtype=np.float64)


def saved(table: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    """A file of numpy."""
    file = io.BytesIO()
    np.lib.format.write_array(file, table, version=version)
    return file.getvalue()


NPY_FILES = [
    saved(POINTS),
    saved(BOTH),
    saved(np.asfortranarray(BOTH)),
    saved(POINTS.astype(np.float32), (2, 0)),
    saved(POINTS.astype(">f8"), (3, 0)),
    saved(POINTS.astype(np.float16) / 64),
    saved(np.array(WHOLE_PLACES, dtype=np.int16)),
    saved(np.abs(WHOLE_PLACES).astype(">u4")),
]


def archived(compress: bool = False, **arrays: Any) -> bytes:
    """An archive of numpy."""
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, **arrays)
    return file.getvalue()


NPZ_FILES = [
    archived(anything=BOTH),
    archived(compress=True, points=POINTS.astype(np.float32)),
    archived(points=POINTS, normals=np.array(NORMALS), labels=np.arange(3)),
    archived(compress=True, points=BOTH, names=np.array(["a", "bc"])),
]


def text_of(table: np.ndarray, separator: str = " ", end: str = "\n", head: str = "") -> bytes:
    """Numbers in lines."""
    return (head + "".join(separator.join(map(repr, row)) + end for row in table.tolist())).encode()


XYZ_FILES = [
    text_of(POINTS),
    text_of(np.array(GRID_PLACES)),
    text_of(BOTH, "\t"),
    text_of(POINTS, ","),
    text_of(BOTH, ", ", head="# x, y, z, nx, ny, nz\n"),
    text_of(POINTS, ";", end=";\n").replace(b";\n", b"\n"),
    text_of(POINTS, " ; ", end=" // row\r\n", head="//X Y Z\n\n"),
    text_of(POINTS, "  ", head="\ufeff"),
    b"\n".join(b"%d %d %d" % row for row in WHOLE_PLACES),
]
