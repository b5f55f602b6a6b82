"""Read points from .npy and .npz files (numpy's documentation of the NPY format, numpy.lib.format).

The header is parsed here rather than by numpy, which raises an open-ended list of errors and warnings for damaged ones.
"""

import ast
import os
import re
import warnings
import zipfile
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pointset.data.readers.color_shares import full_color
from pointset.data.readers.layouts import (
    AXES,
    MORE_COLUMNS,
    NORMALS,
    Binary,
    kept_columns,
    looks_transposed,
    numbered,
    plain_columns,
    records,
)
from pointset.data.readers.zips import DAMAGE, MOST_RATIO, entries, require_whole_directory
from pointset.errors import QUOTED, REPEATED, PointsetError, one_line, quoted

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of points and normals in an .npz file; the first name that is present is used."""
FACE_KEYS = ("faces", "triangles")
"""Names of arrays that show that an .npz file holds a mesh."""
SMALL = 1 << 26
"""Bytes that any .npz file may unpack to; equal points compress well."""
BLOCK = 1 << 20
"""Bytes that are unpacked at a time."""
LONGEST_HEADER = 10_000
"""Most bytes of a header, as in numpy; Python's parser may fail on longer ones."""
_LENGTH_SIZES = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}
"""Bytes of the header's length field, by version of the format."""
_TYPE = re.compile(r"[<>|=]?(?:f[248]|[iu][1248])")


def npy_layout(path: Path, features: tuple[str, ...] = ()) -> Binary:
    """The layout of an array in an .npy file with wanted features."""
    with path.open("rb") as file:
        return _layout(file, features)


def npz_points(path: Path, features: tuple[str, ...] = ()) -> np.ndarray:
    """The points of an .npz file, as records; features are further columns, or arrays with the features' names."""
    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as content:
                points, further = _arrays(file, content, features)
        except (*DAMAGE, OSError) as error:
            if isinstance(error, PointsetError) or (isinstance(error, OSError) and error.errno not in (None, 22)):
                raise
            words = one_line(f"{type(error).__name__}: {error}", REPEATED)
            raise PointsetError(f"holds no archive of arrays that can be read: {words}") from error
    names, parts = plain_columns(points.shape[1], features), [points]
    for what, array in further.items():
        if len(array) != len(points) or (what == "normals" and not points.shape[1] == array.shape[1] == 3):
            shapes = f"{list(array.shape)} beside {list(points.shape)}"
            raise PointsetError(f"expected as many {one_line(what, QUOTED)} as points, found {shapes}")
        names = (*names, *(NORMALS if what == "normals" else numbered(what, array.shape[1])))
        is_color = what == "colors" and array.dtype.kind in "iu"
        parts.append(array / full_color([array], array.dtype) if is_color else array)
    kept_columns(names, features)
    with np.errstate(invalid="ignore"):  # of a signalling NaN, that is refused later
        return records(np.hstack(parts), names)


