"""Read PCD: fields of points as text, as binary records or compressed (the Point Cloud Library's page on PCD_V7).

A header has each keyword once, in any order; COUNT and VIEWPOINT may be missing. Unknown keywords are refused, because
a damaged COUNT that is ignored would shift all numbers.

The library packs a color into one field, rgb or rgba, as the bits of a float32 or a uint32 (its page on PointXYZRGB).
"""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from pointset.data.readers.color_shares import color_columns, full_color
from pointset.data.readers.headers import Header, read_header, whole_number
from pointset.data.readers.layouts import (
    AXES,
    COLORS,
    PADDING,
    Binary,
    from_packed,
    kept_columns,
    place_of,
    record_of,
    records,
    unpacked,
)
from pointset.data.readers.lzf import unpack_lzf
from pointset.data.readers.number_words import number_of
from pointset.data.readers.typed_text import TypedText
from pointset.errors import PointsetError, quoted

NEEDED = ("VERSION", "FIELDS", "SIZE", "TYPE", "WIDTH", "HEIGHT", "POINTS", "DATA")
OTHERS = ("COUNT", "VIEWPOINT")
VERSIONS = (".7", "0.7", ".6", "0.6", ".5", "0.5")
TYPES: dict[tuple[str, int | None], str] = {("F", size): f"f{size}" for size in (4, 8)}
TYPES |= {(kind, size): f"{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)}
AXIS_OF = {"normal_x": "nx", "normal_y": "ny", "normal_z": "nz"}
PACKED_NAMES = ("rgb", "rgba")
MOST_NUMBERS = 1 << 16
"""Most numbers per point."""
PAGE = 1 << 16
"""Limit for the zero bytes that old versions of the Point Cloud Library write after the points."""


def pcd_layout(path: Path, features: tuple[str, ...] = ()) -> Binary | TypedText | np.ndarray:
    """The layout of a PCD file with wanted features, or its points if they are compressed."""
    header = read_header(path, "DATA")
    said = _keywords(header)
    names, types, repeats = _fields(said)
    packed = _packed(names, types, repeats)
    _require_readable(names, repeats, packed, features)
    count = _count(said)
    fields = [
        np.dtype(("<" + kind, (repeat,) if repeat > 1 else ())) for kind, repeat in zip(types, repeats, strict=True)
    ]
    match said["DATA"]:
        case ["ascii"]:
            words = [
                (name, kind) for name, kind, repeat in zip(names, types, repeats, strict=True) for _ in range(repeat)
            ]
            columns, kinds = zip(*words, strict=True)
            first = len(header.lines) + 1
            return TypedText(columns, kinds, count, header.text, first, features=features, packed=packed)
        case ["binary"]:
            pairs = zip(names, fields, strict=True)
            split = [one for name, field in pairs for one in ([np.dtype("u1")] * 4 if name == packed else [field])]
            singles = unpacked(names, packed)
            record, colors = record_of(singles, split, features), color_columns(singles, split)
            return Binary(count, header.start_of_numbers, record, padding=PAGE - 1, colors=colors)
        case ["binary_compressed"]:
            return _decompressed(path, header.start_of_numbers, count, names, fields, features, packed)
    raise PointsetError(f"holds its points as {quoted(' '.join(said['DATA']))}: save them as ascii or binary")


def _keywords(header: Header) -> dict[str, list[str]]:
    """The words after each keyword of the header."""
    said: dict[str, list[str]] = {}
    for number, (keyword, *words) in header.lines:
        if keyword.startswith("#"):
            continue
        if keyword not in NEEDED + OTHERS:
            raise PointsetError(f"line {number}: expected a line of a PCD file's header, found {quoted(keyword)}")
        if keyword in said:
            raise PointsetError(f"line {number}: expected {keyword} only once in the header of a PCD file")
        said[keyword] = words
    missing = [keyword for keyword in NEEDED if keyword not in said]
    if missing:
        raise PointsetError(f"expected {', '.join(missing)} in the header of a PCD file, which may be cut off")
    if len(said["VERSION"]) != 1 or said["VERSION"][0] not in VERSIONS:
        raise PointsetError(f"expected version 0.7 of PCD, found {quoted(' '.join(said['VERSION']))}")
    _require_viewpoint(said.get("VIEWPOINT", ["0"] * 7))
    return said


def _require_viewpoint(words: list[str]) -> None:
    if len(words) != 7:
        raise PointsetError(f"expected 7 numbers after VIEWPOINT in the header of a PCD file, found {len(words)}")
    for word in words:
        try:
            number_of(word.encode("latin-1"))
        except ValueError as error:
            raise PointsetError(f"{error} after VIEWPOINT in the header of a PCD file") from error


def _fields(said: dict[str, list[str]]) -> tuple[list[str], list[str], list[int]]:
    """Name, type and count of numbers of each field."""
    names = [AXIS_OF.get(name, name) for name in said["FIELDS"]]
    counts = [whole_number(word) for word in said.get("COUNT", ["1"] * len(names))]
    sizes = [whole_number(word) for word in said["SIZE"]]
    types = [TYPES.get(pair, "") for pair in zip(said["TYPE"], sizes, strict=False)]
    repeats = [count for count in counts if count]
    if not len(names) == len(repeats) == len(counts) == len(said["TYPE"]) == len(said["SIZE"]) or "" in types:
        raise PointsetError("expected a SIZE, a TYPE and a COUNT for each of the FIELDS of a PCD file")
    if sum(repeats) > MOST_NUMBERS:
        raise PointsetError(f"expected at most {MOST_NUMBERS:,} numbers for each point of a PCD file, by its COUNT")
    if not {*AXES} <= {*names}:
        raise PointsetError(f"expected x, y and z among the FIELDS of a PCD file, found {quoted(' '.join(names))}")
    twice = next((name for name in names if name != PADDING and names.count(name) > 1), None)
    if twice is not None:
        raise PointsetError(f"has two fields called {quoted(twice)} in its header: the name is ambiguous")
    return names, types, repeats


def _packed(names: Sequence[str], types: Sequence[str], repeats: Sequence[int]) -> str | None:
    """The field with a packed color, if there is one and there are no fields of red, green and blue."""
    if any({*group} & {*names} for group in COLORS):
        return None
    fields = zip(names, types, repeats, strict=True)
    return next((name for name, kind, count in fields if name in PACKED_NAMES and (kind[1:], count) == ("4", 1)), None)


def _require_readable(
    names: Sequence[str], repeats: Sequence[int], packed: str | None, features: Sequence[str]
) -> None:
    """Raise a PointsetError unless each column that is read has one number per point."""
    if packed in features:
        raise PointsetError(f"has three colors in one number in its field {packed}: read them as the feature colors")
    several = {name for name, repeat in zip(names, repeats, strict=True) if repeat > 1}
    if several & {*kept_columns(unpacked(names, packed), features)}:
        raise PointsetError("expected a COUNT of 1 for x, y and z, the normals and the features of a PCD file")


def _count(said: dict[str, list[str]]) -> int:
    """The number of points."""
    sizes = {}
    for keyword in ("WIDTH", "HEIGHT", "POINTS"):
        size = whole_number(said[keyword][0]) if len(said[keyword]) == 1 else None
        if size is None:
            raise PointsetError(f"expected a number after {keyword} in the header of a PCD file")
        sizes[keyword] = size
    if sizes["WIDTH"] * sizes["HEIGHT"] != sizes["POINTS"]:
        found = " and ".join(f"{keyword} {size}" for keyword, size in sizes.items())
        raise PointsetError(f"expected POINTS to be WIDTH times HEIGHT in the header of a PCD file, found {found}")
    return sizes["POINTS"]


def _decompressed(
    path: Path,
    offset: int,
    count: int,
    names: Sequence[str],
    types: Sequence[np.dtype],
    features: Sequence[str],
    packed: str | None,
) -> np.ndarray:
    """Read a compressed PCD file: two sizes, then the numbers, field by field, packed by LZF."""
    with path.open("rb") as file:
        file.seek(offset)
        length, size = (int.from_bytes(file.read(4), "little") for _ in range(2))
        content, rest = file.read(min(length, path.stat().st_size)), file.read(PAGE)
    starts = [count * start for start in accumulate((one.itemsize for one in types), initial=0)]
    if len(content) != length or size != starts[-1]:
        raise PointsetError(f"expected {length:,} bytes of {count:,} points, as its header says: it may be cut off")
    if len(rest) == PAGE or rest.strip(b"\0"):
        raise PointsetError(f"expected the end of the file after {count:,} points, found more bytes")
    numbers = unpack_lzf(content, size)
    kept = kept_columns(unpacked(names, packed), features)

    places = {name: place_of(name, names, packed) for name in kept}
    found = {name: np.frombuffer(numbers, types[place], count, starts[place]) for name, place in places.items()}
    with np.errstate(invalid="ignore"):  # a signalling NaN is refused later
        columns = {name: column.astype(np.float64) for name, column in found.items() if names[places[name]] != packed}
    colors = {name: kind for name, kind in color_columns(names, types).items() if name in columns}
    for name, kind in colors.items():
        columns[name] /= full_color([found[one] for one in colors], kind)
    shares = {name: from_packed(column, name) for name, column in found.items() if name not in columns}
    return records(np.stack([(columns | shares)[name] for name in kept], axis=1), kept)
