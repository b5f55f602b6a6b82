"""Read LAS and LAZ, the formats of laser scanning, by laspy: the fields of points by name, piece by piece."""

from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.clouds import AXES, Columns, numbered
from pointset.errors import PointsetError

FULL_INTENSITY = 65535
LIBRARIES = ("laspy", "lazrs")
RAW = {"X", "Y", "Z"}
"""Fields before scale and offset of the header are applied."""


@dataclass(frozen=True)
class LasColumn:
    """One column of a LAS file, which is read when it is sliced."""

    read: Any
    """Function of a start and a stop that returns the columns between them by name."""
    name: str
    dtype: np.dtype
    count: int

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self.count)
        column: np.ndarray = self.read(start, stop)[self.name]
        return column


def las_columns(path: Path) -> Columns:
    """The columns of a LAS or LAZ file, with its intensity as a fraction; a PointsetError if it is cut off."""
    if missing := [name for name in LIBRARIES if find_spec(name) is None]:
        raise PointsetError(f"LAS files need {' and '.join(missing)}: run `pip install 'pointset-learn[las]'`")
    import laspy

    with laspy.open(path) as reader:
        header, count = reader.header, reader.header.point_count
        announced, size = header.offset_to_point_data + count * header.point_format.size, path.stat().st_size
        if announced > size and not header.are_points_compressed:
            raise PointsetError(f"has {size:,} bytes, and its header says {announced:,}: it is cut off or damaged")
        first = _named(reader.read_points(min(count, 1)))  # of a LAZ file, its table of chunks at the end
    read = lru_cache(maxsize=1)(partial(_read, path))
    columns: dict[str, Any] = {name: LasColumn(read, name, column.dtype, count) for name, column in first.items()}
    return columns


def _read(path: Path, start: int, stop: int) -> dict[str, np.ndarray]:
    import laspy

    with laspy.open(path) as reader:
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