def _arrays(
    file: BinaryIO, content: zipfile.ZipFile, features: Sequence[str]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The points of an .npz file, and its wanted normals and features, by name."""
    infos, size = entries(content), os.fstat(file.fileno()).st_size
    require_whole_directory(file, content)
    members = {info.filename.removesuffix(".npy"): info for info in infos}
    if len(members) < len(infos):
        raise PointsetError("has two arrays of one name: the name is ambiguous")
    for info in infos:
        content.open(info).close()  # fails if the local header has another name
    key = next((key for key in POINT_KEYS if key in members), next(iter(members)) if len(members) == 1 else None)
    if key is None:
        raise PointsetError(f"expected an array called {' or '.join(POINT_KEYS)}, found {quoted(', '.join(members))}")
    if key == "vertices" and not members.keys().isdisjoint(FACE_KEYS):
        raise PointsetError("is a mesh, and .npz files are read as clouds: save it as .off, .obj or .ply")
    normal_key = next((key for key in NORMAL_KEYS if key in members), None)
    others = {name: members[name] for name in features if name in members and name not in (*NORMAL_KEYS, key)}
    wanted = {**({} if normal_key is None else {"normals": members[normal_key]}), **others}
    unpacked = sum(info.file_size for info in (members[key], *wanted.values()))
    if unpacked > max(SMALL, MOST_RATIO * size):
        raise PointsetError(f"unpacks to {unpacked:,} bytes from {size:,}, which is too much for a point cloud")
    further = {what: _array(content, info, features, any_width=what in others) for what, info in wanted.items()}
    return _array(content, members[key], features), further


def _array(
    content: zipfile.ZipFile, info: zipfile.ZipInfo, features: Sequence[str], *, any_width: bool = False
) -> np.ndarray:
    with content.open(info) as packed:  # block by block, because the announced size may be wrong
        found = b"".join(iter(partial(packed.read, BLOCK), b""))
    if len(found) != info.file_size:
        raise EOFError(f"{quoted(info.filename)} has {len(found):,} bytes instead of {info.file_size:,}")
    layout = _layout(BytesIO(found), features, any_width=any_width)
    if layout.end != len(found):
        raise PointsetError(
            f"expected {layout.end:,} bytes of {quoted(info.filename)}, as its header says, found {len(found):,}"
        )
    columns = layout.by_column or layout.record.names or ()
    if layout.by_column:
        return np.frombuffer(found, layout.record, offset=layout.offset).reshape(len(columns), layout.count).T
    kind = layout.record[0]
    width = layout.record.itemsize // kind.itemsize
    return np.frombuffer(found, kind, offset=layout.offset).reshape(layout.count, width)


def _layout(file: BinaryIO, features: Sequence[str], *, any_width: bool = False) -> Binary:
    """The layout of an array of points, or with `any_width` of any array [n] or [n, width]."""
    kind, by_column, shape = _header(file)
    if any_width and len(shape) == 1:
        shape, by_column = (*shape, 1), False
    if len(shape) != 2 or not shape[1] or not _TYPE.fullmatch(kind):
        raise PointsetError(f"expected numbers [n, 3] or [n, 6], found {one_line(kind, 40)} {quoted(list(shape))}")
    told = f"expected numbers [n, 3] or [n, 6], found {kind} {list(shape)}"
    if not any_width and looks_transposed(*shape):  # with the feature "columns" it would be three points
        raise PointsetError(f"{told}: it looks transposed, save array.T")
    try:
        names = tuple(numbered("", shape[1])) if any_width else plain_columns(shape[1], features)
    except PointsetError as error:
        raise PointsetError(told + MORE_COLUMNS * (shape[1] > len(AXES))) from error
    dtype = np.dtype(kind)
    if by_column:
        return Binary(shape[0], file.tell(), dtype, by_column=names)
    return Binary(shape[0], file.tell(), np.dtype([(name, dtype) for name in names]))


def _header(file: BinaryIO) -> tuple[str, bool, tuple[int, ...]]:
    """Type, Fortran order and shape in the header of an array."""
    magic, version = file.read(6), file.read(2)
    size = int.from_bytes(file.read(_LENGTH_SIZES.get(version, 0)), "little")
    content = file.read(size) if size <= LONGEST_HEADER else b""
    try:
        with warnings.catch_warnings(action="ignore"):
            said = ast.literal_eval(content.decode("utf-8" if version == b"\x03\x00" else "latin-1"))
        if magic != b"\x93NUMPY" or len(content) < size or {*said} != {"descr", "fortran_order", "shape"}:
            raise ValueError
        kind, by_column, shape = said["descr"], said["fortran_order"], said["shape"]
        if not isinstance(by_column, bool) or not isinstance(shape, tuple):
            raise ValueError
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:  # all that literal_eval raises
        raise PointsetError("expected the header of a numpy array: save it with numpy.save") from error
    return kind if isinstance(kind, str) else "several fields", by_column, shape
