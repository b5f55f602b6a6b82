"""The header of a PLY file: which elements it announces (G. Turk, "The PLY Polygon File Format", 1994)."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pointset.data.files.layouts import header_lines
from pointset.errors import PointsetError

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4)}


@dataclass(frozen=True)
class PlyProperty:
    """A number of each thing, or a list of numbers."""

    name: str
    type: str
    """numpy's, without byte order."""
    length_type: str = ""
    """Of a list: the type of its length, which stands before it; empty for a number."""


@dataclass(frozen=True)
class PlyElement:
    """Things of one kind, one after another."""

    name: str
    count: int
    properties: list[PlyProperty] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Of the properties."""
        return [one.name for one in self.properties]

    @property
    def has_lists(self) -> bool:
        """Whether its things may have different sizes."""
        return any(one.length_type for one in self.properties)

    def types(self, order: str) -> list[np.dtype]:
        """Of the properties, with this byte order."""
        return [np.dtype(order + one.type) for one in self.properties]


@dataclass(frozen=True)
class PlyHeader:
    """What a PLY file announces."""

    order: str
    """`<` or `>` for numbers, empty for text."""
    elements: list[PlyElement]
    offset: int
    """Byte after the header."""
    lines: int
    """Of the header."""


def read_ply_header(path: Path) -> PlyHeader:
    """The header of a PLY file.

    Raises:
        PointsetError: it is no header of a PLY file; the file is not named.
        OSError: the file cannot be read.
    """
    lines, offset = header_lines(path, "end_header")
    if lines[0] != ["ply"] or len(lines[1]) < 2 or lines[1][0] != "format" or lines[1][1] not in ORDERS:
        raise PointsetError("expected the header of a PLY file, that begins with ply and its format")
    return PlyHeader(ORDERS[lines[1][1]], _elements(lines[2:]), offset, len(lines))


def _elements(lines: list[list[str]]) -> list[PlyElement]:
    elements: list[PlyElement] = []
    for words in lines:
        match words:
            case ["element", name, count] if count.isdecimal():
                elements.append(PlyElement(name, int(count)))
            case ["property", "list", length, kind, name] if elements:
                elements[-1].properties.append(PlyProperty(name, TYPES.get(kind, kind), TYPES.get(length, length)))
            case ["property", kind, name] if elements and kind in TYPES:
                elements[-1].properties.append(PlyProperty(name, TYPES[kind]))
            case [] | ["comment" | "obj_info" | "end_header", *_]:
                pass
            case _:
                raise PointsetError(f"has a line in its header that is not PLY: {' '.join(words)[:60]!r}")
    return elements
