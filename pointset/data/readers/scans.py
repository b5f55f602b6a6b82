"""Read points from a file, in pieces or as a whole.

Example: `model.stream(normalize_chunks(open_scan("hall.ply"), "unit-sphere"))`.
"""

import functools
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from pointset.configuration import Count
from pointset.data.readers.clouds import Cloud, CloudError, require_cloud, require_finite, unit_normals
from pointset.data.readers.color_shares import full_color, is_wide
from pointset.data.readers.formats import CLOUD_SUFFIXES
from pointset.data.readers.free_text import FreeText
from pointset.data.readers.layouts import AXES, NORMALS, Binary, feature_columns, records
from pointset.data.readers.numpy_arrays import npy_layout, npz_points
from pointset.data.readers.paths import path_fault
from pointset.data.readers.pcd import pcd_layout
from pointset.data.readers.ply_clouds import ply_layout
from pointset.data.readers.typed_text import TypedText
from pointset.errors import PointsetError
from pointset.inputs import takes

PIECE = 65_536
"""Default number of points, or lines of text, that are read at a time."""
MOST_BYTES = 1 << 26
"""Most bytes of a piece, for large records."""
SPOOL = 1 << 18
"""Bytes of a text file's numbers that are kept in memory; larger files go to a temporary file."""


