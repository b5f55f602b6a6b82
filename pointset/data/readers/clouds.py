"""Point clouds as arrays, checks of these arrays, and the names of columns in files."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pointset.errors import REPEATED, PointsetError, described, one_line, quoted

AXES = ("x", "y", "z")
NORMAL_COLUMNS = ("nx", "ny", "nz")
COLOR_COLUMNS = (("red", "green", "blue"), ("r", "g", "b"))
"""Names of the three columns of colors."""
FIELD_ALIASES = {"normal_x": "nx", "normal_y": "ny", "normal_z": "nz"}
_UNIT = re.compile(r"[\[(][^\])]*[\])]$")
_AXIS = re.compile(r"((?:points?|pos|position|coordinates?)(?:_m)?(?:_xyz)?[:_. ])?([xyz]|(?<=[:_. ])[012])")
"""Names of the columns x, y and z, alone or with a prefix, as in ParaView and VeloView."""
Columns = Mapping[str, np.ndarray]
"""Arrays [n] by column name, in the order of the columns in the file."""
DEGREES = 1000
"""If z extends over more than this multiple of the extent in x and y, these are probably degrees of about 100 km."""
FINE_STEPS = 2**16
"""If a shape extends over fewer float32 steps than this, its corner is subtracted before rounding to float32."""


class CloudError(PointsetError, ValueError):
    """A point cloud cannot be used. The message names the file and, if possible, the line."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """A point cloud, with optional normals and features."""

    points: np.ndarray
    """float32 [n, 3], finite, in the file's own units and axes, after `corner` is subtracted."""
    normals: np.ndarray | None = None
    """float32 [n, 3] of length 1, if requested."""
    features: np.ndarray | None = None
    """float32 [n, f], other features of each point, if requested."""
    corner: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Offset subtracted from the coordinates of a cloud far from the origin, where float32 is too coarse."""

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of the cloud, by name."""
        return {name: array for name, array in vars(self).items() if isinstance(array, np.ndarray)}

    def __getitem__(self, rows: np.ndarray) -> "Cloud":
        """Return a cloud of the points that `rows` selects."""
        return Cloud(**{name: array[rows] for name, array in self.arrays.items()}, corner=self.corner)


def require_cloud(columns: np.ndarray, features: np.ndarray | None = None) -> Cloud:
    """Return the cloud with coordinates [n, 3], or coordinates and normals [n, 6], and with optional features [n, f].

    Raises:
        CloudError: an array has a wrong shape or type, or no rows; a number is not finite, or too large for float32;
            all points are at the same place.
    """
    if columns.ndim != 2 or columns.shape[1] not in (3, 6) or columns.dtype.kind not in "fiu":
        raise CloudError(f"expected numbers [n, 3] or [n, 6], found {columns.dtype} {list(columns.shape)}")
    if not len(columns):
        raise CloudError("expected a point cloud, found no point")
    columns = columns.astype(np.float64, copy=False)
    require_finite(columns)
    least, most = columns[:, :3].min(axis=0), columns[:, :3].max(axis=0)
    corner = far_corner(least, most)
    points = in_float32(columns[:, :3] - corner)
    if len(points) > 1 and (points == points[0]).all():
        raise CloudError(f"the cloud has no extent: all its {len(points):,} points are at {points[0].tolist()}")
    across, up = (most - least)[:2].max(), (most - least)[2]
    if np.abs([least[:2], most[:2]]).max() <= 180 and up > DEGREES * across > 0:
        warnings.warn("x and y look like degrees, and z like metres: project clouds to metres first", stacklevel=2)
    normals = unit_normals(columns[:, 3:]) if columns.shape[1] == 6 else None
    if features is not None:
        fits = features.ndim == 2 and len(features) == len(points) and features.shape[1]
        if not fits or features.dtype.kind not in "fiub":
            found = f"{features.dtype} {list(features.shape)}"
            raise CloudError(f"expected features [n, f] of {len(points):,} points, found {found}")
        require_finite(features)
        features = in_float32(features)
    x, y, z = corner.tolist()
    return Cloud(points, normals, features, corner=(x, y, z))


