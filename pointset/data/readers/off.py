"""Read and write OFF, the format of ModelNet (Geomview's manual, "OFF Files", http://www.geomview.org/docs/html/OFF.html).

OFF is text: the word OFF, the counts of vertices, faces and edges, one vertex per line, one face per line. Supported:

- the word and the counts on one line or two, with or without a space between them (`OFF490 518 0`);
- comments from `#` to the end of the line and blank lines anywhere, any line ends, also none after the last line;
- the prefixes C and N in any order: colour and normal come after the position, and are ignored;
- polygons, which are triangulated (`pointset.data.readers.meshes`), and 0, 1, 3 or 4 numbers of colour per face.

Everything else is refused with its line, because a guess could silently give a wrong mesh: also vertices that span
several lines, so that one missing number cannot shift all following ones.
"""

import re
from pathlib import Path

import numpy as np

from pointset.data.readers.lines import BLANKS, Lines, error_at, number_table, plain_text
from pointset.data.readers.meshes import Mesh, mesh_of_polygons

_WORD = re.compile(rb"\s*(C?N?|NC)OFF\s*")
_COUNTS = re.compile(rb"(\d{1,18})[ \t]+(\d{1,18})(?:[ \t]+\d{1,18})?[ \t]*(?:\n|\Z)")
_VERTEX_SIZES = {b"": [3], b"N": [6], b"C": [6, 7], b"CN": [9, 10]}
"""Numbers of a vertex by the prefixes. Geomview's colour has four; files with three are common."""
_COLOUR_SIZES = (0, 1, 3, 4)


def parse_off(content: bytes, name: str) -> Mesh:
    """The mesh of an OFF file, in its order; a MeshError with `name` and the line if it is not as described above."""
    text = plain_text(content)
    word = _WORD.match(text)
    if word is None:
        raise error_at(text, 0, name, "expected the word OFF in text, with C or N at most once before it")
    counts = _COUNTS.match(text, word.end())
    if counts is None:
        raise error_at(text, word.end(), name, "expected the counts of vertices, faces and edges")
    vertex_count, face_count = int(counts[1]), int(counts[2])
    if not vertex_count or not face_count:
        raise error_at(text, counts.start(), name, "expected at least one vertex and one face")
    lines = Lines(text, name, counts.end())
    count = vertex_count + face_count
    if len(lines) != count:
        offset = int(lines.starts[count]) if len(lines) > count else len(text)
        raise error_at(text, offset, name, f"expected {vertex_count} vertices and {face_count} faces, a line each")
    vertices = _read_vertices(lines[:vertex_count], _VERTEX_SIZES[bytes(sorted(word[1]))])
    corners, sizes = _read_faces(lines[vertex_count:], vertex_count)
    return mesh_of_polygons(vertices, corners, sizes, name, halves_first=False)


def write_off(path: Path, mesh: Mesh) -> None:
    """Write a mesh as an OFF file with six decimals; the same mesh gives the same bytes on any machine."""
    vertices = "%.6f %.6f %.6f\n" * len(mesh.vertices) % tuple(mesh.vertices.ravel().tolist())
    vertices = vertices.replace("-0.000000", "0.000000")  # the result of rounding small negative numbers
    faces = "3 %d %d %d\n" * len(mesh.faces) % tuple(mesh.faces.ravel().tolist())
    text = f"OFF\n{len(mesh.vertices)} {len(mesh.faces)} 0\n{vertices}{faces}"
    path.write_bytes(text.encode("ascii"))


def _read_vertices(lines: Lines, sizes: list[int]) -> np.ndarray:
    table = number_table(lines.block)
    if table is None or len(table) != len(lines) or table.shape[1] not in sizes:
        widths = lines.widths
        # Equal for all lines, or a missing coordinate could pass for a short colour.
        right = (widths == widths[0]) & np.isin(widths, sizes)
        lines.require(right, f"expected {' or '.join(map(str, sizes))} numbers for a vertex")
        table = lines.numbers().reshape(len(lines), -1)
    lines.require(np.isfinite(table[:, :3]).all(axis=1), "expected finite coordinates")
    return table[:, :3]


def _read_faces(lines: Lines, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
    """Vertex indices, concatenated over polygons, and the polygons' numbers of corners."""
    block, widths = lines.block, lines.widths
    is_plain = not block.translate(None, b"0123456789" + BLANKS)
    # Five times as fast as splitting, but without errors for words that are not numbers.
    numbers = np.fromstring(block, np.int64, sep=" ") if is_plain else lines.numbers()
    if (widths == 4).all() and (numbers[::4] == 3).all() and is_plain:
        sizes, corners = np.full(len(lines), 3), numbers.reshape(-1, 4)[:, 1:].ravel()
    else:
        firsts = np.cumsum(widths) - widths
        with np.errstate(invalid="ignore"):
            sizes = numbers[firsts].astype(np.int64)
        right = (sizes >= 1) & np.isin(widths - 1 - sizes, _COLOUR_SIZES)
        expected = "expected a number of vertices of a face, as many indices, and a colour of 0, 1, 3 or 4 numbers"
        lines.require(right, expected)
        steps = np.arange(len(numbers)) - np.repeat(firsts, widths)
        is_index = steps <= np.repeat(sizes, widths)
        if not is_plain:
            is_whole = np.array([word.isdigit() for word in block.split()])
            right = np.logical_and.reduceat(is_whole | ~is_index, firsts)
            lines.require(right, "expected whole numbers from 0 on for a face and its vertices")
        corners = numbers[is_index & (steps > 0)].astype(np.int64)
    right = np.logical_and.reduceat((corners >= 0) & (corners < vertex_count), np.cumsum(sizes) - sizes)
    lines.require(right, f"expected vertex indices from 0 to {vertex_count - 1}")
    return corners, sizes
