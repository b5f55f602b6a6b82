"""Read and write OFF, the format of ModelNet.

OFF is text: the word OFF, the counts of vertices, faces and edges, one vertex per line, one face per line
(Geomview's manual, "OFF Files", http://www.geomview.org/docs/html/OFF.html). Supported:

- the word and the counts on one line or two, with or without a space between them (`OFF490 518 0`);
- comments from `#` to the end of the line and blank lines anywhere, any line ends, also none after the last line;
- the prefixes ST, C, N and 4 in any order. The position comes first on a line; texture coordinates, colour and normal
  are ignored. With 4 the position is homogeneous: x, y and z are divided by w;
- polygons, which are cut into a fan of triangles from their first vertex, or by ear clipping if they are concave
  (`pointset.data.readers.polygons`), and 0, 1, 3 or 4 numbers of colour per face.

Everything else is refused with its line, because a guess could silently give a wrong mesh: counts that do not match the
lines, surplus or missing numbers, faces of one or two vertices (points and segments in OFF), binary and n-dimensional
files. Geomview allows a vertex to span several lines; here a line is a vertex or a face, so that one missing number
cannot shift all following ones.
"""

import re
from pathlib import Path

import numpy as np

from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.off_lines import LineReader
from pointset.data.readers.words import usual_table
from pointset.runs.atomic import why_not

_USUAL_HEADER = re.compile(rb"\s*OFF\s*(\d{1,9})[ \t]+(\d{1,9})(?:[ \t]+\d{1,18})?[ \t]*\r?\n")
_COMMENT = re.compile(rb"#[^\r\n]*")
_BLANK_LINES = re.compile(rb"\n\s+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def parse_off(content: bytes, name: str) -> Mesh:
    """Parse an OFF file, with vertices and faces in the file's order.

    Raises:
        MeshError: the file is not OFF as described above; the message begins with `name` and the line.
    """
    content = content.removeprefix(_BYTE_ORDER_MARK)
    mesh = _read_usual(content)
    if mesh is None:
        mesh = _read_usual(_BLANK_LINES.sub(b"\n", _COMMENT.sub(b"", content)))
    return LineReader(content, name).read() if mesh is None else mesh


def write_off(path: Path, mesh: Mesh) -> None:
    """Write a mesh as an OFF file with six decimals; the same mesh gives the same bytes on any machine.

    Raises:
        MeshError: the file cannot be written.
    """
    vertices = "%.6f %.6f %.6f\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist())
    vertices = vertices.replace("-0.000000", "0.000000")  # the result of rounding small negative numbers
    faces = "3 %d %d %d\n" * len(mesh.faces) % tuple(mesh.faces.ravel().tolist())
    text = f"OFF\n{len(mesh.vertices)} {len(mesh.faces)} 0\n{vertices}{faces}"
    try:
        path.write_bytes(text.encode("ascii"))
    except OSError as error:
        raise MeshError(f"{path}: cannot be written: {why_not(path, error)}") from error


def _read_usual(content: bytes) -> Mesh | None:
    """Read plain OFF (only triangles, no comments or blank lines) by numpy; None for anything else, correct or not.

    numpy's text parsers accept some spellings that `LineReader` refuses, such as a non-breaking space between numbers;
    the characters of the two blocks are checked first to exclude these.
    """
    header = _USUAL_HEADER.match(content)
    if header is None:
        return None
    vertex_count, face_count = int(header[1]), int(header[2])
    body = content[header.end() :].rstrip() + b"\n"
    line_ends = np.flatnonzero(np.frombuffer(body, np.uint8) == ord("\n"))
    if not vertex_count or not face_count or len(line_ends) != vertex_count + face_count:
        return None
    # A lone carriage return ends a line too, but not for the parsers below.
    if b"\r" in body and body.count(b"\r") != body.count(b"\r\n"):
        return None
    middle = int(line_ends[vertex_count - 1]) + 1
    vertices = _usual_vertices(body[:middle], vertex_count)
    faces = _usual_faces(body[middle:], line_ends[vertex_count:] - middle)
    if vertices is None or faces is None:
        return None
    try:
        return Mesh(vertices, faces)
    except MeshError:
        return None


def _usual_vertices(block: bytes, count: int) -> np.ndarray | None:
    """Parse `count` lines of three decimal numbers, or return None."""
    if block.translate(None, b"0123456789+-.eE \t\r\n"):
        return None
    vertices = usual_table(block)
    return None if vertices is None or vertices.shape != (count, 3) else vertices


def _usual_faces(block: bytes, line_ends: np.ndarray) -> np.ndarray | None:
    """Parse lines of four whole numbers, the first of which is 3, or return None."""
    if block.translate(None, b"0123456789 \t\r\n"):
        return None
    # 1.5 times as fast on integers as loadtxt, but ignores line ends; four words per line are checked below.
    words = np.fromstring(block, np.int64, sep=" ")
    if len(words) != 4 * len(line_ends):
        return None
    space = np.frombuffer(b"\n" + block, np.uint8) <= ord(" ")
    starts = np.flatnonzero(space[:-1] > space[1:])
    if (starts[3::4] > line_ends).any() or (starts[4::4] < line_ends[:-1]).any():
        return None
    faces = words.reshape(-1, 4)
    return faces[:, 1:] if (faces[:, 0] == 3).all() else None
