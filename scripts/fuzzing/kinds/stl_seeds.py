"""Good STL files, text and binary, also one that says solid and is binary."""

import struct

from fuzzing.kinds.mesh_seeds import GRID_PLACES, GRID_POLYGONS, PLACES, POLYGONS

GRID = [[GRID_PLACES[corner] for corner in corners] for corners in GRID_POLYGONS[::4]]
TRIANGLES = [[PLACES[corner] for corner in corners] for corners in POLYGONS]


def text_file(
    name: str = " shape",
    normal: str = "0 0 1",
    close: str | None = None,
    indent: str = "  ",
    triangles: list = TRIANGLES,
) -> bytes:
    """ASCII STL: the solid's name, the normal of every facet, what follows endsolid."""
    lines = [f"solid{name}"]
    for triangle in triangles:
        lines += [f"{indent}facet normal {normal}", f"{indent * 2}outer loop"]
        lines += [f"{indent * 3}vertex {x} {y} {z}" for x, y, z in triangle]
        lines += [f"{indent * 2}endloop", f"{indent}endfacet"]
    return "\n".join([*lines, f"endsolid{name if close is None else close}", ""]).encode()


def binary_file(header: bytes = b"", attribute: int = 0) -> bytes:
    """Binary STL: 80 bytes of anything, the count, and the facets."""
    facets = [
        struct.pack("<12fH", 0, 0, 1, *(x for place in triangle for x in place), attribute) for triangle in TRIANGLES
    ]
    return header.ljust(80, b" ")[:80] + struct.pack("<I", len(facets)) + b"".join(facets)


STL_FILES = [
    text_file(),
    text_file("", "nan nan nan", indent=""),
    text_file(" made by solid tool 2", "-0.6e0 0 8e-1", "", "\t"),
    text_file() + text_file(" second"),
    text_file().upper(),
    text_file("").replace(b"\n", b"\r\n"),
    text_file(" grid", triangles=GRID),
]
STL_BINARY_FILES = [
    binary_file(b"VCG"),
    binary_file(b"solid like a text", 65535),
    binary_file(bytes(80)),
    binary_file(text_file()[:80]),
]
