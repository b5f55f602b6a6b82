"""Read and write OFF, the format of ModelNet (Geomview's manual, "OFF Files", http://www.geomview.org/docs/html/OFF.html).

OFF is text: the word OFF, the counts of vertices, faces and edges, one vertex per line, one face per line. Supported:

- no word, or the word and the counts on one line or two, with or without a space between them (`OFF490 518 0`);
- comments from `#` to the end of the line and blank lines anywhere, any line ends, also none after the last line;
- the prefixes C, N and ST in any order, and colors without a prefix: color, normal and texture follow the position, and
  are ignored;
- polygons, which are triangulated (`pointset.data.readers.meshes`), and 0, 1, 3 or 4 numbers of color per face;
- no faces: the file is a point cloud. Lines after those that the counts announce are left out, with a warning.

Everything else is refused with its line, because a guess could silently give a wrong mesh: also vertices that span
several lines, so that one missing number cannot shift all following ones.
"""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pointset.data.readers.clouds import AXES, Columns
from pointset.data.readers.lines import (
    Line,
    coordinates,
    line_error,
    lines_of,
    number_table,
    numbers_of,
    plain_text,
    require,
    widths_of,
)
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
    return mesh_of_polygons(vertices, corners, sizes, name, halves_first=False)


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
        raise _error_at(text, 0, name, "expected the word OFF in text, with C, N or ST before it")
    counts = _COUNTS.match(text, word.end())
    if counts is None:
        raise _error_at(text, word.end(), name, "expected the counts of vertices, faces and edges")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    if not vertex_count:
        raise _error_at(text, counts.start(), name, "expected at least one vertex")
    widths = _vertex_widths(word[1] or b"")
    body = text[counts.end() :]
    if mesh := _read_triangles(body, vertex_count, face_count, widths):
        return mesh
    lines = lines_of(body, text.count(b"\n", 0, counts.end()) + 1)
    count = vertex_count + face_count
    if len(lines) < count:
        expected = f"expected {vertex_count} vertices and {face_count} faces, a line each"
        raise line_error(name, (text.count(b"\n") + 1, b""), expected)
    if len(lines) > count:
        more = f"has {len(lines) - count:,} lines more than its header says, which are not read"
        warnings.warn(f"{name}: {more}", stacklevel=4)
    # All have one width, or a missing coordinate could pass for a short color.
    width = len(lines[0][1].split())
    allowed = (width,) if width in widths else widths
    expected = f"expected {' or '.join(map(str, allowed))} numbers for a vertex"
    vertices = coordinates(lines[:vertex_count], name, allowed, expected)
    return vertices, *_read_faces(lines[vertex_count:count], name, vertex_count)


def _vertex_widths(prefix: bytes) -> tuple[int, ...]:
    """Return the numbers of a vertex that a prefix allows. Geomview's color has four; files with three are common."""
    if not prefix:
        return 3, 6, 7
    width = 3 + 3 * prefix.count(b"N") + 2 * prefix.count(b"ST")
    return (width + 3, width + 4) if b"C" in prefix else (width,)


def _read_triangles(
    body: bytes, vertex_count: int, face_count: int, widths: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """As `_read`, for a file of triangles without colors or blank lines; None for others and for damaged ones."""
    lines = body.split(b"\n", vertex_count)
    vertices, rest = number_table(b"\n".join(lines[:vertex_count])), b"".join(lines[vertex_count:])
    if vertices is None or len(vertices) != vertex_count or vertices.shape[1] not in widths:
        return None
    if not face_count or rest.translate(None, b"0123456789 \t\n") or not np.isfinite(vertices[:, :3]).all():
        return None
    numbers = np.fromstring(rest, np.int64, sep=" ")  # five times as fast as loadtxt
    table = numbers.reshape(-1, 4) if len(numbers) == 4 * face_count else np.empty((0, 4), np.int64)
    lines_are_faces = len(table) == rest.rstrip().count(b"\n") + 1 and (table[:, 0] == 3).all()
    if not lines_are_faces or table.max() >= vertex_count:
        return None
    return vertices[:, :3], table[:, 1:].ravel(), np.full(face_count, 3)


def _read_faces(lines: list[Line], name: str, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of all faces, and the sizes; a face is a line of its size, its indices and a color."""
    if not lines:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    numbers, widths = numbers_of(lines, name), widths_of(lines)
    firsts = np.cumsum(widths) - widths
    sizes = numbers[firsts]
    expected = "expected a number of vertices of a face, as many indices, and a color of 0, 1, 3 or 4 numbers"
    require(lines, (sizes >= 1) & np.isin(widths - 1 - sizes, _FACE_COLORS), name, expected)
    steps = np.arange(len(numbers)) - np.repeat(firsts, widths)
    is_index = (steps > 0) & (steps <= np.repeat(sizes, widths))
    corners, starts = numbers[is_index], (np.cumsum(sizes) - sizes).astype(np.int64)
    expected = "expected whole numbers from 0 on for a face and its vertices"
    require(lines, np.logical_and.reduceat((corners >= 0) & (corners % 1 == 0), starts), name, expected)
    expected = f"expected vertex indices from 0 to {vertex_count - 1}"
    require(lines, np.logical_and.reduceat(corners < vertex_count, starts), name, expected)
    return corners.astype(np.int64), sizes.astype(np.int64)


def _error_at(text: bytes, offset: int, name: str, expected: str) -> PointsetError:
    """Return the error for the first line with words from an offset on."""
    first = text.count(b"\n", 0, offset) + 1
    return line_error(name, next(iter(lines_of(text[offset:], first)), (first, b"")), expected)
