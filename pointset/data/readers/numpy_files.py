"""Read points from .npy files by a memory map, and from .npz files."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.columns import NORMALS, Columns, looks_transposed, numbered, plain_names, usual_names
from pointset.errors import PointsetError, quoted

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of points and normals in an .npz file; the first name that is present is used."""
FACE_KEYS = ("faces", "triangles")
"""Names of arrays that show that an .npz file holds a mesh."""
SMALL, MOST_RATIO = 1 << 26, 100
"""Bytes that any .npz file may unpack to, and unpacked bytes per packed byte of larger ones: zip bombs have more."""


def npy_columns(path: Path, features: Sequence[str]) -> Columns:
    """The columns of an array [n, d], or of an array [n] of records with named fields, in an .npy file.

    Raises:
        PointsetError: the file is something else, is cut off or too long.
    """
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.memmap):
        raise PointsetError("expected one array, found an archive")
    size = path.stat().st_size
    if array.offset + array.nbytes != size:
        raise PointsetError(f"has {size:,} bytes, and its header says {array.offset + array.nbytes:,}: it is damaged")
    if array.dtype.names and array.ndim == 1:
        return dict(zip(usual_names(array.dtype.names), (array[name] for name in array.dtype.names), strict=True))
    return _columns(array, features)


def npz_columns(path: Path, features: Sequence[str]) -> Columns:
    """The columns of the points in an .npz file; features are further columns, or arrays with the features' names.

    Raises:
        PointsetError: the file is something else, is damaged, or unpacks to far more than its size.
    """
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > max(SMALL, MOST_RATIO * path.stat().st_size):
            raise PointsetError(f"unpacks to {unpacked:,} bytes, which is too much for a point cloud")
    with np.load(path, allow_pickle=False) as arrays:
        key = next((key for key in POINT_KEYS if key in arrays), arrays.files[0] if len(arrays.files) == 1 else None)
        if key is None:
            raise PointsetError(
                f"expected an array called {' or '.join(POINT_KEYS)}, found {quoted(', '.join(arrays.files))}"
            )
        if key == "vertices" and {*FACE_KEYS} & {*arrays.files}:
            raise PointsetError("is a mesh, and .npz files are read as clouds: save it as .off, .obj or .ply")
        columns = dict(_columns(arrays[key], features))
        normals = next((name for name in NORMAL_KEYS if name in arrays), None)
        wanted = {name: name for name in features if name in arrays and name not in (*NORMAL_KEYS, key)}
        for name, own in {**({"normals": normals} if normals else {}), **wanted}.items():
            columns |= _beside(name, arrays[own], len(next(iter(columns.values()))))
    return columns


def _columns(array: np.ndarray, features: Sequence[str]) -> Columns:
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind not in "fiu":
        raise PointsetError(f"expected numbers [n, 3] or more columns, found {array.dtype} {list(array.shape)}")
    if looks_transposed(*array.shape):
        raise PointsetError(f"expected numbers [n, 3], found {list(array.shape)}: it looks transposed, save array.T")
    return {name: array[:, index] for index, name in enumerate(plain_names(array.shape[1], features))}


def _beside(name: str, array: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """The columns of a feature's array [n] or [n, f]."""
    columns = array[:, None] if array.ndim == 1 else array
    if columns.ndim != 2 or len(columns) != count or columns.dtype.kind not in "fiub":
        raise PointsetError(f"expected as many {name} as points, {count:,}, found {array.dtype} {list(array.shape)}")
    if name == "normals" and columns.shape[1] != len(NORMALS):
        raise PointsetError(f"expected normals [n, 3], found {list(array.shape)}")
    names = NORMALS if name == "normals" else numbered(name, columns.shape[1])
    return {own: columns[:, index] for index, own in enumerate(names)}
