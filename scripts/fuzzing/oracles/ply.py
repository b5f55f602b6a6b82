"""PLY (G. Turk, "The PLY Polygon File Format", 1994): header and entries, as a mesh and as a cloud."""

import math
import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fuzzing.oracles.polygons import cut
from fuzzing.oracles.words import Illegal, lines_of, ranged, require, whole

NAMES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I", "float": "f", "double": "d"}
SIZED = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I"}
CODES = {name.encode(): code for name, code in {**NAMES, **SIZED, "float32": "f", "float64": "d"}.items()}
FORMATS = {b"ascii": "", b"binary_little_endian": "<", b"binary_big_endian": ">"}
MOST = 10**18


@dataclass
class Element:
    """What the header says of one element, and its entries."""

    name: bytes
    count: int
    properties: list[tuple[bytes, str, str]] = field(default_factory=list)
    """Name, code of the type, code of a list's count or nothing."""
    entries: list[list[Any]] = field(default_factory=list)


def read_mesh(content: bytes) -> tuple[np.ndarray, list]:
    """Vertices and triangles."""
    elements, order, start = read_header(content)
    vertex, face = elements.get(b"vertex"), elements.get(b"face")
    if vertex is None or face is None:
        raise Illegal("no vertices or no faces")
    lists = [
        place for place, (name, _, _) in enumerate(face.properties) if name in (b"vertex_indices", b"vertex_index")
    ]
    require(len(lists) == 1, "not one list of corners")
    _, code, counted = face.properties[lists[0]]
    require(counted != "" and code in "bBhHiI", "corners are not a list of whole numbers")
    columns = axes(vertex, [b"x", b"y", b"z"])
    read_entries(elements, order, content[start:])
    vertices = coordinates(vertex, columns)
    polygons = []
    for entry in face.entries:
        corners = entry[lists[0]]
        require(len(corners) >= 3, "corners of a face")
        require(all(0 <= corner < len(vertices) for corner in corners), "a vertex that is not there")
        polygons.append(corners)
    require(bool(polygons), "no faces")
    return vertices, cut(vertices, polygons)


