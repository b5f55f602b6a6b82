"""OBJ (Alias, Advanced Visualizer manual, appendix B1): its vertices and polygons."""

from fuzzing.oracles.polygons import cut
from fuzzing.oracles.words import Illegal, finite, lines_of, number, require, whole, without_mark

NAMES = b"g o usemtl mtllib usemap maplib shadow_obj trace_obj".split()
CURVES = b"cstype deg bmat step parm curv curv2 sp end con ctech res".split()
PASSED = [*b"vt vn vp l p s mg bevel c_interp d_interp lod".split(), *CURVES, *NAMES]
WIDTHS = ({3}, {6}, {3, 6}, {4}, {7})
MOST = 10**18


def read(content: bytes) -> tuple[list, list]:
    """Vertices and triangles."""
    vertices: list[tuple[float, ...]] = []
    polygons = []
    widths = set()
    for words in statements(content):
        if words[0] == b"v":
            widths.add(len(words) - 1)
            require(widths in WIDTHS, "words of a vertex")
            vertices.append(tuple(finite(word) for word in words[1:4]))
            [number(word) for word in words[4:]]
        elif words[0] == b"f":
            corners = [corner(word, len(vertices)) for word in words[1:]]
            require(len(corners) >= 3, "corners of a face")
            require(len({word.count(b"/") for word in words[1:]}) == 1, "corners of several forms")
            polygons.append(corners)
        else:
            require(words[0] in PASSED, f"unknown keyword {words[0][:20]!r}")
    require(bool(polygons), "no faces")
    require(max(map(max, polygons)) < len(vertices), "a vertex that is not there")
    return vertices, cut(vertices, polygons)


def corner(word: bytes, before: int) -> int:
    """The vertex of a corner; relative ones are counted from the vertices before it."""
    parts = word.split(b"/")
    require(len(parts) <= 3, "slashes")
    [whole(part, -MOST, MOST) for part in parts[1:] if part]
    index = whole(parts[0], -MOST, MOST)
    require(index != 0 and index >= -before, "a vertex before the first")
    return index - 1 if index > 0 else before + index


def statements(content: bytes) -> list[list[bytes]]:
    """Words of each statement, without comments, continued lines joined."""
    found = []
    lines = lines_of(without_mark(content))
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        while line.endswith(b"\\") and b"#" not in line:
            kept = line[:-1]
            if kept.split()[:1] and kept.split()[0] in NAMES:
                break
            if place == len(lines):
                raise Illegal("nothing after a continued line")
            following = lines[place]
            place += 1
            passed = bool(kept.split()[:1]) and kept.split()[0] in PASSED
            apart = passed or not kept or kept[-1:].isspace() or not following or following[:1].isspace()
            require(apart, "two words or one")
            line = kept + b" " + following
        words = line.split(b"#")[0].split()
        if words:
            found.append(words)
    return found
