"""Read and write OFF, the format of ModelNet (Geomview's manual, "OFF Files", http://www.geomview.org/docs/html/OFF.html).

OFF is text: the word OFF, the counts of vertices, faces and edges, one vertex per line, one face per line. The word may
be missing, glued to the counts (`OFF490 518 0`), or have the prefixes C, N and ST in any order; color, normal and
texture of a vertex and the color of a face are ignored, as are comments after `#` and blank lines. Polygons are
triangulated (`pointset.data.readers.meshes`). Without faces, the file is a point cloud. Everything else is refused with
its line, also vertices that span several lines, so that one missing number cannot shift all following ones.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import AXES, Columns
from pointset.data.readers.formats import warn_of_rest
from pointset.data.readers.lines import Rows, lines_of, number_table, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError
from pointset.runs.files import read_file

_WORD = re.compile(rb"\s*((?:C|N|ST){0,3})OFF\s*|\s*(?=\d+[ \t]+\d)")
_COUNTS = re.compile(rb"(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+\d{1,18})?[ \t]*(?:\n|\Z)")
_FACE_COLORS = (0, 1, 3, 4)


def parse_off(content: bytes, name: str) -> Mesh:
    """Return the mesh of an OFF file, in its order; a MeshError with `name` and the line if it is not as described."""
    vertices, corners, sizes = _read(content, name)
    if not len(sizes):
        raise PointsetError("expected at least one vertex and one face: a point cloud alone has none")
    return mesh_of_polygons(vertices, corners, sizes, name)


def off_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return the coordinates of an OFF file without faces."""
    return dict(zip(AXES, _read(read_file(path), str(path))[0].T, strict=True))


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


def _read(content: bytes, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the vertices [V, 3], the corners of all faces, one face after the other, and the sizes of the faces."""
    text = plain_text(content)
    word = _WORD.match(text)
    if word is None:
        _rows(text, 0, name).fail(0, "expected the word OFF in text, with C, N or ST before it")
    counts = _COUNTS.match(text, word.end())
    if counts is None:
        _rows(text, word.end(), name).fail(0, "expected the counts of vertices, faces and edges")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    if not vertex_count:
        _rows(text, counts.start(), name).fail(0, "expected at least one vertex")
    widths = _vertex_widths(word[1] or b"")
    if arrays := _read_uniform(text[counts.end() :], vertex_count, face_count, widths):
        return arrays
    rows = _rows(text, counts.end(), name)
    vertices, faces = rows.lines[:vertex_count], rows.lines[vertex_count : vertex_count + face_count]
    if len(vertices) + len(faces) < vertex_count + face_count:
        rows.fail(len(rows.lines), f"expected {vertex_count} vertices and {face_count} faces, a line each")
    warn_of_rest(name, rows.lines[vertex_count + face_count :], "lines")
    # All have one width, or a missing coordinate could pass for a short color.
    width = len(vertices[0].split())
    widths = (width,) if width in widths else widths
    expected = f"expected {' or '.join(map(str, widths))} numbers for a vertex"
    table = rows._replace(lines=vertices).coordinates(widths, expected)
    return table, *_corners(rows._replace(lines=faces, first=vertex_count), vertex_count)


def _rows(text: bytes, start: int, name: str) -> Rows:
    """Return the lines of a file from an offset on."""
    return Rows(lines_of(text[start:]), name, b"\n" * text.count(b"\n", 0, start) + text[start:])


def _vertex_widths(prefix: bytes) -> tuple[int, ...]:
    """Return the numbers of a vertex that a prefix allows. Geomview's color has four; files with three are common."""
    if not prefix:
        return 3, 6, 7
    width = 3 + 3 * prefix.count(b"N") + 2 * prefix.count(b"ST")
    return (width + 3, width + 4) if b"C" in prefix else (width,)


def _read_uniform(
    body: bytes, vertex_count: int, face_count: int, widths: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """As `_read`, for faces of one size and one kind of color, without blank lines; None for others, and for damage."""
    *lines, rest = body.split(b"\n", vertex_count)
    vertices = number_table(lines)
    if not face_count or vertices is None or len(lines) < vertex_count or vertices.shape[1] not in widths:
        return None
    if rest.translate(None, b"0123456789 \t\n"):
        table = number_table(lines_of(rest))
    else:  # five times as fast
        numbers = np.fromstring(rest, np.int64, sep=" ")
        has_lines = rest.rstrip().count(b"\n") == face_count - 1 and not len(numbers) % face_count
        table = numbers.reshape(face_count, -1) if has_lines else None
    if table is None or len(table) != face_count or not np.isfinite(vertices[:, :3]).all():
        return None
    size, width = int(table[0, 0]), table.shape[1]
    corners = table[:, 1 : 1 + size]
    if size < 1 or width - 1 - size not in _FACE_COLORS or (table[:, 0] != size).any() or (corners % 1).any():
        return None
    if corners.min() < 0 or corners.max() >= vertex_count:
        return None
    return vertices[:, :3], corners.ravel().astype(np.int64), np.full(face_count, size)


def _corners(faces: Rows, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of all faces, and the sizes; a face is a line of its size, its indices and a color."""
    if not faces.lines:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    numbers, widths = faces.numbers()
    firsts = np.cumsum(widths) - widths
    sizes = numbers[firsts].astype(np.int64)
    expected = "expected a number of vertices of a face, as many indices, and a color of 0, 1, 3 or 4 numbers"
    faces.require((sizes >= 1) & (sizes == numbers[firsts]) & np.isin(widths - 1 - sizes, _FACE_COLORS), expected)
    steps = np.arange(len(numbers)) - np.repeat(firsts, widths)
    corners = numbers[(steps > 0) & (steps <= np.repeat(sizes, widths))]
    right = (corners >= 0) & (corners < vertex_count) & (corners % 1 == 0)
    expected = f"expected vertex indices from 0 to {vertex_count - 1}"
    faces.require(np.logical_and.reduceat(right, np.cumsum(sizes) - sizes), expected)
    return corners.astype(np.int64), sizes
