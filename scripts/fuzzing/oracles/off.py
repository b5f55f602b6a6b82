"""OFF (Geomview's manual, "OFF Files"), one line per vertex and face."""

import re

from fuzzing.oracles.polygons import cut
from fuzzing.oracles.words import Illegal, finite, lines_of, number, require, whole, without_mark

HEADER = re.compile(rb"((?:ST|C|N|4)*)OFF(.*)", re.DOTALL)
MOST = 10**18


def read(content: bytes) -> tuple[list, list]:
    """Vertices and triangles."""
    lines = [line.split(b"#")[0].split() for line in lines_of(without_mark(content))]
    lines = [line for line in lines if line]
    require(bool(lines), "nothing there")
    header = HEADER.fullmatch(b" ".join(lines[0]))
    if header is None:
        raise Illegal("no OFF")
    prefixes = re.findall(rb"ST|C|N|4", header[1])
    require(len(set(prefixes)) == len(prefixes), "a prefix twice")
    rest = header[2].split()
    body = 1 if rest else 2
    require(len(lines) >= body, "no counts")
    words = rest or lines[1]
    require(len(words) in (2, 3), "not two or three counts")
    require(all(word.isdigit() for word in words), "a sign before a count")
    vertex_count, face_count, *_ = [whole(word, 0, MOST) for word in words]
    require(vertex_count > 0 and face_count > 0, "a count of zero")
    require(len(lines) == body + vertex_count + face_count, "another number of lines")
    vertices = read_vertices(lines[body : body + vertex_count], prefixes)
    polygons = []
    for line in lines[body + vertex_count :]:
        size = whole(line[0], 3, MOST)
        require(len(line) - 1 - size in (0, 1, 3, 4), "words of a face")
        corners = [whole(word, 0, vertex_count - 1) for word in line[1 : 1 + size]]
        [number(word) for word in line[1 + size :]]
        polygons.append(corners)
    return vertices, cut(vertices, polygons)


def read_vertices(lines: list[list[bytes]], prefixes: list[bytes]) -> list[tuple[float, ...]]:
    """Positions; what the prefixes announce is counted and left."""
    least = 3 + (b"4" in prefixes) + 2 * (b"ST" in prefixes) + 3 * (b"N" in prefixes) + 3 * (b"C" in prefixes)
    width = len(lines[0])
    require(least <= width <= least + (b"C" in prefixes), "words of the first vertex")
    vertices = []
    for line in lines:
        require(len(line) == width, "words of a vertex")
        [number(word) for word in line]
        place = [finite(word) for word in line[: 3 + (b"4" in prefixes)]]
        if len(place) == 4:
            weight = place.pop()
            require(weight != 0, "a point at infinity")
            place = [coordinate / weight for coordinate in place]
            require(all(abs(coordinate) < float("inf") for coordinate in place), "overflow")
        vertices.append(tuple(place))
    return vertices
