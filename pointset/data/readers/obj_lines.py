"""Read OBJ line by line: slower than numpy's parser, but for all spellings, and with the line of every error.

`pointset.data.readers.obj` describes the supported spellings, and calls this reader for the unusual ones.
"""

import math
import warnings
from collections.abc import Iterator

import numpy as np

from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.polygons import cut_polygons
from pointset.data.readers.words import excerpt, numbers, whole_numbers

_NAMES = frozenset(b"g o usemtl mtllib usemap maplib shadow_obj trace_obj".split())
_PASSED_OVER = _NAMES | frozenset(
    b"vt vn vp l p s mg bevel c_interp d_interp lod "
    b"cstype deg bmat step parm curv curv2 sp end con ctech res".split()  # of curves
)
LARGEST_INDEX = 10**18
_MIXED_WIDTHS = {3, 6}  # only some vertices have colours


class ObjReader:
    """One reading of one OBJ file, whose bytes have no byte order mark; errors begin with `name`."""

    def __init__(self, content: bytes, name: str) -> None:
        self._name = name
        self._content = content
        self._underscores = b"_" in content
        self._line = 0
        self._words: list[bytes] = []
        self._widths: set[int] = set()
        self._vertices: list[float] = []
        self._corners: list[int] = []
        self._sizes: list[int] = []
        self._face_lines: list[int] = []

    def read(self) -> Mesh:
        """Read the mesh; a MeshError names the wrong line."""
        for line, words in _statements(self._content, self._name):
            self._line, self._words, keyword = line, words, words[0]
            if keyword == b"v":
                self._read_vertex()
            elif keyword == b"f":
                self._read_face()
            elif keyword not in _PASSED_OVER:
                raise self._error("expected a keyword of OBJ for vertices, polygons or what goes with them")
        if not self._sizes:
            raise MeshError(f"{self._name}: expected a mesh, found no triangles (a point cloud alone has none)")
        corners, sizes = np.array(self._corners), np.array(self._sizes)
        self._require_vertices(corners, sizes)
        vertices = np.array(self._vertices, np.float64).reshape(-1, 3)
        has_area = sizes >= 3
        if not has_area.all():
            if not has_area[-1] and self._words[0] == b"f" and not self._content.endswith((b"\n", b"\r")):
                raise self._error("expected a line end after a face of one or two corners: the file may be cut off")
            if not has_area.any():
                raise MeshError(f"{self._name}: expected a mesh, found only faces of one or two corners")
            warnings.warn(
                f"{self._name}: {(~has_area).sum():,} of {len(sizes):,} faces have less than 3 corners and were left "
                "out",
                stacklevel=2,
            )
            corners, sizes = corners[np.repeat(has_area, sizes)], sizes[has_area]
        return Mesh(vertices, cut_polygons(vertices, corners, sizes))

    def _read_vertex(self) -> None:
        try:
            found = numbers(self._words[1:], self._underscores)
        except ValueError:
            raise self._error("expected only numbers") from None
        if len(found) not in (3, 4, 6, 7):
            raise self._error("expected the 3 coordinates of a vertex, or 4, 6 or 7 numbers with its weight and colour")
        self._widths.add(len(found))
        if len(self._widths) > 1 and self._widths != _MIXED_WIDTHS:
            raise self._error("expected as many numbers as in the vertices above")
        if not all(map(math.isfinite, found[:3])):
            raise self._error("expected finite coordinates")
        self._vertices += found[:3]

    def _read_face(self) -> None:
        words = self._words[1:]
        if not words:
            raise self._error("expected at least 3 corners of a face")
        corners = self._indices(words)
        if (smallest := min(corners)) <= 0:
            above = len(self._vertices) // 3
            if 0 in corners or smallest < -above:
                raise self._error(f"expected vertex indices of at least 1, or from -{above} to -1 back from this line")
            corners = [index if index > 0 else above + 1 + index for index in corners]
        self._corners += [index - 1 for index in corners]
        self._sizes.append(len(corners))
        self._face_lines.append(self._line)

    def _indices(self, words: list[bytes]) -> list[int]:
        """The vertex index of each corner; indices of textures and normals are checked, but need not exist."""
        parts = [word.split(b"/") for word in words]
        if max(map(len, parts)) > 3:
            raise self._error("expected corners a, a/b, a//c or a/b/c")
        try:
            indices = whole_numbers([part[0] for part in parts], self._underscores)
            others = whole_numbers([other for part in parts for other in part[1:] if other], self._underscores)
        except ValueError:
            raise self._error("expected whole numbers") from None
        if max(map(abs, indices + others)) > LARGEST_INDEX:
            raise self._error("expected indices of at most 10^18")
        return indices

    def _require_vertices(self, corners: np.ndarray, sizes: np.ndarray) -> None:
        count = len(self._vertices) // 3
        wrong = np.flatnonzero(corners >= count)
        if len(wrong):
            line = self._face_lines[int(np.searchsorted(np.cumsum(sizes), wrong[0], side="right"))]
            expected = f"expected vertex indices up to {count}, the vertices of the file"
            raise MeshError(f"{self._name}, line {line}: {expected}, found {corners[wrong[0]] + 1}")

    def _error(self, expected: str) -> MeshError:
        return MeshError(f"{self._name}, line {self._line}: {expected}, found {excerpt(b' '.join(self._words))}")


def _statements(content: bytes, name: str) -> Iterator[tuple[int, list[bytes]]]:
    """The number and words of every line with words, joined with the next lines after a backslash."""
    text = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = enumerate(text.split(b"\n"), start=1)
    for number, line in lines:
        if line.endswith(b"\\"):
            line = b"".join(_continued(line, lines, f"{name}, line {number}"))
        words = line.partition(b"#")[0].split()
        if words:
            yield number, words


def _continued(line: bytes, lines: Iterator[tuple[int, bytes]], place: str) -> list[bytes]:
    """The line and the lines that are joined to it by backslashes."""
    pieces, keyword = [line], b""
    while line.endswith(b"\\") and b"#" not in line:
        keyword = keyword or b"".join(line[:-1].split(maxsplit=1)[:1])
        if keyword in _NAMES:
            break
        _, following = next(lines, (0, None))
        if following is None:
            raise MeshError(f"{place}: expected another line after its backslash, found the end of the file")
        # A number split by a backslash is ambiguous (2\3: 23, or 2 and 3), so the backslash stays, and is refused.
        glued = line[-2:-1].strip() and following[:1].strip()
        pieces[-1:] = [line if glued else line[:-1], following]
        line = following
    return pieces
