"""Read LAS and LAZ, the formats of laser scanning, by laspy: the fields of points by name, piece by piece."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, Columns, numbered
from pointset.errors import PointsetError

FULL_INTENSITY = 65535
AT_ONCE = 65_536
"""Points that are read at a time to look at their colors."""
LIBRARIES = ("laspy", "lazrs")
VERSION, POINTS, VLRS, FORMAT, EVLRS = 25, 96, 100, 104, 243
"""Offsets in the header, of the minor version, the offset of the points, the numbers of records, and the format."""
COMPRESSED, UNKNOWN = 0x80, 2**64 - 1
"""The bit of LAZ in the format, and a table of chunks whose place is only known at the end of the file."""
RAW = {"X", "Y", "Z"}
"""Fields before scale and offset of the header are applied."""


def las_table(path: Path, features: Sequence[str] = ()) -> tuple[tuple[str, ...], int, Callable[[slice], Columns]]:
    """Names of columns, number of points, and a reader of rows of a LAS or LAZ file, which must not be cut off."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise PointsetError(f"LAS files need {' and '.join(missing)}: run `pip install 'pointset-learn[las]'`")
    _require_counts(path)
    with _open(path) as reader:
        header, count = reader.header, reader.header.point_count
        announced, size = header.offset_to_point_data + count * header.point_format.size, path.stat().st_size
        if announced > size and not header.are_points_compressed:
            raise PointsetError(f"has {size:,} bytes, and its header says {announced:,}: it is cut off or damaged")
        first = _named(reader.read_points(min(count, 1)))  # of a LAZ file, its table of chunks at the end

    short = "colors" in features and {*COLOR_COLUMNS[0]} <= {*first} and _has_short_colors(path, count)

    def rows(chosen: slice) -> Columns:
        start, stop, _ = chosen.indices(count)
        columns = _read(path, start, stop)
        return columns | {name: columns[name].astype(np.uint8) for name in COLOR_COLUMNS[0] if short}

    return tuple(first), count, rows


def _has_short_colors(path: Path, count: int) -> bool:
    """True if all colors have 8 bits, as many programs write them."""
    for start in range(0, count, AT_ONCE):
        piece = _read(path, start, min(start + AT_ONCE, count))
        if any(piece[name].max() > 255 for name in COLOR_COLUMNS[0]):
            return False
    return True


def _require_counts(path: Path) -> None:
    """Refuse counts that the file cannot have: laspy would read records for hours, or lazrs end the process."""
    size = path.stat().st_size
    with path.open("rb") as file:

        def number(place: int, width: int) -> int:
            file.seek(place)
            return int.from_bytes(file.read(width), "little")

        records = number(VLRS, 4) + (number(EVLRS, 4) if number(VERSION, 1) >= 4 else 0)
        chunks = 0
        if number(FORMAT, 1) & COMPRESSED:
            table = number(number(POINTS, 4), 8)
            table = number(size - 8, 8) if table == UNKNOWN else table
            chunks = number(table + 4, 4) if table < size else size
    if max(54 * records, chunks) > size:
        raise PointsetError("has a header with more records than fit into the file: it is cut off or damaged")


def _open(path: Path) -> Any:
    import laspy

    # The parallel backend makes room for a whole chunk, of a size that damage can make huge.
    return laspy.open(path, laz_backend=laspy.LazBackend.Lazrs)


def _read(path: Path, start: int, stop: int) -> dict[str, np.ndarray]:
    with _open(path) as reader:
        if start:
            reader.seek(start)
        columns = _named(reader.read_points(stop - start))
    if len(columns["x"]) != stop - start:
        raise PointsetError(f"ends after {start + len(columns['x']):,} points: it is cut off or damaged")
    return columns


def _named(record: Any) -> dict[str, np.ndarray]:
    """The columns of some points, those with several numbers numbered."""
    columns = {axis: np.asarray(record[axis], np.float64) for axis in AXES}
    for name in record.point_format.dimension_names:
        if name in RAW:
            continue
        values = np.asarray(record[name])
        values = (values / FULL_INTENSITY).astype(np.float32) if name == "intensity" else values
        table = values[:, None] if values.ndim == 1 else values
        names = [name] if values.ndim == 1 else numbered(name, table.shape[1])
        columns |= dict(zip(names, table.T, strict=True))
    return columns