def read_cloud(content: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and normals, if there are any."""
    elements, order, start = read_header(content)
    vertex = elements.get(b"vertex")
    if vertex is None:
        raise Illegal("no vertices")
    require(b"face" not in elements or elements[b"face"].count == 0, "a mesh")
    require(vertex.count > 0, "no points")
    require(not any(counted for _, _, counted in vertex.properties), "a list in the vertices")
    for element in elements.values():
        listed = any(counted for _, _, counted in element.properties)
        require(order == "" or element.count == 0 or not listed, "lists in a binary cloud")
    columns = axes(vertex, [b"x", b"y", b"z"])
    read_entries(elements, order, content[start:])
    points = coordinates(vertex, columns)
    try:
        normals = axes(vertex, [b"nx", b"ny", b"nz"])
    except Illegal:
        return points, None
    return points, np.array([[entry[column] for column in normals] for entry in vertex.entries], dtype=np.float64)


def axes(element: Element, names: list[bytes]) -> list[int]:
    """Columns of three scalars."""
    found = [name for name, _, counted in element.properties if not counted]
    require(all(name in found for name in names), "a coordinate is missing")
    everything = [name for name, _, _ in element.properties]
    return [everything.index(name) for name in names]


def coordinates(element: Element, columns: list[int]) -> np.ndarray:
    """Finite coordinates."""
    points = [[entry[column] for column in columns] for entry in element.entries]
    require(all(abs(value) < math.inf for point in points for value in point), "not finite")
    return np.array(points, dtype=np.float64).reshape(-1, 3)


def read_header(content: bytes) -> tuple[dict[bytes, Element], str, int]:
    """Elements by name, the byte order (nothing for text), and where the entries begin."""
    elements: dict[bytes, Element] = {}
    order = None
    first = re.match(rb"ply[ \t]*(\r\n|\n|\r)", content)
    if first is None:
        raise Illegal("ply is not a line")
    end, place = first[1], first.end()
    while True:
        lengths = [length for mark in b"\r\n" if (length := content.find(bytes([mark]), place)) >= 0]
        words = content[place : min(lengths, default=len(content))].split()
        place = min(lengths, default=len(content))
        if words[:1] == [b"end_header"]:
            require(len(words) == 1 and order is not None, "end of the header")
            require(order == "" or content[place:].startswith(end), "the line end of the header")
            for element in elements.values():
                require(element.count == 0 or bool(element.properties), "an element without properties")
            return elements, order or "", place + len(end) * bool(order)
        require(bool(lengths), "no end of the header")
        place += 2 if content[place : place + 2] == b"\r\n" else 1
        if not words or words[0] in (b"comment", b"obj_info"):
            continue
        if order is None:
            require(len(words) == 3 and words[0] == b"format" and words[2] == b"1.0", "no format")
            require(words[1] in FORMATS, "unknown format")
            order = FORMATS[words[1]]
        else:
            read_line(words, elements)


def read_line(words: list[bytes], elements: dict[bytes, Element]) -> None:
    """One line of the header: an element or a property."""
    if words[0] == b"element":
        require(len(words) == 3 and words[1] not in elements, "an element")
        elements[words[1]] = Element(words[1], whole(words[2], 0, MOST))
        return
    require(words[0] == b"property" and bool(elements), "unknown keyword")
    properties = list(elements.values())[-1].properties
    counted = ""
    if words[1:2] == [b"list"]:
        require(len(words) == 5 and words[2] in CODES, "a list")
        counted = CODES[words[2]]
        require(counted not in "fd", "a count that is not a whole number")
    else:
        require(len(words) == 3, "a property")
    require(words[-2] in CODES, "unknown type")
    require(words[-1] not in [name for name, _, _ in properties], "a property twice")
    properties.append((words[-1], CODES[words[-2]], counted))


def read_entries(elements: dict[bytes, Element], order: str, body: bytes) -> None:
    """All entries of all elements, to the end of the file."""
    if order == "":
        lines = iter([words for line in lines_of(body) if (words := line.split())])
        for element in elements.values():
            for _ in range(element.count):
                element.entries.append(text_entry(element, next(lines, [])))
        require(next(lines, None) is None, "more lines")
        return
    place = 0
    for element in elements.values():
        for _ in range(element.count):
            entry: list[Any] = []
            for _, code, counted in element.properties:
                values, place = unpack(body, place, order + (counted or code))
                if counted:
                    require(values[0] >= 0, "a negative count")
                    values, place = unpack(body, place, f"{order}{values[0]}{code}")
                entry.append(list(values) if counted else values[0])
            element.entries.append(entry)
    require(place == len(body), "more bytes")


def unpack(body: bytes, place: int, code: str) -> tuple[tuple, int]:
    """Numbers at a place, and the place after them."""
    end = place + struct.calcsize(code)
    require(end <= len(body), "cut off")
    return struct.unpack_from(code, body, place), end


def text_entry(element: Element, words: list[bytes]) -> list[Any]:
    """One line of numbers."""
    take = iter(words)
    entry: list[Any] = []
    for _, code, counted in element.properties:
        if counted:
            entry.append([typed(next(take, b""), code) for _ in range(min(typed(next(take, b""), counted), 1 << 20))])
        else:
            entry.append(typed(next(take, b""), code))
    require(next(take, None) is None, "more words on a line")
    return entry


def typed(word: bytes, code: str) -> Any:
    """A number of a type."""
    if code in "fd":
        return ranged(word, 4 if code == "f" else 8)
    bits = 8 * struct.calcsize("<" + code)
    return whole(word, 0, 2**bits - 1) if code.isupper() else whole(word, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
