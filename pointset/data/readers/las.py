"""Read LAS and LAZ, the formats of laser scanning, by laspy."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.readers.clouds import AXES, COLOR_COLUMNS, Columns, numbered
from pointset.data.readers.formats import require_count, warn_of_rest
from pointset.errors import PointsetError

UNCHUNKED = b"\1\0"
"""First bytes of the LASzip record in files of LASzip 1, on which lazrs (0.8) panics."""
COMPRESSED, UNKNOWN = 0x80, 2**64 - 1
"""The bit of the point format for LAZ, and a placeholder for a chunk table offset at the end of the file."""


def las_columns(path: Path, features: Sequence[str] = ()) -> Columns:
    """Return x, y, z and the other fields by their laspy names. A field of several numbers becomes numbered columns."""
    import laspy  # an optional dependency

    whole = path.read_bytes()
    content = np.frombuffer(whole, np.uint8)
    _require_counts(content)
    # The parallel backend would allocate memory for a whole chunk, whose size is huge in some damaged files.
    with laspy.open(io.BytesIO(whole), laz_backend=laspy.LazBackend.Lazrs) as reader:
        header = reader.header
        if not header.are_points_compressed:
            _check_end(path, content, header)
        elif any(vlr.record_data[:2] == UNCHUNKED for vlr in header.vlrs.get("LasZipVlr")):
            raise PointsetError("was packed in one chunk by LASzip 1, which lazrs cannot read: save it again by laszip")
        if not all(header.scales):
            raise PointsetError(f"has a scale of 0 in its header, {header.scales.tolist()}: it is damaged")
        record = reader.read_points(header.point_count)
    require_count(len(record), header.point_count, "points")
    columns = {axis: np.asarray(record[axis], np.float64) for axis in AXES}
    for name in record.point_format.dimension_names:
        values = np.asarray(record[name])
        if name == "intensity":
            columns[name] = (values / 65535).astype(np.float32)
        elif values.ndim > 1:
            columns |= dict(zip(numbered(name, values.shape[1]), values.T, strict=True))
        elif name not in ("X", "Y", "Z"):  # integers, before scale and offset are applied
            columns[name] = values
    colors = [name for name in COLOR_COLUMNS[0] if name in columns]
    if colors and len(record) and max(columns[name].max() for name in colors) <= 255:  # 8 bits, as many programs write
        columns |= {name: columns[name].astype(np.uint8) for name in colors}
    return columns


def _check_end(path: Path, content: np.ndarray, header: Any) -> None:
    """Refuse a number of points that contradicts the size of the file, and warn of other bytes after the points."""
    start, size = header.offset_to_point_data, header.point_format.size
    blocks = (header.start_of_first_evlr, header.start_of_waveform_data_packet_record)
    end = min([block for block in blocks if block > start] + [len(content)])
    require_count(min((end - start) // size, header.point_count), header.point_count, "points")
    rest = content[start + header.point_count * size : end]
    if rest.any() and not len(rest) % size:  # for example after an interrupted scan
        raise PointsetError(f"has {len(rest) // size:,} points more than its header says: it is damaged")
    warn_of_rest(path, rest)


def _require_counts(content: np.ndarray) -> None:
    """Refuse counts that are too high for the file: laspy would run for hours, or lazrs would end the process."""

    def number(start: int, width: int) -> int:
        return int.from_bytes(content[start : start + width].tobytes(), "little")

    size, records, chunks = len(content), number(100, 4), 0
    if number(25, 1) >= 4:  # from version 1.4 on, records may follow the points
        records += number(243, 4)
    if number(104, 1) & COMPRESSED:
        start = number(96, 4)
        table = number(start, 8) if number(start, 8) != UNKNOWN else number(size - 8, 8)
        chunks = number(table + 4, 4) if table < size else size
    if max(54 * records, chunks) > size:
        raise PointsetError("has a header with more records than fit into the file: it is cut off or damaged")
