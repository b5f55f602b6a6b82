"""Reading point clouds in the layout of ModelNet40's HDF5 release.

A folder holds `shape_names.txt` (one class per line), `train_files.txt` and `test_files.txt`, and the files that those
two list, each with `data` float [N, P, 3] and `label` [N, 1].
"""

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.pool import AS_RELEASED, Pool
from pointset.errors import PointsetError

SHAPE_NAMES = "shape_names.txt"


def is_hdf5_folder(folder: Path) -> bool:
    """Whether a folder has a list of classes, or of files."""
    return (folder / SHAPE_NAMES).is_file() or any(folder.glob("*_files.txt"))


def read_hdf5_folder(folder: Path, split: str) -> Pool:
    """Read one split; clouds are named by file and row, such as "ply_data_train0/17".

    The lists of files hold paths of the authors' machine, so only their base names are used.

    Raises:
        PointsetError: a list, a listed file or a key in it is missing or wrong.
    """
    classes = _lines(folder / SHAPE_NAMES, "the list of classes")
    _require_apart(folder)
    parts = [read_hdf5_file(folder / name, len(classes)) for name in _listed(folder, split)]
    sizes = {points.shape[1] for points, _, _ in parts}
    if len(sizes) > 1:
        raise PointsetError(f"{folder}: its {split} files hold clouds of different sizes: {sorted(sizes)}")
    points, labels, names = zip(*parts, strict=True)
    return Pool(
        np.concatenate(points), [name for part in names for name in part], np.concatenate(labels), classes, AS_RELEASED
    )


def _listed(folder: Path, split: str) -> list[str]:
    lines = _lines(folder / f"{split}_files.txt", f"the list of {split} files")
    return [PurePosixPath(line.replace("\\", "/")).name for line in lines]


def _require_apart(folder: Path) -> None:
    """Refuse a file that is listed twice."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*_files.txt")):
        for name in _listed(folder, path.name.removesuffix("_files.txt")):
            if name in found:
                where = f"twice in {path.name}" if found[name] == path.name else f"in {found[name]} and in {path.name}"
                raise PointsetError(f"{folder}: {name} is listed {where}: list every file once")
            found[name] = path.name


def _lines(path: Path, what: str) -> list[str]:
    if not path.is_file():
        raise PointsetError(f"{path} is missing: it should be {what}, one per line, of the HDF5 release")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PointsetError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise PointsetError(f"{path} is empty: it should be {what}, one per line")
    return lines


def read_hdf5_file(path: Path, classes: int) -> tuple[NDArray[np.float32], NDArray[np.int64], list[str]]:
    """Read the clouds [N, P, 3], labels [N] and names [N] of one file with `data` and `label` in it."""
    import h5py

    if not path.is_file():
        raise PointsetError(f"{path} is listed in {path.parent} but missing: unpack the release again")
    try:
        with h5py.File(path, "r") as file:
            points, labels = _dataset(file, "data", path), _dataset(file, "label", path)
    except OSError as error:
        raise PointsetError(f"{path} cannot be read as HDF5 ({error}): unpack the release again") from error
    points, labels = check_clouds(points, labels, classes, path)
    return points, labels, [f"{path.stem}/{row}" for row in range(len(points))]


def _dataset(file: Any, key: str, path: Path) -> NDArray[Any]:
    if key not in file:
        raise PointsetError(f"{path} has no data set {key!r}: found {', '.join(sorted(file)) or 'nothing'}")
    return np.asarray(file[key])


def check_clouds(
    points: NDArray[Any], labels: NDArray[Any], classes: int, path: Path
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Check the shapes, types and values of clouds [N, P, 3] and labels [N]; returns float32 and int64."""
    if points.ndim != 3 or points.shape[2] != 3 or 0 in points.shape or points.dtype.kind != "f":
        raise PointsetError(f"{path}: 'data' must be floats [N, P, 3], got {points.dtype} {list(points.shape)}")
    if labels.size != len(points) or labels.dtype.kind not in "iu":
        expected = f"integers [{len(points)}, 1]"
        raise PointsetError(f"{path}: 'label' must be {expected}, got {labels.dtype} {list(labels.shape)}")
    labels = labels.reshape(-1).astype(np.int64)
    outside = np.flatnonzero((labels < 0) | (labels >= classes))
    if outside.size:
        row = int(outside[0])
        raise PointsetError(f"{path}: row {row} has label {labels[row]}, but there are only {classes} classes")
    points = points.astype(np.float32, copy=False)
    finite = np.isfinite(points).all(axis=(1, 2))
    if not finite.all():
        raise PointsetError(f"{path}: row {int(np.flatnonzero(~finite)[0])} has a coordinate that is not finite")
    return points, labels
