"""Read the header of a PLY file (G. Turk, "The PLY Polygon File Format", 1994).

Everything that Turk does not define is refused, because ignoring a damaged word could shift all numbers: unknown
keywords and types, surplus words, repeated names of elements or properties, versions other than 1.0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from pointset.data.readers.headers import read_header, whole_number
from pointset.errors import PointsetError, quoted

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"}
TYPES |= {"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"}
TYPES |= {f"{sign}int{8 * size}": f"{sign or 'i'}{size}" for sign in ("", "u") for size in (1, 2, 4)}


@dataclass(frozen=True)
class PlyProperty:
    """A property: one number per entry, or a list of numbers."""

    name: str
    type: str
    """numpy name of the type, without byte order."""
    length_type: str = ""
    """For a list, the type of its length, which precedes it; empty for a number."""


@dataclass(frozen=True)
class PlyElement:
    """An element: consecutive entries with the same properties."""

    name: str
    count: int
    properties: tuple[PlyProperty, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the properties."""
        return [one.name for one in self.properties]

    @property
    def has_lists(self) -> bool:
        """True if a property is a list, so that entries may differ in size."""
        return any(one.length_type for one in self.properties)

    def types(self, order: str) -> list[np.dtype]:
        """Types of the properties, with this byte order."""
        return [np.dtype(order + one.type) for one in self.properties]


@dataclass(frozen=True)
class PlyHeader:
    """The header of a PLY file."""

    order: str
    """Byte order `<` or `>` of binary data, empty for text."""
    elements: list[PlyElement]
    offset: int
    """Byte offset after the header."""
    next_line: int
    """Line number after the header."""


def read_ply_header(path: Path) -> PlyHeader:
    """Read the header of a PLY file.

    Raises:
        PointsetError: it is not the header of a PLY file; the message does not name the file.
        OSError: the file cannot be read.
    """
    header = read_header(path, "end_header")
    if header.first.rstrip(b" \t") != b"ply":
        raise PointsetError("expected the header of a PLY file, that begins with ply and its format")
    told = [(number, words) for number, words in header.lines[1:] if words[0] not in ("comment", "obj_info")]
    match told[0][1]:
        case ["format", order, "1.0"] if order in ORDERS:
            pass
        case words:
            raise PointsetError(f"expected the format of a PLY file, such as `format ascii 1.0`, found {_line(words)}")
    if told[-1][1] != ["end_header"]:
        raise _unexpected_line(*told[-1])
    offset = header.start_of_numbers if ORDERS[order] else header.text
    return PlyHeader(ORDERS[order], list(_elements(told[1:-1])), offset, header.next_line)


def _elements(lines: Sequence[tuple[int, list[str]]]) -> Iterator[PlyElement]:
    starts = [place for place, (_, words) in enumerate(lines) if words[0] == "element"]
    if starts[:1] != [0] and lines:
        raise _unexpected_line(*lines[0])
    names = [lines[start][1][1] for start in starts if len(lines[start][1]) == 3]
    _require_different(names, "elements")
    for start, end in pairwise([*starts, len(lines)]):
        words = lines[start][1]
        count = whole_number(words[2]) if len(words) == 3 else None
        if count is None:
            raise _unexpected_line(*lines[start])
        properties = tuple(_property(*line) for line in lines[start + 1 : end])
        _require_different([one.name for one in properties], f"properties of its element {quoted(words[1])}")
        if count and not properties:
            raise PointsetError(f"has an element {quoted(words[1])} without properties in its header")
        yield PlyElement(words[1], count, properties)


def _property(number: int, words: list[str]) -> PlyProperty:
    match words:
        case ["property", "list", length, kind, name] if kind in TYPES and TYPES.get(length, "f")[0] != "f":
            return PlyProperty(name, TYPES[kind], TYPES[length])
        case ["property", kind, name] if kind in TYPES:
            return PlyProperty(name, TYPES[kind])
    raise _unexpected_line(number, words)


def _require_different(names: Sequence[str], what: str) -> None:
    twice = next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
    if twice is not None:
        raise PointsetError(f"has two {what} called {quoted(twice)} in its header: the name is ambiguous")


def _unexpected_line(number: int, words: list[str]) -> PointsetError:
    return PointsetError(f"line {number}: expected a line of a PLY file's header, found {_line(words)}")


def _line(words: Sequence[str]) -> str:
    return quoted(" ".join(words))
