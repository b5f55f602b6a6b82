r"""Read OBJ, the format of Wavefront ("Object Files", appendix B1 of the Advanced Visualizer's manual).

OBJ is text, with a keyword and its words on each line. Supported:

- `v x y z`, and ignored after it a weight (4 numbers), a colour (6) or both (7). All lines have the same number of
  numbers, or a mixture of 3 and 4, or of 3 and 6;
- `f` with three corners or more, each `a`, `a/b`, `a//c` or `a/b/c`. The first number is the vertex: positive numbers
  count all vertices of the file from 1; -1 is the last vertex above the face;
- polygons, which are triangulated (`pointset.data.readers.meshes`);
- blank lines, comments from `#` to the end of the line, any line ends, also none after the last line. A backslash at
  the end of a line joins the next one, except in comments and names, where it is a character of a path.

Everything else that describes no surface is ignored, also, with a warning, faces of one or two corners. The rest is
refused with its line, because a guess could silently give a wrong mesh: indices without a vertex, unknown keywords.
"""

import re
from copy import copy

import numpy as np

from pointset.data.readers.lines import BLANKS, Lines, number_table, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons

_NAMES = b"g o usemtl mtllib usemap maplib shadow_obj trace_obj".split()
_CURVES = b"cstype deg bmat step parm curv curv2 sp end con ctech res".split()
_IGNORED = {*_NAMES, *_CURVES, *b"vt vn vp l p s mg bevel c_interp d_interp lod".split()}
_CONTINUED = re.compile(rb"^(?![ \t]*(?:" + b"|".join(_NAMES) + rb")\s).*\\\n(?:.*\\\n)*.*", re.MULTILINE)
_BREAK = re.compile(rb"(?<=[ \t\v])\\\n|\\\n(?=[ \t])")
"""A break between two words; within a number it is ambiguous (2\\3: 23, or 2 and 3), and is refused."""
_CORNERS = re.compile(rb"f([ \t\v]+[+-]?\d{1,18}(/([+-]?\d{1,18})?){0,2})+\s*")
_LARGEST_INDEX = 10**18
_WIDTHS = (3, 4, 6, 7)


def parse_obj(content: bytes, name: str) -> Mesh:
    """The mesh of an OBJ file, in its order; a MeshError with `name` and the line if it is not as described above."""
    text = plain_text(content)
    if b"\\\n" in text:
        text = _CONTINUED.sub(lambda statement: _BREAK.sub(b" \v", statement[0]), text)
    lines = Lines(text, name)
    if text.endswith(b"\\"):
        raise lines.error(-1, "expected another line after a backslash")
    characters = np.frombuffer(text + b"\n\n", np.uint8)
    first, second, third = (characters[lines.starts + place] for place in range(3))
    is_vertex, is_face = ((first == ord(letter)) & (second <= ord(" ")) for letter in "vf")
    is_usual_rest = (first == ord("v")) & ((second == ord("n")) | (second == ord("t"))) & (third <= ord(" "))
    rest = lines[~(is_vertex | is_face | is_usual_rest)]
    is_known = np.array([text.split(maxsplit=1)[0] in _IGNORED for text in rest.texts], bool)
    rest.require(is_known, "expected a keyword of OBJ for vertices, polygons or what goes with them")
    vertices = _read_vertices(lines[is_vertex])
    corners, sizes = _read_faces(lines[is_face], len(vertices), np.cumsum(is_vertex)[is_face])
    has_area = sizes >= 3
    if len(has_area) and not has_area[-1] and is_face[-1] and not text.endswith(b"\n"):
        raise lines.error(-1, "expected a line end after a face of one or two corners: the file may be cut off")
    return mesh_of_polygons(vertices, corners, sizes, name)


def _read_vertices(lines: Lines) -> np.ndarray:
    block = lines.block
    table = number_table(block.replace(b"v", b"")) if block.count(b"v") == len(lines) else None
    if table is None or len(table) != len(lines) or table.shape[1] not in _WIDTHS:
        widths = lines.widths - 1
        expected = "expected the 3 coordinates of a vertex, or 4, 6 or 7 numbers with its weight and colour"
        lines.require(np.isin(widths, _WIDTHS), expected)
        is_mixed = any(np.isin(widths, (3, more)).all() for more in (4, 6))  # some may have a weight or a colour
        lines.require((widths == widths[:1]) | is_mixed, "expected as many numbers as in the vertices above")
        after_keyword = copy(lines)
        after_keyword.starts = lines.starts + 1
        table = after_keyword.numbers()[(np.cumsum(widths) - widths)[:, None] + np.arange(3)]
    lines.require(np.isfinite(table[:, :3]).all(axis=1), "expected finite coordinates")
    return table[:, :3]


def _read_faces(lines: Lines, vertex_count: int, above: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertex indices from 0 of all polygons, and their numbers of corners; `above` are the vertices above each line."""
    indices, sizes = _read_corners(lines.block, lines.offsets)
    if not sizes.all():
        right = np.array([bool(_CORNERS.fullmatch(text)) for text in lines.texts])
        lines.require(right, "expected corners a, a/b, a//c or a/b/c of a face, in whole numbers up to 10^18")
    corners = np.where(indices < 0, indices + np.repeat(above, sizes), indices - 1)
    right = (corners >= 0) & (corners < vertex_count)
    if not right.all():
        line = int(np.searchsorted(np.cumsum(sizes), np.argmin(right), side="right"))
        expected = f"expected vertex indices from 1 to {vertex_count}, the vertices of the file, or from "
        raise lines.error(line, f"{expected}-{above[line]} to -1 back from this line")
    return corners, sizes


def _read_corners(block: bytes, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first numbers of all corners, and the numbers of corners [lines]; 0 for all if one is wrong."""
    wrong = np.empty(0, np.int64), np.zeros(len(starts), np.int64)
    if block.translate(None, b"f0123456789+-/" + BLANKS) or block.count(b"f") != len(starts):
        return wrong
    block = b"\n" + block.replace(b"f", b" ") + b"\n"
    text = np.frombuffer(block, np.uint8)
    blank, slash = text <= ord(" "), text == ord("/")
    signs = np.flatnonzero((text == ord("-")) | (text == ord("+")))
    if (text[signs + 1] <= ord("/")).any() or not (blank | slash)[signs - 1].all():
        return wrong
    words = np.flatnonzero(blank[:-1] > blank[1:]) + 1
    if slash.any() and np.add.reduceat(slash, words, dtype=np.int64).max() > 2:
        return wrong
    inside = ~(blank | slash)
    numbers = np.flatnonzero(inside[:-1] < inside[1:]) + 1
    indices = np.fromstring(block.replace(b"/", b" "), np.int64, sep=" ")
    if indices.min(initial=0) <= -_LARGEST_INDEX or indices.max(initial=0) >= _LARGEST_INDEX:  # or clipped by numpy
        return wrong
    indices = indices[blank[numbers - 1]]
    sizes = np.diff(np.searchsorted(words, starts + 1), append=len(words))
    return (indices, sizes) if len(indices) == len(words) else wrong
