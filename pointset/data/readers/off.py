"""Read and write OFF, the format of ModelNet (Geomview's manual, "OFF Files", http://www.geomview.org/docs/html/OFF.html).

OFF is text: the word OFF, the counts of vertices, faces and edges, one vertex per line, one face per line. The word OFF
may be missing or joined to the counts (`OFF490 518 0`), and may have the prefixes C, N and ST in any order. Colors,
normals and textures are ignored, as are comments after `#` and blank lines. Polygons are triangulated
(`pointset.data.readers.meshes`). A file without faces is a point cloud. Any other line raises an error with the line
number. A vertex on several lines is an error, too: otherwise one missing number could shift all numbers after it.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import AXES, Columns
from pointset.data.readers.formats import warn_of_rest
from pointset.data.readers.lines import Lines, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons

_WORD = re.compile(rb"((?:C|N|ST){0,3})OFF\s*|(?=\d+[ \t]+\d)")
_COUNTS = re.compile(rb"(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+\d{1,18})?[ \t]*")
_FACE_COLORS = (0, 1, 3, 4)


def read_off(path: Path, features: Sequence[str] = ()) -> Mesh | Columns:
    """Return the mesh of an OFF file or, if it has no faces, the coordinates of its points."""
    lines = Lines.of(plain_text(path.read_bytes()))
    word = _WORD.match(lines.line(0))
    if word is None:
        lines.fail(0, "expected the word OFF in text, with C, N or ST before it")
    rest = lines.line(0)[word.end() :]
    start = 0 if rest else 1
    counts = _COUNTS.fullmatch(rest or lines.line(1))
    if counts is None:
        lines.fail(start, "expected the counts of vertices, faces and edges")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    if not vertex_count:
        lines.fail(start, "expected at least one vertex")
    body = lines.part(start + 1)
    if len(body) < vertex_count + face_count:
        body.fail(len(body), f"expected {vertex_count} vertices and {face_count} faces, a line each")
    warn_of_rest(path, range(len(body) - vertex_count - face_count), "lines")
    # All lines of vertices must have the same length, so that a missing coordinate cannot pass for a short color.
    widths = _vertex_widths(word[1] or b"")
    widths = (body.widths[0],) if body.widths[0] in widths else widths
    expected = f"expected {' or '.join(map(str, widths))} numbers for a vertex"
    vertices = body.part(0, vertex_count).coordinates(widths, expected)
    if not face_count:
        return dict(zip(AXES, vertices.T, strict=True))
    faces = body.part(vertex_count, vertex_count + face_count)
    return mesh_of_polygons(vertices, *_corners(faces, vertex_count), str(path))


def write_off(path: Path, mesh: Mesh) -> None:
    """Write a mesh as an OFF file with six decimals; the same mesh gives the same bytes on any machine.

    Args:
        path: the file to write.
        mesh: triangles [F, 3] and vertices [V, 3].
    """
    vertices = "%.6f %.6f %.6f\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist())
    vertices = vertices.replace("-0.000000", "0.000000")  # the result of rounding small negative numbers
    faces = "3 %d %d %d\n" * len(mesh.faces) % tuple(mesh.faces.ravel().tolist())
    text = f"OFF\n{len(mesh.vertices)} {len(mesh.faces)} 0\n{vertices}{faces}"
    path.write_bytes(text.encode("ascii"))


def _vertex_widths(prefix: bytes) -> tuple[int, ...]:
    """Return the allowed counts of numbers per vertex for this prefix; a color has 4 in Geomview, 3 in many files."""
    if not prefix:
        return 3, 6, 7
    width = 3 + 3 * prefix.count(b"N") + 2 * prefix.count(b"ST")
    return (width + 3, width + 4) if b"C" in prefix else (width,)


def _corners(faces: Lines, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertex indices and the sizes of all faces. A line has a size, indices and possibly a color."""
    whole = faces.text.translate(None, b"0123456789 \t\n") == b""  # integers are parsed in a quarter of the time
    numbers = faces.numbers(np.int64 if whole else np.float64)
    firsts = np.cumsum(faces.widths) - faces.widths
    sizes = numbers[firsts].astype(np.int64)
    expected = "expected the number of corners of a face, as many indices, and a color of 0, 1, 3 or 4 numbers"
    right = (sizes >= 1) & (sizes == numbers[firsts]) & np.isin(faces.widths - 1 - sizes, _FACE_COLORS)
    faces.require(right, expected)
    steps = np.arange(len(numbers)) - np.repeat(firsts, faces.widths)
    corners = numbers[(steps > 0) & (steps <= np.repeat(sizes, faces.widths))]
    right = (corners >= 0) & (corners < vertex_count)
    right &= whole or corners % 1 == 0
    expected = f"expected vertex indices from 0 to {vertex_count - 1}"
    faces.require(np.logical_and.reduceat(right, np.cumsum(sizes) - sizes), expected)
    return corners.astype(np.int64), sizes
