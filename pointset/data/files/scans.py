"""Scans of any size: points read from a file in pieces, again and again, and never as a whole.

model.stream(normalize_chunks(open_scan("hall.ply"), "unit-sphere"))
"""

import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pointset.data.files.clouds import CloudError
from pointset.data.files.number_table import COMMENT, parse_table
from pointset.data.files.scan_headers import Binary, Text, npy_layout, pcd_layout, ply_layout
from pointset.errors import PointsetError

PIECE = 65_536
"""Points that are read at a time."""
LINES = 65_536

LAYOUTS: dict[str, Callable[[Path], Binary | Text]] = {
    ".npy": npy_layout,
    ".ply": ply_layout,
    ".pcd": pcd_layout,
    ".xyz": lambda path: Text(),
    ".txt": lambda path: Text(),
}
"""How the points of a file are found, by its suffix."""


@dataclass(frozen=True, eq=False)
class Scan:
    """A file of points; every call starts to read them anew: `chunks` for `model.stream`."""

    path: Path
    layout: Binary
    open: Callable[[], AbstractContextManager[BinaryIO]]
    """Where the layout's bytes are: the file, or the numbers of a text."""

    @property
    def count(self) -> int:
        """Number of points."""
        return self.layout.count

    def __call__(self) -> Iterator[np.ndarray]:
        """Pieces [n_i, 3] in the file's order, units and precision: float32 or float64.

        Raises:
            CloudError: a number is not finite, or the file has become shorter; the point is counted from 0.
        """
        with self.open() as file:
            for start in range(0, self.count, PIECE):
                points = self._read(file, start, min(PIECE, self.count - start))
                if not np.isfinite(points).all():
                    row = int(np.flatnonzero(~np.isfinite(points).all(axis=1))[0])
                    found = points[row].tolist()
                    raise CloudError(
                        f"{self.path}: point {start + row} has a number that is not finite, {found}: leave it out"
                    )
                yield points

    def _read(self, file: BinaryIO, start: int, count: int) -> np.ndarray:
        layout, size = self.layout, self.layout.record.itemsize
        if layout.by_column:
            offsets = [layout.offset + (axis * layout.count + start) * size for axis in range(3)]
            columns = [self._numbers(file, offset, count) for offset in offsets]
        else:
            records = self._numbers(file, layout.offset + start * size, count)
            columns = [records[axis] for axis in "xyz"]
        single = all(column.dtype.kind == "f" and column.dtype.itemsize <= 4 for column in columns)
        return np.stack(columns, axis=1).astype(np.float32 if single else np.float64, copy=False)

    def _numbers(self, file: BinaryIO, offset: int, count: int) -> np.ndarray:
        record = self.layout.record
        file.seek(offset)
        content = file.read(count * record.itemsize)
        if len(content) < count * record.itemsize:
            raise CloudError(f"{self.path} has become shorter while it was read: read it again when it is complete")
        return np.frombuffer(content, record)


def open_scan(path: str | Path) -> Scan:
    """Open a file of points to be read in pieces; nothing but its header is read now, or kept later.

    `.npy` holds an array [n, 3] or [n, 6], of which the first three columns are the points; `.ply` has no faces; `.pcd`
    is ascii or binary; `.xyz` and `.txt` have a point per line (see `pointset.data.read_cloud`). The numbers of text
    files are parsed once, now, into an unnamed temporary file of 24 bytes a point.

    Raises:
        CloudError: the file is missing, of another kind, empty, cut off or damaged, or has no x, y and z.
    """
    path = Path(path)
    if path.suffix.lower() not in LAYOUTS:
        raise CloudError(
            f"{path}: a scan that is read in pieces ends in one of {', '.join(LAYOUTS)}, not in "
            f"{path.suffix or 'no suffix'!r}"
        )
    try:
        layout = LAYOUTS[path.suffix.lower()](path)
        scan = _parsed(path, layout) if isinstance(layout, Text) else Scan(path, layout, lambda: path.open("rb"))
        if not scan.count:
            raise CloudError("expected a point cloud, found no point")
        if isinstance(layout, Binary) and path.stat().st_size < layout.end:
            raise CloudError(
                f"expected {layout.end} bytes, as its header says, found {path.stat().st_size}: it is cut off"
            )
    except PointsetError as error:
        raise CloudError(f"{path}: {error}" if not str(error).startswith(str(path)) else str(error)) from error
    except OSError as error:
        raise CloudError(f"{path}: cannot be read: {error.strerror or error}") from error
    return scan


def _parsed(path: Path, layout: Text) -> Scan:
    """The scan of a text file, whose numbers are then in a temporary file."""
    numbers = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the scan
    count = 0
    try:
        for points in _tables(path, layout):
            numbers.write(np.ascontiguousarray(points).tobytes())
            count += len(points)
    except BaseException:
        numbers.close()
        raise
    if layout.count is not None and count != layout.count:
        numbers.close()
        raise CloudError(f"expected {layout.count} points, as its header says, found {count}: it may be cut off")
    record = np.dtype([(axis, np.float64) for axis in "xyz"])
    scan = Scan(path, Binary(count, 0, record), lambda: nullcontext(numbers))
    weakref.finalize(scan, numbers.close)
    return scan


def _tables(path: Path, layout: Text) -> Iterator[np.ndarray]:
    """Points [n, 3] float64 of a few lines at a time."""
    with path.open("rb") as file:
        file.seek(layout.offset)
        for _ in islice(file, layout.skipped):
            pass
        line, widths, left = layout.first_line + layout.skipped, layout.widths, layout.count
        while lines := list(islice(file, min(LINES, left) if layout.more and left is not None else LINES)):
            content = b"".join(lines)
            if COMMENT.sub(b"", content).strip():
                table = parse_table(path, content, widths=widths, first_line=line)
                yield table[:, layout.columns]
                widths = (table.shape[1],)
                left = None if left is None else left - len(table)
            line += len(lines)
