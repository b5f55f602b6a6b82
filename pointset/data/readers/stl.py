"""Read STL, binary and text (3D Systems, "StereoLithography Interface Specification").

A binary file has a header of 80 arbitrary bytes, the number of triangles, and 50 bytes per triangle: a normal, three
corners and two further bytes. A file is binary if its size fits the announced number, whatever its first bytes are.
Otherwise it is text, one or more times

    solid NAME
      facet normal X Y Z
        outer loop
          vertex X Y Z (three times)
        endloop
      endfacet
    endsolid NAME

in upper or lower case, with any blanks and line ends between the words; names end with their lines. Normals are
ignored. Incomplete files of either kind are refused. Corners are not merged: each triangle has its own vertices.
"""

import warnings

import numpy as np

from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.stl_words import FACET, NUMBER, StlReader

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attributes", "<u2")])
_HEADER = 84
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def parse_stl(content: bytes, name: str) -> Mesh:
    """Parse an STL file, with the triangles in the file's order.

    Raises:
        MeshError: the file is not STL as described above; the message begins with `name` and the line, or the byte.
    """
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    size = _HEADER + count * _RECORD.itemsize
    if len(content) == size:
        return _read_binary(content, name)
    text = content.removeprefix(_BYTE_ORDER_MARK)
    if text[:80].lower().split()[:1] == [b"solid"]:
        try:
            corners = _read_usual(text)
            return _mesh(StlReader(text, name).read() if corners is None else corners, name)
        except MeshError:
            if b"\0" not in content:
                raise
    if len(content) < _HEADER:
        raise MeshError(f"{name}: expected STL, which begins with solid or with {_HEADER} bytes of header")
    raise MeshError(
        f"{name}, byte {_HEADER - 4}: a binary STL of {count} triangles has {size} bytes, found {len(content)}: "
        "it was cut off, is damaged, or is not an STL file"
    )


def _read_binary(content: bytes, name: str) -> Mesh:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        corners = np.frombuffer(content, _RECORD, offset=_HEADER)["corners"].astype(np.float64).reshape(-1, 3)
    wrong = np.flatnonzero(~np.isfinite(corners).all(axis=1))
    if len(wrong):
        place = _HEADER + _RECORD.itemsize * int(wrong[0] // 3)
        found = corners[wrong[0]].tolist()
        raise MeshError(f"{name}, byte {place}: expected a triangle with finite coordinates, found {found}")
    return _mesh(corners, name)


def _mesh(corners: np.ndarray, name: str) -> Mesh:
    if not len(corners):
        raise MeshError(f"{name}: expected a mesh, found no triangles")
    return Mesh(corners, np.arange(len(corners)).reshape(-1, 3))


def _read_usual(text: bytes) -> np.ndarray | None:
    """Read the corners [n, 3] of a single solid of finite numbers by numpy; None for anything else, correct or not."""
    if text.count(b"\r") != text.count(b"\r\n"):
        return None
    first, last = text.find(b"\n"), text.rstrip().rfind(b"\n") + 1
    if not 0 < first < last or text[last:].lower().split()[:1] != [b"endsolid"]:
        return None
    body = np.frombuffer(text[first:last].lower(), np.uint8).copy()
    blank = body <= ord(" ")
    begins, ends = np.flatnonzero(blank[:-1] > blank[1:]) + 1, np.flatnonzero(blank[:-1] < blank[1:]) + 1
    if not len(begins) or len(begins) % len(FACET):
        return None
    for column, word in enumerate(FACET):
        places = begins[column :: len(FACET)]
        if not word:
            continue
        if (ends[column :: len(FACET)] - places != len(word)).any():
            return None
        for letter in word:
            if (body[places] != letter).any():
                return None
            body[places] = ord(" ")
            places = places + 1
    numbers = body.tobytes()
    if numbers.translate(None, b"0123456789+-.e \t\n\v\f\r"):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # numpy before 2.3 warns of words that are not numbers
            table = np.fromstring(numbers, np.float64, sep=" ")
    except (ValueError, DeprecationWarning):
        return None
    if len(table) != len(begins) // len(FACET) * FACET.count(NUMBER) or not np.isfinite(table).all():
        return None
    return table.reshape(-1, 4, 3)[:, 1:].reshape(-1, 3)
