"""Read points from a file, in pieces or as a whole."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from pointset.configuration import Count, check
from pointset.data.readers.clouds import (
    AXES,
    COLOR_COLUMNS,
    NORMAL_COLUMNS,
    Cloud,
    CloudError,
    Columns,
    feature_columns,
    require_cloud,
    require_finite,
    unit_normals,
)
from pointset.data.readers.elements import pcd_columns, ply_columns
from pointset.data.readers.formats import CLOUD_SUFFIXES, LAS_SUFFIXES, naming, require_shape_file
from pointset.data.readers.las import las_table
from pointset.data.readers.tables import npy_columns, npz_columns, text_columns
from pointset.errors import quoted

PIECE_POINTS = 65_536
"""Default number of points that are read at a time."""
READERS: dict[str, Callable[[Path, Sequence[str]], Columns]] = {
    ".npy": npy_columns,
    ".npz": npz_columns,
    ".ply": ply_columns,
    ".pcd": pcd_columns,
}
"""By suffix; all others but LAS are text."""


@dataclass(frozen=True, eq=False)
class Scan:
    """A file of points that can be read several times; every call starts a new pass.

    Example:
        >>> np.save("scan.npy", rng.normal(size=(1000, 3)))
        >>> scan = pointset.data.open_scan("scan.npy", piece=400)
        >>> scan.count, [len(piece) for piece in scan()]
        (1000, [400, 400, 200])
    """

    path: Path
    """Path of the file."""
    names: tuple[str, ...]
    """Names of all columns of the file."""
    count: int
    """Number of points in the file, with those that have no position."""
    rows: Callable[[slice], Columns]
    """Reads all columns of some points."""
    piece: int = PIECE_POINTS
    """Points that are read at a time."""
    features: tuple[str, ...] = ()
    """Features that follow the coordinates of each point."""
    bytes: int = 0
    """Size of the file when it was opened."""

    def __call__(self) -> Iterator[np.ndarray]:
        """Iterate over pieces [n_i, 3 + features] in the file's order, units and precision: float32 or float64.

        Points without a position (nan) are left out.

        Raises:
            CloudError: a feature is not finite, or a normal has length 0.
        """
        place = self.columns.index(NORMAL_COLUMNS[0]) if "normals" in self.features else None
        for piece in self.pieces(self.columns):
            if place is not None:
                with naming(self.path, CloudError):
                    piece[:, place : place + 3] = unit_normals(piece[:, place : place + 3])
            yield piece

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the file with the coordinates and the features."""
        return AXES + tuple(name for feature in self.features for name in feature_columns(feature, self.names))

    def pieces(self, columns: Sequence[str]) -> Iterator[np.ndarray]:
        """Iterate over pieces [n_i, columns] of these columns, the first of which are `AXES`."""
        left_out = 0
        with naming(self.path, CloudError):
            for start in range(0, self.count, self.piece):
                if self.path.stat().st_size < self.bytes:  # a memory map beyond the end would end the process
                    raise CloudError("became shorter while it was read: read it again when it is complete")
                table = self._table(columns, slice(start, start + self.piece))
                placed = np.isfinite(table[:, :3]).all(axis=1)
                rows = table if placed.all() else table[placed]
                left_out += len(table) - len(rows)
                require_finite(rows, start)
                if len(rows):
                    yield rows
            if left_out == self.count:
                raise CloudError(f"none of its {self.count:,} points has a position that is finite")
        if left_out:
            message = f"{self.path}: {left_out:,} of {self.count:,} points have no position and were left out"
            warnings.warn(message, stacklevel=2)

    def _table(self, columns: Sequence[str], chosen: slice) -> np.ndarray:
        """Columns of some points, with integer colors as fractions; float32 if it holds all numbers, else float64."""
        rows = self.rows(chosen)
        types = [rows[name].dtype for name in columns]
        colors = {name for group in (*COLOR_COLUMNS, ("colors",)) if {*group} <= {*columns} for name in group}
        single = all(kind.kind == "f" and kind.itemsize <= 4 for kind in types)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            table = np.stack([rows[name] for name in columns], axis=1)
            table = table.astype(np.float32 if single else np.float64, copy=False)
        for index, (name, kind) in enumerate(zip(columns, types, strict=True)):
            if kind.kind in "iu" and (name in colors or name.startswith("colors ")):
                most = 65535 if kind.itemsize == 2 else 255
                table[:, index] /= most
                if table[:, index].min() < 0 or table[:, index].max() > 1:
                    raise CloudError(
                        f"has colors in whole numbers below 0 or above {most}: save them as fractions to 1"
                    )
        return table


