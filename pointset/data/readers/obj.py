r"""Read OBJ, the format of Wavefront ("Object Files", appendix B1 of the Advanced Visualizer's manual).

OBJ is text, with a keyword and its words on each line: `v x y z`, whose further weight and color meshes ignore, and `f`
with corners `a`, `a/b`, `a//c` or `a/b/c`. The first number of a corner is the vertex: positive numbers count all
vertices of the file from 1, and -1 is the last vertex above the face. Polygons are triangulated
(`pointset.data.readers.meshes`). Vertices alone are a point cloud, with their colors and as many normals `vn`.

A backslash at the end of a line joins the next one, except in names, where it is a character of a path. Other keywords
are ignored. What is wrong is refused with its line, because a guess could silently give a wrong mesh.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, NORMAL_COLUMNS, Columns
from pointset.data.readers.lines import Rows, lines_of, number_table, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.runs.files import read_file

_NAMES = rb"g|o|usemtl|mtllib|usemap|maplib|shadow_obj|trace_obj"
_CONTINUED = re.compile(rb"(?m)^(?![ \t]*(?:" + _NAMES + rb")\b)(.*)(?:(?<=[ \t])\\\n|\\\n(?=[ \t]))")
_WIDTHS, _EXPECTED = range(3, 8), "expected the 3 coordinates of a vertex, or up to 7 numbers with its weight and color"


def parse_obj(content: bytes, name: str) -> Mesh:
    """Return the mesh of an OBJ file, in its order; a MeshError with `name` and the line if it is not as described."""
    vertices, faces, _ = _read(content, name)
    return mesh_of_polygons(vertices.coordinates(_WIDTHS, _EXPECTED), *_corners(faces, len(vertices.lines)), name)


def obj_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return the columns of an OBJ file without faces: coordinates, colors and normals of the vertices."""
    vertices, _, normals = _read(read_file(path), str(path))
    columns = dict(zip(AXES, vertices.coordinates(_WIDTHS, _EXPECTED).T, strict=True))
    table = number_table(vertices.lines)
    if table is not None and table.shape[1] >= 6:
        columns |= dict(zip(COLOR_COLUMNS[0], table[:, -3:].T, strict=True))
    if normals.lines and len(normals.lines) == len(vertices.lines):
        vectors = normals.coordinates((3,), "expected the 3 numbers of a normal")
        columns |= dict(zip(NORMAL_COLUMNS, vectors.T, strict=True))
    return columns


def _read(content: bytes, name: str) -> tuple[Rows, Rows, Rows]:
    """Return the lines of vertices, faces and normals, without their keywords."""
    text = plain_text(content)
    if b"\\\n" in text:
        text = _CONTINUED.sub(rb"\1 \v", text)
    lines: dict[bytes, list[bytes]] = {b"v": [], b"f": [], b"vn": []}
    for line in text.split(b"\n"):
        if words := line.split(None, 1):
            lines.setdefault(words[0], []).append(words[1] if len(words) > 1 else b"")
    if not lines[b"v"]:
        Rows(lines_of(text), name, text).fail(0, "expected lines of OBJ, such as v 0 0 0")
    vertices, faces, normals = (
        Rows(lines[word], name, text, rb"(?m)^[ \t]*" + word + rb"(?!\S)") for word in (b"v", b"f", b"vn")
    )
    return vertices, faces, normals


def _corners(faces: Rows, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of all faces as rows of the vertices, and the sizes of the faces."""
    if not faces.lines:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    block = b"\n".join(faces.lines)
    if b"/" in block:  # of a corner a/b/c, the first number is the vertex
        faces = faces._replace(lines=re.sub(rb"/\S*", b"", block).split(b"\n"))
    indices, sizes = faces.numbers(np.int64)
    faces.require(sizes > 0, "expected corners a, a/b, a//c or a/b/c of a face")
    rows = indices - 1
    if (indices < 0).any():
        is_vertex = [match[1] == b"v" for match in re.finditer(rb"(?m)^[ \t]*([vf])(?!\S)", faces.text)]
        above = np.cumsum(is_vertex)[~np.array(is_vertex)]
        rows = np.where(indices < 0, indices + np.repeat(above, sizes), rows)
    right = np.logical_and.reduceat((rows >= 0) & (rows < count), np.cumsum(sizes) - sizes)
    faces.require(right, f"expected vertex indices from 1 to {count}, or back from -1 to the first vertex")
    return rows, sizes
