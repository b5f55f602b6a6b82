"""Read STL text word by word: slower than numpy's parser, but with the line of every error.

`pointset.data.readers.stl` describes the supported spellings, and calls this reader for the unusual ones.
"""

import math
from collections.abc import Iterator

import numpy as np

from pointset.data.readers.meshes import MeshError
from pointset.data.readers.words import excerpt, numbers

NUMBER = b""
_VERTEX = [b"vertex", NUMBER, NUMBER, NUMBER]
FACET = [
    *[b"facet", b"normal", NUMBER, NUMBER, NUMBER, b"outer", b"loop"],
    *[*_VERTEX, *_VERTEX, *_VERTEX, b"endloop", b"endfacet"],
]
"""The words of a triangle; `NUMBER` means any number."""
_NORMAL = 3  # numbers of a facet's normal, which precede its corners


class StlReader:
    """One reading of one STL file of text, whose bytes have no byte order mark; errors begin with `name`."""

    def __init__(self, content: bytes, name: str) -> None:
        self._name = name
        text = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._lines = enumerate(text.split(b"\n"), start=1)
        self._line = 0
        self._words: Iterator[bytes] = iter(())

    def read(self) -> np.ndarray:
        """Read the corners of all triangles, float64 [3 * triangles, 3]; a MeshError names the wrong line."""
        corners: list[float] = []
        word = self._next("solid")
        while word:
            self._require(word, b"solid")
            self._words = iter(())  # the rest of the line is a name
            while (word := self._next("facet or endsolid")).lower() != b"endsolid":
                corners += self._read_facet(word)
            self._words = iter(())
            word = self._next("")
        return np.array(corners, np.float64).reshape(-1, 3)

    def _read_facet(self, word: bytes) -> list[float]:
        """Read the corners of a facet, whose first word has been read already."""
        self._require(word, FACET[0])
        found: list[float] = []
        for expected in FACET[1:]:
            word = self._next(expected.decode() or "a number")
            if expected:
                self._require(word, expected)
            else:
                found.append(self._number(word, finite=len(found) >= _NORMAL))
        return found[_NORMAL:]

    def _next(self, expected: str) -> bytes:
        """The next word; b"" at the end of the file if nothing is expected there, else a MeshError."""
        while (word := next(self._words, b"")) == b"":
            number, line = next(self._lines, (0, b""))
            if not number and not expected:
                return b""
            if not number:
                place = f"{self._name}, line {self._line}"
                raise MeshError(f"{place}: expected {expected} after this line, found the end of the file")
            words = line.split()
            if words:
                self._line, self._words = number, iter(words)
        return word

    def _require(self, word: bytes, expected: bytes) -> None:
        if word.lower() != expected:
            raise self._error(expected.decode(), word)

    def _number(self, word: bytes, finite: bool) -> float:
        try:
            (number,) = numbers([word])
        except ValueError:
            raise self._error("a number", word) from None
        if finite and not math.isfinite(number):
            raise self._error("a finite coordinate", word)
        return number

    def _error(self, expected: str, word: bytes) -> MeshError:
        return MeshError(f"{self._name}, line {self._line}: expected {expected}, found {excerpt(word)}")
