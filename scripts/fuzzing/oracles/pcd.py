"""PCD (the Point Cloud Library's page on PCD_V7): text, binary and compressed."""

import struct

import numpy as np

from fuzzing.oracles.words import Illegal, finite, lines_of, ranged, require, whole

ONE_WORD = (b"VERSION", b"WIDTH", b"HEIGHT", b"POINTS", b"DATA")
NEEDED = (*ONE_WORD, b"FIELDS", b"SIZE", b"TYPE")
VERSIONS = (b"0.7", b".7", b"0.6", b".6", b"0.5", b".5")
CODES = {"I1": "b", "I2": "h", "I4": "i", "I8": "q", "U1": "B", "U2": "H", "U4": "I", "U8": "Q", "F4": "f", "F8": "d"}
NORMALS = {b"nx": b"normal_x", b"ny": b"normal_y", b"nz": b"normal_z"}
MOST = 10**18


def read(content: bytes) -> tuple[np.ndarray, np.ndarray | None]:
    """Points and normals, if there are any."""
    header, start = read_header(content)
    fields = [NORMALS.get(name, name) for name in header[b"FIELDS"]]
    counts = [whole(word, 1, 65536) for word in header.get(b"COUNT", [b"1"] * len(fields))]
    require(len(fields) == len(header[b"SIZE"]) == len(header[b"TYPE"]) == len(counts), "fields, sizes, types, counts")
    require(sum(counts) <= 65536, "too many words")
    named = [name for name in fields if name != b"_"]
    require(len(set(named)) == len(named), "a field twice")
    codes = []
    for kind, size in zip(header[b"TYPE"], header[b"SIZE"], strict=True):
        code = CODES.get(kind.decode("latin-1") + str(whole(size, 1, 8)))
        if code is None:
            raise Illegal("unknown type")
        codes.append(code)
    points = whole(header[b"POINTS"][0], 1, MOST)
    cells = whole(header[b"WIDTH"][0], 0, MOST) * whole(header[b"HEIGHT"][0], 0, MOST)
    require(points == cells, "points are not width times height")
    columns = axes(fields, counts, [b"x", b"y", b"z"])
    if columns is None:
        raise Illegal("a coordinate is missing")
    table = read_table(content[start:], header[b"DATA"][0], points, codes, counts)
    normals = axes(fields, counts, [b"normal_x", b"normal_y", b"normal_z"])
    found = np.array([[row[column] for column in columns] for row in table], dtype=np.float64)
    require(bool(np.isfinite(found).all()), "not finite")
    if normals is None:
        return found, None
    return found, np.array([[row[column] for column in normals] for row in table], dtype=np.float64)


def read_header(content: bytes) -> tuple[dict[bytes, list[bytes]], int]:
    """Words by keyword, and where the points begin."""
    header: dict[bytes, list[bytes]] = {}
    place, end = 0, b""
    while b"DATA" not in header:
        lengths = [at for mark in b"\r\n" if (at := content.find(bytes([mark]), place)) >= 0]
        stop = min(lengths, default=len(content))
        words = content[place:stop].split()
        follows = b"\r\n" if content[stop : stop + 2] == b"\r\n" else content[stop : stop + 1]
        end = end or follows
        place = stop + len(follows)
        if words and not words[0].startswith(b"#"):
            require(words[0] not in header and words[0] in (*NEEDED, b"COUNT", b"VIEWPOINT"), "an unknown keyword")
            header[words[0]] = words[1:]
            require(len(words) > 1, "a keyword without words")
        if words[:1] == [b"DATA"]:
            require(words[1:] == [b"ascii"] or content[stop:].startswith(end), "the line end of DATA")
            place = stop + len(end) if words[1:] != [b"ascii"] else stop
        else:
            require(bool(follows), "no end of the header")
    require(all(key in header for key in NEEDED), "a keyword is missing")
    require(all(len(header[key]) == 1 for key in ONE_WORD), "too many words")
    require(header[b"VERSION"][0] in VERSIONS, "unknown version")
    require(len(header.get(b"VIEWPOINT", [b""] * 7)) == 7, "a viewpoint of seven numbers")
    [finite(word) for word in header.get(b"VIEWPOINT", [])]
    return header, place


def axes(fields: list[bytes], counts: list[int], names: list[bytes]) -> list[int] | None:
    """Columns of three fields, if they are there."""
    if not all(name in fields for name in names):
        return None
    require(all(counts[fields.index(name)] == 1 for name in names), "a coordinate of several numbers")
    return [sum(counts[: fields.index(name)]) for name in names]


def read_table(body: bytes, data: bytes, points: int, codes: list[str], counts: list[int]) -> list[tuple]:
    """All numbers of each point."""
    if data == b"ascii":
        lines = [words for line in lines_of(body) if (words := line.split())]
        require(len(lines) == points, "another number of lines")
        wanted = [code for code, count in zip(codes, counts, strict=True) for _ in range(count)]
        require(all(len(words) == len(wanted) for words in lines), "words of a line")
        return [tuple(map(typed, words, wanted)) for words in lines]
    row = "<" + "".join(f"{count}{code}" for code, count in zip(codes, counts, strict=True))
    size = points * struct.calcsize(row)
    if data == b"binary":
        require(
            len(body) >= size and not body[size:].strip(b"\0") and len(body) - size < 65536, "another number of bytes"
        )
        return [struct.unpack_from(row, body, struct.calcsize(row) * point) for point in range(points)]
    require(data == b"binary_compressed" and len(body) >= 8, "unknown data")
    packed, full = struct.unpack_from("<2I", body)
    surplus = body[8 + packed :]
    require(full == size and len(body) >= 8 + packed, "sizes")
    require(not surplus.strip(b"\0") and len(surplus) < 65536, "more bytes")
    unpacked = decompressed(body[8 : 8 + packed], full)
    columns, place = [], 0
    for code, count in zip(codes, counts, strict=True):
        numbers = struct.unpack_from(f"<{points * count}{code}", unpacked, place)
        place += points * struct.calcsize("<" + code) * count
        columns.append([numbers[point * count : (point + 1) * count] for point in range(points)])
    return [sum(row, ()) for row in zip(*columns, strict=True)]


def typed(word: bytes, code: str) -> float:
    """A number of a type."""
    if code in "fd":
        return ranged(word, struct.calcsize("<" + code))
    bits = 8 * struct.calcsize("<" + code)
    return whole(word, 0, 2**bits - 1) if code.isupper() else whole(word, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decompressed(packed: bytes, size: int) -> bytes:
    """Undo LZF: new bytes, and copies of bytes that came before."""
    out = bytearray()
    place = 0
    while place < len(packed):
        control = packed[place]
        place += 1
        if control < 32:
            run = packed[place : place + control + 1]
            require(len(run) == control + 1, "cut off")
            out += run
            place += control + 1
        else:
            more = 2 if control >> 5 == 7 else 1
            require(place + more <= len(packed), "cut off")
            length = (control >> 5) + 2 + (packed[place] if more == 2 else 0)
            back = ((control & 31) << 8) + packed[place + more - 1] + 1
            place += more
            require(back <= len(out), "a copy of what is not there")
            for _ in range(length):
                out.append(out[-back])
        require(len(out) <= size, "more than it says")
    require(len(out) == size, "less than it says")
    return bytes(out)
