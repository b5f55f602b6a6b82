"""Read OFF line by line: slower than numpy's parser, but for all spellings, and with the line of every error.

`pointset.data.readers.off` describes the supported spellings, and calls this reader for the unusual ones.
"""

import math
import re

import numpy as np

from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.polygons import cut_fans
from pointset.data.readers.words import excerpt, numbers, whole_numbers

_HEADER_WORD = re.compile(rb"((?:ST|C|N|4)*)(n?)OFF(.*)", re.DOTALL)
_PREFIX = re.compile(rb"ST|C|N|4")
# Numbers that each prefix adds to a vertex. Geomview's colour has four; files with three are common.
_PREFIX_SIZES = {b"ST": (2,), b"C": (3, 4), b"N": (3,), b"4": (1,)}
_FACE_COLOUR_SIZES = (0, 1, 3, 4)


class LineReader:
    """One reading of one OFF file, whose bytes have no byte order mark; errors begin with `name`."""

    def __init__(self, content: bytes, name: str) -> None:
        self._name = name
        text = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        # Number and words of every line that has words, without comments.
        self._lines = [
            (number, words)
            for number, line in enumerate(text.split(b"\n"), start=1)
            if (words := line.partition(b"#")[0].split())
        ]
        self._next = 0  # index of the next of `_lines`
        self._underscores = b"_" in text

    def read(self) -> Mesh:
        """Read the mesh; a MeshError names the wrong line."""
        prefixes = self._read_header()
        vertex_count, face_count = self._read_counts()
        vertices = self._read_vertices(vertex_count, prefixes)
        corners, sizes = self._read_faces(face_count, vertex_count)
        if self._next < len(self._lines):
            raise self._error(f"expected the end of the file after {vertex_count} vertices and {face_count} faces")
        return Mesh(vertices, cut_fans(vertices, corners, sizes))

    def _read_header(self) -> list[bytes]:
        """Read the prefixes and the word OFF; the rest of the line is read by `_read_counts`."""
        words = self._words("the word OFF")
        header = _HEADER_WORD.fullmatch(words[0])
        if header is None:
            raise self._error("expected the word OFF, optionally with ST, C, N or 4 before it")
        prefixes = _PREFIX.findall(header[1])
        if header[2]:
            raise self._error("expected vertices in three dimensions, not the n-dimensional form nOFF")
        if len(set(prefixes)) < len(prefixes):
            raise self._error("expected each of ST, C, N and 4 only once before OFF")
        rest = [header[3]] * bool(header[3]) + words[1:]
        if rest[:1] == [b"BINARY"]:
            raise self._error("expected OFF as text, not its binary form")
        if rest:
            self._lines[0] = (self._lines[0][0], rest)
        else:
            self._next += 1
        return prefixes

    def _read_counts(self) -> tuple[int, int]:
        expected = "the counts of vertices, faces and edges"
        words = self._words(expected)
        if len(words) not in (2, 3) or not all(word.isdigit() and len(word) < 19 for word in words):
            raise self._error(f"expected {expected}")
        vertex_count, face_count = int(words[0]), int(words[1])
        if not vertex_count or not face_count:
            raise self._error("expected at least one vertex and one face")
        self._next += 1
        return vertex_count, face_count

    def _read_vertices(self, count: int, prefixes: list[bytes]) -> np.ndarray:
        sizes = {3}
        for prefix in prefixes:
            sizes = {size + more for size in sizes for more in _PREFIX_SIZES[prefix]}
        coordinates: list[float] = []
        for index in range(count):
            words = self._words("vertex {} of {}", index, count)
            if len(words) not in sizes:
                raise self._error(f"expected {_either(sizes)} numbers for vertex {index} of {count}")
            sizes = {len(words)}  # equal for all lines, or a missing coordinate could pass for a short colour
            coordinates += self._position(self._numbers(words), homogeneous=b"4" in prefixes)
            self._next += 1
        return np.array(coordinates, dtype=np.float64).reshape(-1, 3)

    def _position(self, numbers: list[float], homogeneous: bool) -> list[float]:
        position = numbers[:3]
        if homogeneous:
            weight = numbers[3]
            if weight == 0 or not math.isfinite(weight):
                raise self._error("expected a fourth coordinate that is finite and not zero")
            position = [coordinate / weight for coordinate in position]
        if not all(map(math.isfinite, position)):
            raise self._error("expected finite coordinates")
        return position

    def _read_faces(self, count: int, vertex_count: int) -> tuple[np.ndarray, np.ndarray]:
        """Vertex indices, concatenated over polygons, and the polygons' numbers of corners."""
        corners: list[int] = []
        sizes: list[int] = []
        for index in range(count):
            polygon = self._read_face(index, count, vertex_count)
            corners += polygon
            sizes.append(len(polygon))
        return np.array(corners, np.int64), np.array(sizes)

    def _read_face(self, index: int, count: int, vertex_count: int) -> list[int]:
        """The vertex indices of one polygon; its colour is skipped."""
        words = self._words("face {} of {}", index, count)
        (size,) = self._integers(words[:1])
        if size < 3:
            raise self._error(f"expected at least 3 vertices in face {index} of {count}")
        if len(words) - 1 < size:
            raise self._error(f"expected {size} vertex indices in face {index} of {count}")
        colour = words[size + 1 :]
        if len(colour) not in _FACE_COLOUR_SIZES:
            raise self._error(
                f"expected face {index} of {count} to end after {size} indices and a colour of 0, 1, 3 or 4 numbers"
            )
        corners = self._integers(words[1 : size + 1])
        if min(corners) < 0 or max(corners) >= vertex_count:
            raise self._error(f"expected vertex indices from 0 to {vertex_count - 1} in face {index} of {count}")
        self._numbers(colour)
        self._next += 1
        return corners

    def _words(self, expected: str, *details: int) -> list[bytes]:
        if self._next < len(self._lines):
            return self._lines[self._next][1]
        expected = expected.format(*details)
        if not self._lines:
            raise MeshError(f"{self._name}: expected {expected}, found an empty file")
        last = self._lines[-1][0]
        raise MeshError(f"{self._name}, line {last}: expected {expected} after this line, found the end of the file")

    def _integers(self, words: list[bytes]) -> list[int]:
        try:
            return whole_numbers(words, self._underscores)
        except ValueError:
            raise self._error("expected whole numbers") from None

    def _numbers(self, words: list[bytes]) -> list[float]:
        try:
            return numbers(words, self._underscores)
        except ValueError:
            raise self._error("expected only numbers") from None

    def _error(self, expected: str) -> MeshError:
        number, words = self._lines[self._next]
        return MeshError(f"{self._name}, line {number}: {expected}, found {excerpt(b' '.join(words))}")


def _either(sizes: set[int]) -> str:
    return " or ".join(str(size) for size in sorted(sizes))
