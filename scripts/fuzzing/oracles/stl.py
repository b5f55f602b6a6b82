"""STL (3D Systems' StereoLithography interface specification): binary by its size, else text."""

import struct
from collections.abc import Sequence

import numpy as np

from fuzzing.oracles.words import finite, lines_of, number, require, without_mark


def read(content: bytes) -> tuple[np.ndarray, list]:
    """Vertices, three for each facet, and triangles."""
    if len(content) >= 84 and len(content) == 84 + 50 * struct.unpack_from("<I", content, 80)[0]:
        corners: Sequence[Sequence[float]] = [
            struct.unpack_from("<9f", content, place + 12) for place in range(84, len(content), 50)
        ]
    else:
        corners = read_text(without_mark(content))
    require(bool(corners), "no facets")
    vertices = np.array(corners, dtype=np.float64).reshape(-1, 3)
    require(bool(np.isfinite(vertices).all()), "not finite")
    return vertices, [(i, i + 1, i + 2) for i in range(0, len(vertices), 3)]


def read_text(content: bytes) -> list[list[float]]:
    """Nine coordinates for each facet."""
    words: list[bytes] = []
    for line in lines_of(content):
        split = [word.lower() for word in line.split()]
        # The names after these two words are any text to the end of the line.
        for place, word in enumerate(split):
            if word in (b"solid", b"endsolid"):
                split = split[: place + 1]
                break
        words += split
    corners = []
    take = iter(words)

    def expect(*wanted: bytes) -> None:
        for want in wanted:
            require(next(take, b"") == want, f"no {want!r}")

    require(bool(words), "nothing there")
    for word in take:
        require(word == b"solid", "no solid")
        while (following := next(take, b"")) == b"facet":
            expect(b"normal")
            [number(next(take, b"")) for _ in range(3)]
            expect(b"outer", b"loop")
            facet = []
            for _ in range(3):
                expect(b"vertex")
                facet += [finite(next(take, b"")) for _ in range(3)]
            expect(b"endloop", b"endfacet")
            corners.append(facet)
        require(following == b"endsolid", "no endsolid")
    return corners
