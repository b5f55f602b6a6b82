"""Read OBJ, the format of Wavefront ("Object Files", appendix B1 of the Advanced Visualizer's manual).

OBJ is text, with a keyword and its words on each line. Supported:

- `v x y z`, and ignored after it a weight (4 numbers), a colour (6) or both (7). All lines have the same number of
  numbers, or a mixture of 3 and 6;
- `f` with three corners or more, each `a`, `a/b`, `a//c` or `a/b/c`. The first number is the vertex:
  positive numbers count all vertices of the file from 1, also those below the face; -1 is the last vertex above it;
- polygons, which are triangulated (`pointset.data.readers.polygons`);
- blank lines, comments from `#` to the end of the line, any line ends, also none after the last line. A backslash at
  the end of a line joins the next one, except in comments and names, where it is a character of a path.

Texture coordinates, normals, groups, materials, points, lines and curves are ignored, because they have no area, and so
are faces of one or two corners, with a warning. Everything else is refused with its line, because a guess could
silently give a wrong mesh: indices without a vertex, unknown keywords, surfaces that are not polygons.
"""

from itertools import pairwise

import numpy as np

from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.obj_lines import LARGEST_INDEX, ObjReader
from pointset.data.readers.polygons import cut_polygons
from pointset.data.readers.words import usual_table

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_USUAL_REST = (
    *(word + blank for blank in (b" ", b"\t") for word in b"vn vt g o s l p usemtl mtllib".split()),
    *(b"#", b"\n", b"\r\n"),
)


def parse_obj(content: bytes, name: str) -> Mesh:
    """Parse an OBJ file, with vertices and faces in the file's order.

    Raises:
        MeshError: the file is not OBJ as described above; the message begins with `name` and the line.
    """
    content = content.removeprefix(_BYTE_ORDER_MARK)
    mesh = _read_usual(content)
    return ObjReader(content, name).read() if mesh is None else mesh


def _read_usual(content: bytes) -> Mesh | None:
    """Read OBJ in the usual spelling by numpy, which is fast; None for anything else, correct or not.

    numpy's text parsers accept some spellings that `ObjReader` refuses; the characters of vertices and faces are
    checked first to exclude these.
    """
    is_continued = b"\\\n" in content or b"\\\r" in content or content.endswith(b"\\")
    if is_continued or content.count(b"\r") != content.count(b"\r\n"):
        return None
    content += b"\n\n"
    text = np.frombuffer(content, np.uint8)
    starts = np.concatenate([[0], np.flatnonzero(text[:-1] == ord("\n")) + 1])
    first, second = text[starts[:-1]], text[starts[:-1] + 1]
    blank = (second == ord(" ")) | (second == ord("\t"))
    is_vertex, is_face = (first == ord("v")) & blank, (first == ord("f")) & blank
    lines = np.where(is_vertex, 1, np.where(is_face, 2, 0))
    runs = np.concatenate([[0], np.flatnonzero(np.diff(lines)) + 1, [len(lines)]])
    blocks: list[list[bytes]] = [[], [], []]
    for begin, end in pairwise(runs.tolist()):
        blocks[lines[begin]].append(content[starts[begin] : starts[end]])
    if not all(line.startswith(_USUAL_REST) for block in blocks[0] for line in block.splitlines(keepends=True)):
        return None
    vertices = _usual_vertices(b"".join(blocks[1]), int(is_vertex.sum()))
    faces = _usual_faces(b"".join(blocks[2]), np.cumsum(is_vertex)[is_face])
    if vertices is None or faces is None:
        return None
    corners, sizes = faces
    if corners.min() < 0 or corners.max() >= len(vertices):
        return None
    try:
        return Mesh(vertices, cut_polygons(vertices, corners, sizes))
    except MeshError:
        return None


def _usual_vertices(block: bytes, count: int) -> np.ndarray | None:
    """Parse lines of 3, 4, 6 or 7 decimal numbers, or return None."""
    if block.count(b"v") != count or block.translate(None, b"v0123456789+-.eE \t\r\n"):
        return None
    table = usual_table(block.translate(None, b"v"))
    return None if table is None or len(table) != count or table.shape[1] not in (3, 4, 6, 7) else table[:, :3]


def _usual_faces(block: bytes, above: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Parse lines of three corners or more, or return None.

    Args:
        block: the lines.
        above: integers [lines], the number of vertices above each line.

    Returns:
        Vertex indices from 0, concatenated over polygons and not checked to exist, and numbers of corners [lines].
    """
    if not len(above) or block.count(b"f") != len(above) or block.translate(None, b"f0123456789-/ \t\r\n"):
        return None
    block = b"\n" + block.translate(None, b"f")
    text = np.frombuffer(block, np.uint8)
    blank, slash, minus = text <= ord(" "), text == ord("/"), np.flatnonzero(text == ord("-"))
    if (text[minus + 1] <= ord("/")).any() or not (blank | slash)[minus - 1].all():
        return None
    words = np.flatnonzero(blank[:-1] > blank[1:]) + 1
    inside = ~(blank | slash)
    numbers = np.flatnonzero(inside[:-1] < inside[1:]) + 1
    indices = np.fromstring(block.replace(b"/", b" "), np.int64, sep=" ")
    if ((indices > LARGEST_INDEX) | (indices < -LARGEST_INDEX)).any():  # numpy clips larger numbers to int64
        return None
    indices = indices[blank[numbers - 1]]
    sizes = np.diff(np.searchsorted(words, np.flatnonzero(text == ord("\n"))))
    if len(indices) != len(words) or sizes.min() < 3:
        return None
    if slash.any() and np.add.reduceat(slash, words, dtype=np.int64).max() > 2:
        return None
    return np.where(indices < 0, indices + np.repeat(above, sizes), indices - 1), sizes