def open_scan(path: str | Path, *, piece: int = PIECE_POINTS, features: Sequence[str] = ()) -> Scan:
    """Open a file of points that is read in pieces; binary files are only checked now, not read.

    Points without a position (nan) are left out when the file is read, with a warning.

    `.npy` holds an array [n, 3], [n, 6] (with normals) or with further columns, which are read only if they are wanted
    as features; or records with fields x, y and z. `.npz` holds one such array, or one called "points" and optionally
    one called "normals", both [n, 3]. `.ply` must have no faces. `.xyz`, `.txt`, `.csv`, `.pts`, `.xyzn`, `.xyzrgb`,
    `.asc` and `.tsv` have a point per line, with numbers separated by blanks, commas or semicolons; a comma is not a
    decimal point. The number of points or the names of the columns may come first, and comments after `#` or `//`.

    `.las` and `.laz` (laspy; `pip install 'pointset-learn[las]'`) have the fields that laspy names, such as
    return_number and classification, and an intensity from 0 to 1; colors have 16 bits, or 8 if all are below 256.

    Files must have exactly the lines or bytes that the header announces (zeros may follow in binary ones). Binary
    files, LAS and LAZ too, may be larger than the memory; text, `.npz` and compressed `.pcd` files are read into it.

    Args:
        path: the file.
        piece: points that are read at a time.
        features: features beside the coordinates of each point, in this order: "normals", scaled to unit length;
            "colors", scaled to the range from 0 to 1 if they are integers (the full color of types of 16 bits is 65535,
            of others 255) or packed in a PCD file's field rgb; "columns", the further columns of files without names;
            or the name of a field, or of an array [n] or [n, f] of an `.npz` file.

    Returns:
        The scan, which reads the file when it is called.

    Raises:
        CloudError: the file is missing, of another kind, empty, truncated, damaged or too long, has no x, y and z,
            lacks a feature, or has a word that is not a number.

    Example:
        >>> np.save("scan.npy", rng.normal(size=(1000, 3)))
        >>> pointset.data.open_scan("scan.npy").count
        1000
    """
    check("piece", piece, Count)
    path, features = Path(path), tuple(features)
    suffix = path.suffix.lower()
    with naming(path, CloudError):
        require_shape_file(path, CLOUD_SUFFIXES)
        if suffix in LAS_SUFFIXES:
            names, count, rows = las_table(path, features)
        else:
            columns = READERS.get(suffix, text_columns)(path, features)
            names, count, rows = tuple(columns), len(columns["x"]), partial(_rows, columns)
        if not count:
            raise CloudError("expected a point cloud, found no point")
        scan = Scan(path, names, count, rows, piece, features, path.stat().st_size)
        scan.columns  # noqa: B018 - raises if a feature is missing
        return scan


def _rows(columns: Columns, chosen: slice) -> Columns:
    return {name: column[chosen] for name, column in columns.items()}


def read_cloud(
    path: str | Path, *, normals: bool = False, features: Sequence[str] = (), labels: str | None = None
) -> Cloud:
    r"""Read a point cloud as a whole; see `open_scan` for the file formats.

    Args:
        path: the file.
        normals: read the normals too.
        features: other features to read; see `open_scan`.
        labels: name of a column with a whole number for each point, such as "label" or the "classification" of LAS.

    Returns:
        Points [n, 3] in the file's units and axes, with the wanted normals, features and labels. A cloud far from the
        origin (UTM) is moved by its `corner` in float64, before it is rounded to float32.

    Warns:
        UserWarning: points have no position, and are left out.

    Raises:
        CloudError: as for `open_scan`, or a feature is not finite, float32 cannot represent the cloud, all its points
            are at one place, or it has no normals, or a label that is not a whole number.

    Example:
        >>> Path("three.xyz").write_text("0 0 0\n1 0 0\n0 1 0\n")
        18
        >>> pointset.data.read_cloud("three.xyz").points
        array([[0., 0., 0.],
               [1., 0., 0.],
               [0., 1., 0.]], dtype=float32)
    """
    scan = open_scan(path, features=[*["normals"] * normals, *features])
    with naming(scan.path, CloudError):
        last = () if labels is None else feature_columns(labels, scan.names)
        table = np.concatenate([*scan.pieces((*scan.columns, *last))])
        start, end = len(AXES) + len(NORMAL_COLUMNS) * normals, len(scan.columns)
        cloud = require_cloud(table[:, :start], table[:, start:end] if features else None)
        return cloud if labels is None else replace(cloud, labels=_whole_numbers(table[:, end:], labels))


def _whole_numbers(table: np.ndarray, name: str) -> np.ndarray:
    """A column of whole numbers [n, 1] as int64 [n]."""
    if table.shape[1] != 1:
        raise CloudError(f"has {table.shape[1]} columns {quoted(name)}, and labels are one whole number for each point")
    with np.errstate(invalid="ignore"):
        numbers = table[:, 0].astype(np.int64)
    if (numbers != table[:, 0]).any():
        row = int((numbers != table[:, 0]).argmax())
        raise CloudError(f"point {row} has the label {table[row, 0]:g} in {quoted(name)}: labels are whole numbers")
    return numbers
