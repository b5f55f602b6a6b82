r"""Read OBJ, the format of Wavefront ("Object Files", appendix B1 of the Advanced Visualizer's manual).

OBJ is text, with a keyword at the start of each line. `v x y z` is a vertex; its weight and color are ignored in a
mesh. `f` is a face with corners `a`, `a/b`, `a//c` or `a/b/c`, where `a` is the index of a vertex: 1 is the first
vertex of the file, and -1 the last vertex above the face. Polygons are triangulated (`pointset.data.readers.meshes`).
A file without faces is a point cloud, with colors if vertices have them, and with normals if each `v` has a `vn`.

A line that ends in a backslash continues on the next line, except in names, where backslashes belong to paths. Other
keywords are ignored. A wrong line raises an error with the line number, because a guess could silently give a wrong
mesh.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, NORMAL_COLUMNS, Columns
from pointset.data.readers.lines import Lines, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons

_NAMES = rb"g|o|usemtl|mtllib|usemap|maplib|shadow_obj|trace_obj"
_JOINED = re.compile(rb"(?:(?<=[ \t])\\\n|\\\n(?=[ \t]))")
_CONTINUED = re.compile(rb"(?m)^(?![ \t]*(?:" + _NAMES + rb")\b)(?:.*" + _JOINED.pattern + rb")+.*")
_WIDTHS, _EXPECTED = range(3, 8), "expected the 3 coordinates of a vertex, or up to 7 numbers with its weight and color"


def read_obj(path: Path, features: Sequence[str] = ()) -> Mesh | Columns:
    """Return the mesh of an OBJ file or, if it has no faces, the coordinates, colors and normals of its points."""
    text = plain_text(path.read_bytes())
    if b"\\\n" in text:  # added empty lines keep the line numbers
        text = _CONTINUED.sub(lambda found: _JOINED.sub(b" ", found[0]) + b"\n" * len(_JOINED.findall(found[0])), text)
    lines = Lines.of(text)
    vertices, faces, normals = (lines.after(word) for word in (b"v", b"f", b"vn"))
    if not len(vertices):
        lines.fail(0, "expected lines of OBJ, such as v 0 0 0")
    points = vertices.coordinates(_WIDTHS, _EXPECTED)
    if len(faces):
        return mesh_of_polygons(points, *_corners(faces, vertices), str(path))
    columns = dict(zip(AXES, points.T, strict=True))
    if len({*vertices.widths.tolist()}) == 1 and vertices.widths[0] >= 6:
        columns |= dict(zip(COLOR_COLUMNS[0], vertices.numbers().reshape(len(vertices), -1)[:, -3:].T, strict=True))
    if len(normals) == len(vertices):
        vectors = normals.coordinates((3,), "expected the 3 numbers of a normal")
        columns |= dict(zip(NORMAL_COLUMNS, vectors.T, strict=True))
    return columns


def _corners(faces: Lines, vertices: Lines) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertex indices of all faces, concatenated, and the number of corners of each face."""
    count, sizes = len(vertices), faces.widths
    faces.require(sizes > 0, "expected corners a, a/b, a//c or a/b/c of a face")
    indices = faces.numbers(np.int64, rb"/\S*" if b"/" in faces.text else b"")  # the first number is the vertex
    above = np.repeat(np.searchsorted(vertices.places, faces.places), sizes)
    rows = np.where(indices < 0, indices + above, indices - 1)
    right = np.logical_and.reduceat((rows >= 0) & (rows < count), np.cumsum(sizes) - sizes)
    faces.require(right, f"expected vertex indices from 1 to {count}, or back from -1 to the first vertex")
    return rows, sizes
