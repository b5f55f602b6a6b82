"""Read binary and text STL files. trimesh (5.2) is not used, because it reads truncated text without a warning."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.formats import take_declared
from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
"""Bytes before the first record: a comment, and the number of triangles in the last four bytes."""
_CORNER = re.compile(rb"(?im)^[ \t]*vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*$")
_END = re.compile(rb"(?im)^[ \t]*end[ \t]?loop\b")


def read_stl(path: Path, features: Sequence[str] = ()) -> Mesh:
    """Return the mesh of an STL file, which is text if it has vertex lines and its size is not that of a binary file.

    If the header of a binary file declares no triangles, all triangles after the header are read, with a warning.
    """
    content = path.read_bytes()
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    fit = max(0, len(content) - _HEADER) // _RECORD.itemsize
    is_sized = len(content) == _HEADER + count * _RECORD.itemsize
    text = b"" if is_sized else content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _CORNER.search(text):
        corners = _corners_of_text(path, text)
    else:
        if len(content) < _HEADER:
            raise PointsetError("is not an STL file: it has neither lines of vertices nor the size of binary triangles")
        if not count and fit:
            warnings.warn(f"{path}: declares no triangle in its header, but has {fit:,}", stacklevel=2)
            count = fit
        records = take_declared(path, memoryview(content)[_HEADER:], count * _RECORD.itemsize)
        corners = np.frombuffer(records, _RECORD)["corners"]
    return Mesh(corners.reshape(-1, 3), np.arange(corners.size // 3).reshape(-1, 3))


def _corners_of_text(path: Path, text: bytes) -> np.ndarray:
    """Return the coordinates [3 * facets, 3] in vertex lines. Each end of a loop must follow three vertex lines."""
    corners, ends = [*_CORNER.finditer(text)], [match.start() for match in _END.finditer(text)]
    before = np.searchsorted([match.start() for match in corners], ends)
    wrong = np.flatnonzero(np.diff(before, prepend=0) != 3)
    if len(wrong) or not ends or before[-1] != len(corners):
        line = text.count(b"\n", 0, ends[wrong[0]] if len(wrong) else len(text)) + 1
        raise PointsetError(f"line {line}: expected three vertices in a facet, and the end of its loop")
    if b"endsolid" not in text[ends[-1] :].lower().replace(b"end solid", b"endsolid"):
        warnings.warn(f"{path}: does not end with endsolid: the last facets may be missing", stacklevel=2)
    return np.array([corner.groups() for corner in corners]).astype(np.float64)