def far_corner(least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return the corner [3] to subtract in float64 from a shape with this bounding box. Near the origin, it is 0."""
    step = float(np.finfo(np.float32).eps) * max(-least.min(), most.max())
    return least if 0 < (most - least).max() < FINE_STEPS * step else np.zeros_like(least)


def in_float32(numbers: np.ndarray, kind: type[PointsetError] = CloudError) -> np.ndarray:
    """Round finite numbers to float32; raise an error of this `kind` if a number is too large."""
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(numbers, np.float32)
    if not np.isfinite(rounded).all():
        raise kind(f"has a number of {np.abs(numbers).max():.3g}, too large for float32: scale it down")
    return rounded


def require_finite(columns: np.ndarray) -> None:
    """Raise a CloudError for the first point with a number that is not finite."""
    finite = np.isfinite(columns).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise CloudError(f"point {row} has a number that is not finite, {columns[row].tolist()}: leave it out")


def unit_normals(vectors: np.ndarray) -> np.ndarray:
    """Return normals [n, 3] at unit length in float32; a CloudError if a length is 0, or if they look like colors."""
    are_whole = len(vectors) and vectors.min() >= 0 and 16 < vectors.max() <= 255 and not (vectors % 1).any()
    if are_whole and np.ptp((vectors**2).sum(axis=1)):  # files without column names often have x y z r g b
        raise CloudError("has whole numbers from 0 to 255 for normals, which look like colors: leave normals out")
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0.0)
    if (largest == 0).any():
        raise CloudError(f"point {int(np.argmin(largest))} has a normal of length 0")
    scaled = vectors / largest  # so that squares do not overflow or underflow
    return np.ascontiguousarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True), np.float32)


def feature_columns(feature: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the column names of a feature: "normals", "colors", "columns" (all without names), or a column's name."""
    several = tuple(name for name in numbered(feature, len(names)) if name in names)
    usual: dict[str, tuple[tuple[str, ...], ...]] = {"normals": (NORMAL_COLUMNS,), "colors": COLOR_COLUMNS}
    similar = tuple(name for name in names if name.lower() == feature.lower())[:1]
    for group in (*usual.get(feature, ()), (feature,), several, similar):
        if group and {*group} <= {*names}:
            return group
    raise PointsetError(f"lacks the feature {quoted(feature)}: its columns are {one_line(', '.join(names), REPEATED)}")


def numbered(feature: str, count: int) -> list[str]:
    """Return names for the `count` columns of a feature."""
    return [f"{feature} {index}" for index in range(count)]


def unnamed_columns(table: np.ndarray, features: Sequence[str]) -> Columns:
    """Name the columns [n, d] of a file without column names: x, y, z, then normals, then further columns.

    Six columns are points with normals, unless "columns" are requested. If there are more columns, the three after z
    are normals only if normals are requested. If no feature is requested, a warning says that the first three columns
    are read as x, y and z. Three or four columns, and unit normals, give no warning. A first column that counts the
    points is left out, with a warning.
    """
    count, width = table.shape
    if width > len(AXES) < count and any(np.array_equal(table[:, 0], start + np.arange(count)) for start in (0, 1)):
        warnings.warn("a first column that counts the points is not taken for x", stacklevel=2)
        table = table[:, 1:]
    width = table.shape[1]
    if width < len(AXES):
        raise PointsetError(f"expected at least 3 numbers for each point, found {width}")
    if width > len(AXES) + 1 and not features:
        lengths = np.linalg.norm(np.asarray(table[:256, 3:6], np.float64), axis=1)
        if width != 6 or not (abs(lengths - 1) < 0.01).all():
            # The message does not name the file, so that Python shows it once for any number of files.
            what = f"the first 3 of {width} columns without names are taken for x, y and z"
            warnings.warn(f"{what}: if that is wrong, add a first line with names of columns", stacklevel=2)
    normals = (width == 6 and "columns" not in features) or (width > 6 and "normals" in features)
    names = [*AXES, *(NORMAL_COLUMNS if normals else ())]
    return dict(zip([*names, *numbered("columns", width - len(names))], table.T, strict=True))


def usual_name(name: str) -> str:
    """Return the usual name of a column: x for X, "x [m]", pos_x or Points:0. Strip blanks from other names."""
    plain = _UNIT.sub("", name.strip().removeprefix("//")).strip().lower()
    if match := _AXIS.fullmatch(plain):
        return match[2].translate(str.maketrans("012", "xyz"))
    short = FIELD_ALIASES.get(plain, plain)
    return short if short in {*NORMAL_COLUMNS, *COLOR_COLUMNS[0], *COLOR_COLUMNS[1]} else name.strip()


def named_columns(names: Sequence[str], columns: Iterable[np.ndarray]) -> Columns:
    """Return the columns by the `usual_name` of their names in a header. The names must include x, y and z."""
    usual = [usual_name(name) for name in names]
    if twice := next((name for name in usual if usual.count(name) > 1), None):
        raise PointsetError(f"has two columns called {quoted(twice)}: the name is ambiguous")
    if not {*AXES} <= {*usual}:
        raise PointsetError(f"expected columns x, y and z, found {quoted(', '.join(names))}")
    return dict(zip(usual, columns, strict=True))


def table_of(cloud: Any, features: Sequence[str] = ()) -> Any:
    """Return coordinates and features [n, 3 + f] of a table with named columns, such as a pandas DataFrame.

    Any other value, including a table whose columns have no names, is returned unchanged.

    Raises:
        PointsetError: the table has no columns x, y and z, or lacks a requested feature.
    """
    names = [*getattr(cloud, "columns", ())] if hasattr(cloud, "to_numpy") else []
    if not names or not all(isinstance(name, str) for name in names):
        return cloud
    columns = named_columns(names, (np.asarray(cloud[name]) for name in names))
    chosen = [*AXES, *(name for feature in features for name in feature_columns(feature, tuple(columns)))]
    return np.stack([columns[name] for name in chosen], axis=1)


def require_table(array: np.ndarray) -> np.ndarray:
    """Return an array of points [n, d]; raise a CloudError if d is below 3, or if the array looks transposed."""
    if array.ndim != 2 or array.shape[1] < 3 or array.dtype.kind not in "fiu":
        several = ": save each cloud as its own file, or pass all to from_arrays" if array.ndim == 3 else ""
        raise CloudError(f"expected numbers [n, 3] or more columns, found {described(array)}{several}")
    if len(array) in (3, 6) and array.shape[1] > 2 * len(array):  # channels first, as convolutions need them
        raise CloudError(f"expected numbers [n, 3], found {described(array)}: it looks transposed, give cloud.T")
    return array
