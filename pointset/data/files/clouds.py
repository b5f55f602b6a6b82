"""Reading one point cloud from a file: .npy, .npz, .ply, .pcd, .xyz or .txt."""

import zipfile
import zlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.files.file_kinds import CLOUD_SUFFIXES, has_faces
from pointset.data.files.float32 import float32_fault
from pointset.data.files.number_table import parse_table
from pointset.data.files.open3d_import import import_open3d
from pointset.errors import PointsetError

POINT_KEYS = ("points", "pos", "xyz", "vertices", "data")
NORMAL_KEYS = ("normals", "normal")
"""What the arrays of an .npz file may be called."""


class CloudError(PointsetError, ValueError):
    """A file without a point cloud that can be used; the message names the file and, where it can, the line."""


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points in space."""

    points: np.ndarray
    """float32 [n, 3], finite, in the file's own units and axes."""
    normals: np.ndarray | None = None
    """float32 [n, 3] of length 1, if they were asked for."""


def read_cloud(path: str | Path, *, normals: bool = False) -> Cloud:
    """Read one point cloud; the suffix says how.

    `.xyz` and `.txt` have a point per line, `x y z` or `x y z nx ny nz`, separated by blanks or commas; what follows
    `#` or `//` is a comment. `.npy` holds the same columns as an array [n, 3] or [n, 6]; `.npz` one such array, or one
    called "points" and perhaps one called "normals". `.ply` must have no faces.

    Args:
        path: the file.
        normals: read the normals too.

    Raises:
        CloudError: the file is missing, of an unknown kind, empty or damaged, has other columns than these, holds a
            number that is not finite, or has no normals though they are asked for.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in CLOUD_SUFFIXES:
        known = ", ".join(sorted(CLOUD_SUFFIXES))
        raise CloudError(f"{path}: a point cloud's file ends in one of {known}, not in {path.suffix or 'no suffix'!r}")
    try:
        columns = _READERS[suffix](path)
        return require_cloud(columns, normals)
    except PointsetError as error:
        raise CloudError(f"{path}: {error}" if not str(error).startswith(str(path)) else str(error)) from error
    except OSError as error:
        raise CloudError(f"{path}: cannot be read: {error.strerror or error}") from error


def require_cloud(columns: np.ndarray, normals: bool) -> Cloud:
    """A cloud from an array [n, 3] or, with normals, [n, 6].

    Raises:
        CloudError: it is another array, or one that no model can use.
    """
    if columns.ndim != 2 or columns.shape[1] not in (3, 6) or columns.dtype.kind not in "fiu":
        raise CloudError(f"expected numbers [n, 3] or [n, 6], found {columns.dtype} {list(columns.shape)}")
    if not len(columns):
        raise CloudError("expected a point cloud, found no point")
    columns = columns.astype(np.float64, copy=False)
    finite = np.isfinite(columns).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        raise CloudError(f"point {row} has a number that is not finite: {columns[row].tolist()}")
    fault = float32_fault(columns[:, :3].min(axis=0), columns[:, :3].max(axis=0))
    if fault:
        raise CloudError(f"the cloud {fault}")
    points = np.ascontiguousarray(columns[:, :3], np.float32)
    return Cloud(points, _directions(columns[:, 3:]) if normals else None)


def _directions(vectors: np.ndarray) -> np.ndarray:
    if not vectors.shape[1]:
        raise CloudError("normals were asked for, and the file has none: load the data without normals")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise CloudError(f"point {int(np.flatnonzero(lengths == 0)[0])} has a normal without length")
    return np.ascontiguousarray(vectors / lengths, np.float32)


def _read_text(path: Path) -> np.ndarray:
    return parse_table(path, path.read_bytes(), widths=(3, 6))


def _read_npy(path: Path) -> np.ndarray:
    found = _load_numpy(path)
    if not isinstance(found, np.ndarray):
        raise CloudError("expected one array, found several: call the file .npz")
    return found


def _read_npz(path: Path) -> np.ndarray:
    found = _load_numpy(path)
    if isinstance(found, np.ndarray):
        raise CloudError("expected an archive of arrays, found one array: call the file .npy")
    names = list(found)
    key = next((key for key in POINT_KEYS if key in names), names[0] if len(names) == 1 else None)
    if key is None:
        raise CloudError(f"expected an array called {' or '.join(POINT_KEYS)}, found {', '.join(names) or 'none'}")
    points = _array_of(found, key)
    normal_key = next((key for key in NORMAL_KEYS if key in names), None)
    if normal_key is None:
        return points
    normals = _array_of(found, normal_key)
    if points.shape != normals.shape or points.ndim != 2:
        raise CloudError(f"expected as many normals as points, found {list(normals.shape)} beside {list(points.shape)}")
    return np.hstack([points, normals])


def _load_numpy(path: Path) -> Any:
    try:
        return np.load(BytesIO(path.read_bytes()), allow_pickle=False)
    except _UNREADABLE as error:  # pickled objects, which could run anything, are never read
        raise CloudError(f"holds no array of numbers that can be read: {_one_line(error)}") from error


def _array_of(archive: Any, key: str) -> np.ndarray:
    try:
        return np.asarray(archive[key])
    except _UNREADABLE as error:
        raise CloudError(f"{key} is no array of numbers that can be read: {_one_line(error)}") from error


def _read_ply(path: Path) -> np.ndarray:
    import trimesh

    if has_faces(path):
        raise CloudError("is a mesh, among point clouds: keep meshes and clouds in two folders")
    try:
        loaded = trimesh.load(path, process=False)
        vertex = loaded.metadata["_ply_raw"]["vertex"]["data"]
        fields = vertex if isinstance(vertex, dict) else {name: vertex[name] for name in vertex.dtype.names}
    except Exception as error:  # trimesh fails in a different way for each kind of broken file
        raise CloudError(f"cannot be read as a PLY point cloud: {_one_line(error)}") from error
    return _columns_of(fields, ("nx", "ny", "nz"))


def _read_pcd(path: Path) -> np.ndarray:
    content = path.read_bytes()
    head, _, body = content.partition(b"\nDATA ")
    kind, _, rest = body.partition(b"\n")
    header = {line.split()[0]: line.split()[1:] for line in head.splitlines() if line.split()[1:]}
    fields, counts = header.get(b"FIELDS", []), header.get(b"POINTS", [])
    if not {b"x", b"y", b"z"} <= set(fields) or len(counts) != 1 or not counts[0].isdigit():
        raise CloudError("expected the header of a PCD file with fields x, y, z and a number of points")
    expected = int(counts[0])
    if kind.strip() == b"ascii":
        table = parse_table(path, rest, widths=(len(fields),), first_line=head.count(b"\n") + 3)
        found = _columns_of(
            {name.decode(errors="replace"): table[:, i] for i, name in enumerate(fields)},
            ("normal_x", "normal_y", "normal_z"),
        )
    else:
        found = _read_with_open3d(path)
    if len(found) != expected:
        raise CloudError(f"expected {expected} points, as its header says, found {len(found)}: it may be cut off")
    return found


def _read_with_open3d(path: Path) -> np.ndarray:
    open3d = import_open3d()
    with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):
        cloud = open3d.io.read_point_cloud(str(path), format="pcd")
    points = np.asarray(cloud.points)
    return np.hstack([points, np.asarray(cloud.normals)]) if cloud.has_normals() else points


def _columns_of(fields: dict[str, np.ndarray], normals: tuple[str, str, str]) -> np.ndarray:
    names = ("x", "y", "z", *normals) if all(name in fields for name in normals) else ("x", "y", "z")
    missing = [name for name in names if name not in fields]
    if missing:
        raise CloudError(f"expected x, y and z of every point, found {', '.join(fields) or 'nothing'}")
    return np.stack([np.asarray(fields[name], np.float64).ravel() for name in names], axis=1)


def _one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


_UNREADABLE = (ValueError, EOFError, zipfile.BadZipFile, zlib.error)
"""What numpy raises for files that are damaged, or that hold Python objects."""

_READERS = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".ply": _read_ply,
    ".pcd": _read_pcd,
    ".xyz": _read_text,
    ".txt": _read_text,
}
