r"""Read OBJ, the format of Wavefront ("Object Files", appendix B1 of the Advanced Visualizer's manual).

OBJ is text, with a keyword and its words on each line. Supported:

- `v x y z`; a weight, a color or both after it are ignored by meshes;
- `f` with three corners or more, each `a`, `a/b`, `a//c` or `a/b/c`. The first number is the vertex: positive numbers
  count all vertices of the file from 1; -1 is the last vertex above the face;
- polygons, which are triangulated (`pointset.data.readers.meshes`);
- vertices alone: the file is a point cloud, with the colors of its vertices and as many normals `vn`;
- blank lines, comments from `#` to the end of the line, any line ends, also none after the last line. A backslash at
  the end of a line joins the next one, except in comments and names, where it is a character of a path.

Everything else that describes no surface is ignored, with a warning for unknown keywords and for faces of one or two
corners. The rest is refused with its line, because a guess could silently give a wrong mesh.
"""

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, NORMAL_COLUMNS, Columns
from pointset.data.readers.lines import (
    Line,
    coordinates,
    line_error,
    lines_of,
    number_table,
    plain_text,
    require,
    widths_of,
)
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, counted, quoted
from pointset.runs.files import read_file

_NAMES = {*b"g o usemtl mtllib usemap maplib shadow_obj trace_obj".split()}
_CURVES = b"cstype deg bmat step parm curv curv2 surf trim hole scrv sp end con ctech stech res".split()
_IGNORED = {*_NAMES, *_CURVES, *b"vt vp l p s mg bevel c_interp d_interp lod call csh".split()}
_REST_OF_CORNER = re.compile(rb"(?<=\d)/[\d+-]*(?:/[\d+-]*)?(?![^\s])")
_WHOLE_NUMBERS = re.compile(rb"(?:\s*[+-]?\d{1,18}(?!\S))+\s*")
_WIDTHS = (3, 4, 5, 6, 7)
"""Numbers of a vertex: its coordinates, and possibly a weight and a color."""


class _Statements(NamedTuple):
    """Lines of a file by keyword, without the keyword."""

    vertices: list[Line]
    faces: list[Line]
    above: list[int]
    """Number of vertices above each face."""
    normals: list[Line]


def parse_obj(content: bytes, name: str) -> Mesh:
    """Return the mesh of an OBJ file, in its order; a MeshError with `name` and the line if it is not as described."""
    text = plain_text(content)
    statements = _statements(text, name)
    vertices = _positions(statements.vertices, name)
    corners, sizes = _corners(statements, name)
    if len(sizes) and sizes[-1] < 3 and not text.endswith(b"\n") and statements.faces[-1][0] == text.count(b"\n") + 1:
        expected = "expected a line end after a face of one or two corners: the file may be cut off"
        raise line_error(name, statements.faces[-1], expected)
    return mesh_of_polygons(vertices, corners, sizes, name)


def obj_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return the columns of an OBJ file without faces: coordinates, colors and normals of the vertices."""
    statements = _statements(plain_text(read_file(path)), str(path))
    positions = _positions(statements.vertices, str(path))
    columns = dict(zip(AXES, positions.T, strict=True))
    table = number_table(b"\n".join(text for _, text in statements.vertices))
    if table is not None and table.shape[1] >= 6:
        columns |= dict(zip(COLOR_COLUMNS[0], table[:, -3:].T, strict=True))
    if len(statements.normals) == len(positions):
        normals = coordinates(statements.normals, str(path), (3,), "expected the 3 numbers of a normal")
        columns |= dict(zip(NORMAL_COLUMNS, normals.T, strict=True))
    return columns


def _statements(text: bytes, name: str) -> _Statements:
    statements, unknown = _Statements([], [], [], []), list[bytes]()
    for number, line in _joined_lines(text, name) if b"\\\n" in text or text.endswith(b"\\") else lines_of(text):
        keyword, *rest = line.split(None, 1)
        statement = number, rest[0] if rest else b""
        if keyword == b"v":
            statements.vertices.append(statement)
        elif keyword == b"f":
            statements.faces.append(statement)
            statements.above.append(len(statements.vertices))
        elif keyword == b"vn":
            statements.normals.append(statement)
        elif keyword not in _IGNORED:
            unknown.append(keyword)
    if unknown and not statements.vertices:
        raise PointsetError(f"expected lines of OBJ, such as v 0 0 0, found {quoted(unknown[0].decode('latin-1'))}")
    if unknown:
        lines = f"{counted(len(unknown), 'line')} with an unknown keyword, such as"
        warnings.warn(f"{name}: {lines} {quoted(unknown[0].decode('latin-1'))}, are left out", stacklevel=4)
    return statements


def _joined_lines(text: bytes, name: str) -> Iterator[Line]:
    r"""Return the lines with words, joined where they end in a backslash, except in names.

    Within a number a break is ambiguous (2\3: 23, or 2 and 3): the backslash stays, and the number is refused.
    """
    lines = enumerate(text.split(b"\n"), 1)
    for number, line in lines:
        while line.endswith(b"\\") and line.split()[0] not in _NAMES:
            _, following = next(lines, (0, b""))
            if not following:
                raise line_error(name, (number, line), "expected another line after a backslash")
            is_clear = line[-2:-1] in (b" ", b"\t") or following[:1] in (b" ", b"\t")
            line = line[: -1 if is_clear else None] + following
        if line.strip():
            yield number, line


def _positions(lines: list[Line], name: str) -> np.ndarray:
    expected = "expected the 3 coordinates of a vertex, or up to 7 numbers with its weight and color"
    return coordinates(lines, name, _WIDTHS, expected) if lines else np.empty((0, 3))


def _corners(statements: _Statements, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of all faces as rows of the vertices, and the sizes of the faces."""
    faces, count = statements.faces, len(statements.vertices)
    if not faces:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    sizes, above = widths_of(faces), np.array(statements.above)
    indices = _indices(b"\n".join(text for _, text in faces))
    if len(indices) != sizes.sum() or not sizes.all():
        right = np.array([0 < size == len(_indices(text)) for (_, text), size in zip(faces, sizes, strict=True)])
        require(faces, right, name, "expected corners a, a/b, a//c or a/b/c of a face, in whole numbers")
    rows = np.where(indices < 0, indices + np.repeat(above, sizes), indices - 1)
    right = (rows >= 0) & (rows < count)
    if not right.all():
        face = int(np.searchsorted(np.cumsum(sizes), np.argmin(right), side="right"))
        expected = f"expected vertex indices from 1 to {count}, the vertices of the file, or from "
        raise line_error(name, faces[face], f"{expected}-{above[face]} to -1 back from this line")
    return rows, sizes


def _indices(block: bytes) -> np.ndarray:
    """Return the first numbers of corners; none if one is not a whole number, or too large."""
    firsts = _REST_OF_CORNER.sub(b"", block)
    if not _WHOLE_NUMBERS.fullmatch(firsts):
        return np.empty(0, np.int64)
    return np.fromstring(firsts, np.int64, sep=" ")
