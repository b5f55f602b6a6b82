"""Arrays of points as numpy saves them (numpy's documentation of the NPY format, numpy.lib.format)."""

import zipfile
import zlib
from pathlib import Path
from tokenize import TokenError

import numpy as np

from pointset.data.files.clouds import CloudError
from pointset.data.files.layouts import AXES, NORMALS, Binary, record_of, records

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""Names of the arrays in an .npz file."""
_UNREADABLE = (
    *(ValueError, TypeError, KeyError, AttributeError, EOFError, OverflowError, MemoryError),
    *(NotImplementedError, RuntimeError, TokenError, SyntaxError, zipfile.BadZipFile, zlib.error),
)
"""Raised by numpy and zipfile for damaged files, and for those that hold Python objects."""


def npy_layout(path: Path) -> Binary:
    """The layout of an array in an .npy file."""
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
    return Binary(shape[0], offset, record_of(names, [dtype] * shape[1]))


def npz_points(path: Path) -> np.ndarray:
    """The points of an .npz file, as records."""
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