@dataclass(frozen=True, eq=False)
class Scan:
    """A file of points that can be read several times, as `chunks` for `model.stream`; every call starts a new pass.

    Example:
        >>> np.save("scan.npy", rng.normal(size=(1000, 3)))
        >>> scan = pointset.data.open_scan("scan.npy", piece=400)
        >>> scan.count, [len(piece) for piece in scan()]
        (1000, [400, 400, 200])
    """

    path: Path
    """Path of the file."""
    layout: Binary
    """Layout of its numbers."""
    open: Callable[[], AbstractContextManager[BinaryIO]]
    """Opens the file, or the binary numbers that were parsed from it."""
    piece: int = PIECE
    """Points that are read at a time."""
    features: tuple[str, ...] = ()
    """Features that follow the coordinates of each point."""

    @property
    def count(self) -> int:
        """Number of points."""
        return self.layout.count

    def __call__(self) -> Iterator[np.ndarray]:
        """Iterate over pieces [n_i, 3 + features] in the file's order, units and precision: float32 or float64.

        Raises:
            CloudError: a number is not finite, a normal has length 0, or the file has become shorter; the message
                counts points from 0.
        """
        pieces = self.pieces(self.columns)
        return self._with_unit_normals(pieces) if "normals" in self.features else pieces

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file with the coordinates and the features."""
        names = self.layout.by_column or self.layout.record.names or ()
        return AXES + tuple(name for one in self.features for name in feature_columns(one, names))

    def _with_unit_normals(self, pieces: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        place = self.columns.index(NORMALS[0])
        for piece in pieces:
            with _naming(self.path):
                piece[:, place : place + 3] = unit_normals(piece[:, place : place + 3])
            yield piece

    def pieces(self, columns: Sequence[str]) -> Iterator[np.ndarray]:
        """Iterate over pieces [n_i, columns] of these columns."""
        with _naming(self.path), self.open() as file:
            for start, count in self._spans():
                numbers = self._read(file, columns, start, count)
                require_finite(numbers, start)
                yield numbers

    def whole(self, columns: Sequence[str]) -> np.ndarray:
        """These columns of all points [count, columns]; allocated first, so that lack of memory is noticed early."""
        table, start = np.empty((0, 0)), 0
        for piece in self.pieces(columns):
            if not start:
                table = np.empty((self.count, len(columns)), piece.dtype)
            table[start : start + len(piece)] = piece
            start += len(piece)
        return table

    def _spans(self) -> Iterator[tuple[int, int]]:
        """The first point and the number of points of each piece."""
        piece = max(1, min(self.piece, MOST_BYTES // self.layout.record.itemsize))
        return ((start, min(piece, self.count - start)) for start in range(0, self.count, piece))

    @functools.cached_property
    def _full_color(self) -> int:
        """The full color of wide integer columns; the whole file is read for it, so that all pieces agree."""
        kinds = {name: kind for name, kind in self.layout.colors.items() if is_wide(kind)}
        wide = [name for name in kinds if name in (self.layout.record.names or ())]
        with self.open() as file:
            read = (self._columns(file, wide, start, count) for start, count in self._spans())
            ends = [np.array([column.min(), column.max()]) for columns in read for column in columns]
        return full_color(ends, kinds[wide[0]])

    def _read(self, file: BinaryIO, columns: Sequence[str], start: int, count: int) -> np.ndarray:
        numbers = self._columns(file, columns, start, count)
        found = [self._shares(column, name) for column, name in zip(numbers, columns, strict=True)]
        single = all(column.dtype.kind == "f" and column.dtype.itemsize <= 4 for column in found)
        with np.errstate(invalid="ignore"):  # a signalling NaN is refused later
            return np.stack(found, axis=1).astype(np.float32 if single else np.float64, copy=False)

    def _shares(self, column: np.ndarray, name: str) -> np.ndarray:
        """A column, with integer colors converted to fractions of the full color."""
        kind = self.layout.colors.get(name)
        return column if kind is None else column / (self._full_color if is_wide(kind) else full_color([], kind))

    def _columns(self, file: BinaryIO, columns: Sequence[str], start: int, count: int) -> list[np.ndarray]:
        """The unconverted numbers of the file."""
        layout, size = self.layout, self.layout.record.itemsize
        if layout.by_column:
            places = [layout.by_column.index(name) * layout.count + start for name in columns]
            return [self._numbers(file, layout.offset + place * size, count) for place in places]
        records = self._numbers(file, layout.offset + start * size, count)
        return [records[name] for name in columns]

    def _numbers(self, file: BinaryIO, offset: int, count: int) -> np.ndarray:
        record = self.layout.record
        file.seek(offset)
        content = file.read(count * record.itemsize)
        if len(content) < count * record.itemsize:
            raise CloudError("became shorter while it was read: read it again when it is complete")
        return np.frombuffer(content, record)


@takes(path=str | Path, piece=Count, features=Sequence[str])
def open_scan(path: str | Path, *, piece: int = PIECE, features: Sequence[str] = ()) -> Scan:
    """Open a file of points that is read in pieces; binary files are only checked now, not read.

    `.npy` holds an array [n, 3] or [n, 6], with the points in the first three columns. `.npz` holds one such array, or
    one called "points" and optionally one called "normals", both [n, 3]. `.ply` must have no faces. `.xyz` and `.txt`
    have a point per line, `x y z` or `x y z nx ny nz`, with comments after `#` or `//`; all numbers are separated by
    blanks, by commas or by semicolons, and a comma is not a decimal point.

    Files must be complete and unambiguous: they have exactly the lines or bytes that the header announces (zeros may
    follow in `.pcd`), and every number of a text, even of a skipped column, fits the type in the header. Integers
    beyond 2^53 are rounded to float64.

    Text is parsed once, by this call, into a temporary file of 24 or 48 bytes per point. `.npz` and compressed `.pcd`
    files are unpacked by this call and stay in memory.

    Args:
        path: the file.
        piece: points that are read at a time.
        features: features beside the coordinates of each point, in this order: "normals", scaled to unit length;
            "colors", scaled to the range from 0 to 1 if they are integers or packed in a PCD file's field rgb (the full
            color of types with more than 16 bits is 255 if no number of the file exceeds it, else 65535); "columns",
            the further columns of files without names; or the name of a field, or of an array [n] or [n, f] of an
            `.npz` file.

    Returns:
        The scan, which reads the file when it is called.

    Raises:
        CloudError: the file is missing, of another kind, empty, truncated, damaged or too long, has no x, y and z,
            lacks a feature, or has a word that is not a number.

    Example:
        >>> np.save("scan.npy", rng.normal(size=(1000, 3)))
        >>> model.eval().stream(pointset.data.open_scan("scan.npy")).shape
        torch.Size([1, 2])
    """
    path = Path(path)
    if path.suffix.lower() not in CLOUD_SUFFIXES:
        if fault := path_fault(path):
            raise CloudError(f"{path}: {fault}")
        known = ", ".join(sorted(CLOUD_SUFFIXES))
        raise CloudError(f"{path}: a point cloud's file ends in one of {known}, not in {path.suffix or 'no suffix'!r}")
    with _naming(path):
        if fault := path_fault(path):
            raise CloudError(fault)
        features = tuple(features)
        layout = _layout(path, features)
        if isinstance(layout, TypedText | FreeText):
            scan = _parse_text(path, layout, piece, features)
        elif isinstance(layout, np.ndarray):
            content = layout.tobytes()
            scan = Scan(path, Binary(len(layout), 0, layout.dtype), lambda: BytesIO(content), piece, features)
        else:
            scan = Scan(path, layout, lambda: path.open("rb"), piece, features)
            _require_whole(path, layout)
        if not scan.count:
            raise CloudError("expected a point cloud, found no point")
        scan.columns  # noqa: B018 - raises if a feature is missing
    return scan


@takes(path=str | Path, normals=bool, features=Sequence[str])
def read_cloud(path: str | Path, *, normals: bool = False, features: Sequence[str] = ()) -> Cloud:
    r"""Read a point cloud as a whole; see `open_scan` for the file formats.

    Args:
        path: the file.
        normals: read the normals too.
        features: other features to read; see `open_scan`.

    Returns:
        Points [n, 3] in the file's units and axes, with the wanted normals and features.

    Raises:
        CloudError: as for `open_scan`, or a number is not finite, float32 cannot represent the cloud, or it has no
            normals.

    Example:
        >>> Path("three.xyz").write_text("0 0 0\n1 0 0\n0 1 0\n")
        18
        >>> pointset.data.read_cloud("three.xyz").points
        array([[0., 0., 0.],
               [1., 0., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    scan = open_scan(path, features=("normals", *features) if normals and features else features)
    columns = AXES + NORMALS if normals and scan.layout.has_normals else AXES
    further = scan.columns[len(AXES) + len(NORMALS) * normals :] if features else ()
    with _naming(scan.path):
        table = scan.whole((*columns, *further))
        return require_cloud(table[:, : len(columns)], normals, table[:, len(columns) :] if features else None)


def _layout(path: Path, features: tuple[str, ...]) -> Binary | TypedText | FreeText | np.ndarray:
    """The layout of a file with one of `CLOUD_SUFFIXES`, or its points if they are compressed."""
    readers: dict[str, Callable[[Path, tuple[str, ...]], Binary | TypedText | np.ndarray]]
    readers = {".npy": npy_layout, ".npz": npz_points, ".ply": ply_layout, ".pcd": pcd_layout}
    reader = readers.get(path.suffix.lower())
    return reader(path, features) if reader else FreeText(features)


def _require_whole(path: Path, layout: Binary) -> None:
    """Raise a CloudError unless the file has exactly the bytes of its header, plus zeros if the format allows them."""
    end, found = layout.end + layout.after, path.stat().st_size
    if found < end:
        raise CloudError(f"expected {end:,} bytes, as its header says, found {found:,}: it is cut off")
    if found > end:
        with path.open("rb") as file:
            file.seek(end)
            rest = file.read(layout.padding + 1)
        if len(rest) > layout.padding or rest.strip(b"\0"):
            raise CloudError(f"expected {end:,} bytes, as its header says, found {found:,}: its header is damaged")


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Convert errors to CloudErrors that begin with the file's name."""
    try:
        yield
    except PointsetError as error:
        message = str(error)
        if not message.startswith(str(path)):
            message = f"{path}{',' if message.startswith('line ') else ':'} {message}"
        raise CloudError(message) from error
    except OSError as error:
        raise CloudError(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise CloudError(f"{path}: does not fit into memory: read it in pieces, with open_scan") from error


def _parse_text(path: Path, layout: TypedText | FreeText, piece: int, features: tuple[str, ...]) -> Scan:
    numbers = cast(BinaryIO, tempfile.SpooledTemporaryFile(SPOOL))  # noqa: SIM115 - closed with the scan
    count, record = 0, np.dtype([])
    try:
        with path.open("rb") as file:
            for table in layout.tables(file, piece):
                rows = records(table, layout.kept(table.shape[1]))
                numbers.write(rows.tobytes())
                count, record = count + len(rows), rows.dtype
    except BaseException:
        numbers.close()
        raise
    colors = layout.colors if isinstance(layout, TypedText) else {}
    scan = Scan(path, Binary(count, 0, record, colors=colors), lambda: nullcontext(numbers), piece, features)
    weakref.finalize(scan, numbers.close)
    return scan
