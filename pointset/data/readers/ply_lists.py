"""Read PLY elements with lists, such as the corners of faces, from text and from binary data."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pointset.data.readers.number_table import Form, parse_usual
from pointset.data.readers.number_words import number_of
from pointset.data.readers.ply_header import PlyElement, PlyProperty
from pointset.errors import PointsetError, quoted


@dataclass(frozen=True)
class Lists:
    """One list per entry."""

    values: np.ndarray
    """float64 or integers [sum of sizes], the concatenated lists."""
    sizes: np.ndarray
    """int64 [entries], lengths of the lists."""
    places: np.ndarray
    """int64 [entries], line number or byte offset of each entry in the file."""


def parse_lists(lines: Sequence[str], first: int, properties: Sequence[PlyProperty], kept: int, usual: bool) -> Lists:
    """Parse lines with one entry each; blank lines are skipped.

    Args:
        lines: lines without line ends.
        first: line number of the first of them.
        properties: the properties of an entry.
        kept: index of the property that is returned.
        usual: True if there are no characters that numpy's parser could misread.

    Raises:
        PointsetError: a line is wrong; the message begins with its number.
    """
    numbers = [number for number, line in enumerate(lines, first) if line.strip(" \t\v\f")]
    rows = [lines[number - first].encode("latin-1").split() for number in numbers[:1]]
    table = _uniform(lines, rows[0], properties, kept) if usual and rows else None
    if table is not None and len(table) == len(numbers):
        return Lists(table.ravel(), np.full(len(table), table.shape[1]), np.array(numbers))
    entries = []
    for number in numbers:
        try:
            entries.append(_entry(lines[number - first].encode("latin-1").split(), properties)[kept])
        except ValueError as error:
            raise PointsetError(f"line {number}: {error}") from error
    values = np.array([value for entry in entries for value in entry])
    return Lists(values, np.array([len(entry) for entry in entries], np.int64), np.array(numbers))


def _uniform(
    lines: Sequence[str], words: list[bytes], properties: Sequence[PlyProperty], kept: int
) -> np.ndarray | None:
    """The kept lists [entries, size] if all lines have lists of the same lengths as this line's words; else None."""
    types: list[str] = []
    lengths: dict[int, int] = {}
    columns: list[int] = []
    for place, one in enumerate(properties):
        repeat = 1
        if one.length_type:
            word = words[len(types)] if len(types) < len(words) else b""
            if not word.isdigit() or len(word) > 9 or int(word) > len(words):
                return None
            repeat = lengths[len(types)] = int(word)
            types.append(one.length_type)
        if place == kept:
            columns = [*range(len(types), len(types) + repeat)]
        types += [one.type] * repeat
    table = parse_usual(lines, Form(tuple(types), (*lengths, *columns), ()))
    if table is None or (table[:, : len(lengths)] != [*lengths.values()]).any():
        return None
    return table[:, len(lengths) :]


def _entry(words: Sequence[bytes], properties: Sequence[PlyProperty]) -> list[list[float]]:
    """The numbers of each property on a line; a ValueError if the line is wrong."""
    found, place = [], 0
    for one in properties:
        repeat = 1
        if one.length_type and place < len(words):
            repeat, place = int(number_of(words[place], one.length_type)), place + 1
            if repeat < 0:
                raise ValueError(f"expected the length of a list, found {repeat}")
        if repeat > len(words) - place:
            raise ValueError(f"expected {repeat} numbers for {quoted(one.name)}, found {len(words) - place}")
        found.append([number_of(word, one.type, finite=False) for word in words[place : place + repeat]])
        place += repeat
    if place < len(words):
        raise ValueError(f"expected {place} numbers, found {len(words)}")
    return found


def unpack_lists(content: bytes, start: int, element: PlyElement, order: str, kept: int) -> tuple[Lists, int]:
    """Read the lists of a binary element, and return them with the byte offset after the element.

    Args:
        content: the file.
        start: byte offset of the element.
        element: the element, with at least one entry.
        order: byte order, `<` or `>`.
        kept: index of the property that is returned.

    Raises:
        PointsetError: the file is too short, or a list has a negative length.
    """
    smallest = sum(np.dtype(one.length_type or one.type).itemsize for one in element.properties)
    if start + element.count * smallest > len(content):
        raise _too_short(content)
    first, end = _walk(content, start, element.properties, order)
    record = np.dtype(
        [field for one, (_, size) in zip(element.properties, first, strict=True) for field in _fields(one, size, order)]
    )
    if start + element.count * record.itemsize <= len(content):
        table = np.frombuffer(content, record, element.count, start)
        lengths = {one.name: size for one, (_, size) in zip(element.properties, first, strict=True) if one.length_type}
        if all((table[f"length of {name}"] == size).all() for name, size in lengths.items()):
            values = table[f"value of {element.names[kept]}"]
            places = start + np.arange(element.count) * record.itemsize
            end = start + element.count * record.itemsize
            return Lists(values.reshape(-1), np.full(element.count, first[kept][1]), places), end
    return _unpack_one_by_one(content, start, element, order, kept)


def _fields(one: PlyProperty, size: int, order: str) -> list[tuple]:
    length = [(f"length of {one.name}", order + one.length_type)] if one.length_type else []
    return [*length, (f"value of {one.name}", order + one.type, (size,))]


def _unpack_one_by_one(content: bytes, start: int, element: PlyElement, order: str, kept: int) -> tuple[Lists, int]:
    kind = np.dtype(order + element.properties[kept].type)
    pieces, sizes, places = [], [], []
    for _ in range(element.count):
        places.append(start)
        found, start = _walk(content, start, element.properties, order)
        begin, size = found[kept]
        pieces.append(content[begin : begin + size * kind.itemsize])
        sizes.append(size)
    return Lists(np.frombuffer(b"".join(pieces), kind), np.array(sizes), np.array(places)), start


def _walk(
    content: bytes, start: int, properties: Sequence[PlyProperty], order: str
) -> tuple[list[tuple[int, int]], int]:
    """Offset and size of each property of the entry at the offset `start`, and the offset after the entry."""
    found, place = [], start
    for one in properties:
        size = 1
        if one.length_type:
            code = struct.Struct(order + _CODES[one.length_type])
            if place + code.size > len(content):
                raise _too_short(content)
            (size,) = code.unpack_from(content, place)
            if size < 0:
                raise PointsetError(f"byte {place}: expected the length of a list, found {size}")
            place += code.size
        found.append((place, size))
        place += size * int(one.type[1:])
        if place > len(content):
            raise _too_short(content)
    return found, place


_CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I"}


def _too_short(content: bytes) -> PointsetError:
    return PointsetError(f"expected more than its {len(content)} bytes, as its header says: it is cut off or damaged")
