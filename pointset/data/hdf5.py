"""Reading point clouds in the layout of ModelNet40's HDF5 release.

A folder holds `shape_names.txt` (one class per line), `train_files.txt` and `test_files.txt`, and the files
that those two list: `data` float [N, P, 3] and `label` [N, 1] in each. HDF5 is read once, into memory: it is
an input format only.
"""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError

SHAPE_NAMES = "shape_names.txt"


@dataclass(frozen=True, eq=False)
class Clouds:
    """All clouds of one split."""

    points: NDArray[np.float32]
    """[N, P, 3]."""
    labels: NDArray[np.int64]
    """[N], indices into `classes`."""
    names: list[str]
    """One per cloud and unique: the file and the row, such as "ply_data_train0/17"."""
    classes: list[str]


def is_hdf5_folder(folder: Path) -> bool:
    """Whether a folder looks like the release: its list of classes, or a list of files, is there."""
    return (folder / SHAPE_NAMES).is_file() or any(folder.glob("*_files.txt"))


def read_hdf5_folder(folder: Path, split: str) -> Clouds:
    """Read one split.

    The lists of files hold paths of the machine that the release was made on, so only their base names are
    used.

    Raises:
        PointsetError: a list, a listed file or a key in it is missing, or holds something else than it
            should.
    """
    classes = _lines(folder / SHAPE_NAMES, "the list of classes")
    listed = _lines(folder / f"{split}_files.txt", f"the list of {split} files")
    parts = [_read_file(folder / PurePosixPath(line.replace("\\", "/")).name, len(classes)) for line in listed]
    sizes = {points.shape[1] for points, _, _ in parts}
    if len(sizes) > 1:
        raise PointsetError(f"{folder}: its {split} files hold clouds of different sizes: {sorted(sizes)}")
    points, labels, names = zip(*parts, strict=True)
    return Clouds(np.concatenate(points), np.concatenate(labels), [name for part in names for name in part], classes)


def _lines(path: Path, what: str) -> list[str]:
    if not path.is_file():
        raise PointsetError(f"{path} is missing: it should be {what}, one per line, of the HDF5 release")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        raise PointsetError(f"{path} is empty: it should be {what}, one per line")
    return lines


def _read_file(path: Path, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64], list[str]]:
    import h5py

    if not path.is_file():
        raise PointsetError(f"{path} is listed in {path.parent} but missing: unpack the release again")
    try:
        with h5py.File(path, "r") as file:
            points, labels = _dataset(file, "data", path), _dataset(file, "label", path)
    except OSError as error:
        raise PointsetError(f"{path} cannot be read as HDF5 ({error}): unpack the release again") from error
    points, labels = _checked(points, labels, classes, path)
    return points, labels, [f"{path.stem}/{row}" for row in range(len(points))]


def _dataset(file: Any, key: str, path: Path) -> NDArray[Any]:
    if key not in file:
        raise PointsetError(f"{path} has no data set {key!r}: found {', '.join(sorted(file)) or 'nothing'}")
    return np.asarray(file[key])


def _checked(
    points: NDArray[Any], labels: NDArray[Any], classes: int, path: Path
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if points.ndim != 3 or points.shape[2] != 3 or 0 in points.shape or points.dtype.kind != "f":
        raise PointsetError(f"{path}: 'data' must be floats [N, P, 3], got {points.dtype} {list(points.shape)}")
    if labels.size != len(points) or labels.dtype.kind not in "iu":
        expected = f"integers [{len(points)}, 1]"
        raise PointsetError(f"{path}: 'label' must be {expected}, got {labels.dtype} {list(labels.shape)}")
    labels = labels.reshape(-1).astype(np.int64)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        row = int(outside[0])
        raise PointsetError(
            f"{path}: row {row} has label {labels[row]}, but {SHAPE_NAMES} names only {classes} classes"
        )
    points = points.astype(np.float32, copy=False)
    finite = np.isfinite(points).all(axis=(1, 2))
    if not finite.all():
        raise PointsetError(f"{path}: row {int(np.flatnonzero(~finite)[0])} has a coordinate that is not finite")
    return points, labels
