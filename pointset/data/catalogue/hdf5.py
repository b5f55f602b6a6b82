"""Read point clouds in the layout of ModelNet40's HDF5 release.

A folder holds `shape_names.txt` (one class per line), `train_files.txt` and `test_files.txt`, and the files listed in
these two, each with `data` float [N, P, 3] and `label` [N, 1].

HDF5 detects a changed byte only in data with checksums (`create_dataset(..., fletcher32=True)`), which the releases do
not have; see `pointset.data.catalogue.intact`.
"""

import itertools
import math
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.intact import KnownFiles
from pointset.data.catalogue.released_clouds import Clouds, check_clouds, pool_of_clouds
from pointset.data.pool import Pool
from pointset.errors import REPEATED, PointsetError, one_line, quoted

SHAPE_NAMES = "shape_names.txt"
LONGEST_LIST = 1 << 20
"""Most bytes of a list of classes or files."""
LONGEST_NAME = 4096
"""Most characters of a line in a list: the length of a path."""
LONGEST_FILE_NAME = 255
"""Most bytes of a file name; a longer one fails with another error than a missing file."""
MOST_RATIO = 100
"""Most bytes of an array per byte of its file; a larger shape is damaged, or made to exhaust memory."""


def is_hdf5_folder(folder: Path) -> bool:
    """True if a folder has a list of classes or of files."""
    return (folder / SHAPE_NAMES).is_file() or any(folder.glob("*_files.txt"))


def read_hdf5_folder(folder: Path, split: str, known: KnownFiles | None = None, on_error: str = "raise") -> Pool:
    """Read one split; clouds are named by file and row, such as "ply_data_train0/17".

    The lists hold paths of the authors' machine, so only base names are used. All files are tried before an error.

    Args:
        folder: folder of the release.
        split: "train", "test" or another split with a list of files.
        known: known digests of the files.
        on_error: "raise", or "skip" to leave out files and clouds that cannot be used.

    Raises:
        UnreadableShapesError: listed files, or clouds in them, cannot be used.
        PointsetError: a list is missing or wrong.
    """
    known = known or KnownFiles(folder)
    classes = _classes(folder, known)
    _require_listed_once(folder)
    known.require(_list_of(folder, split))
    parts, failures = list[Clouds](), dict[str, str]()
    for name in _listed(folder, split):
        try:
            parts.append(read_hdf5_file(folder / name, len(classes), known))
        except PointsetError as error:
            failures[name] = str(error)
    return pool_of_clouds(parts, failures, classes, f"{folder}: its {split}", on_error)


def labels_in_hdf5_folder(folder: Path, split: str) -> NDArray[np.int64]:
    """The labels of one split, without files that cannot be read; empty if the split has no list."""
    if not _list_of(folder, split).is_file():
        return np.zeros(0, np.int64)
    return np.concatenate([np.zeros(0, np.int64), *(labels_in_file(folder / name) for name in _listed(folder, split))])


def labels_in_file(path: Path) -> NDArray[np.int64]:
    """The labels of one file; empty if they cannot be read."""
    try:
        (labels,) = _read_arrays(path, "label")
        return labels.reshape(-1).astype(np.int64)
    except (PointsetError, ValueError):
        return np.zeros(0, np.int64)


def _classes(folder: Path, known: KnownFiles) -> list[str]:
    known.require(folder / SHAPE_NAMES)
    classes = _lines(folder / SHAPE_NAMES, "the list of classes")
    twice = [name for name in classes if classes.count(name) > 1] if len(set(classes)) < len(classes) else []
    if twice:
        raise PointsetError(f"{folder / SHAPE_NAMES} names the class {quoted(twice[0])} twice: list every class once")
    return classes


def _list_of(folder: Path, split: str) -> Path:
    return folder / f"{split}_files.txt"


def _listed(folder: Path, split: str) -> list[str]:
    lines = _lines(_list_of(folder, split), f"the list of {split} files")
    return [PurePosixPath(line.replace("\\", "/")).name for line in lines]


def _require_listed_once(folder: Path) -> None:
    """Raise a PointsetError for a file that is listed twice."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*_files.txt")):
        for name in _listed(folder, path.name.removesuffix("_files.txt")):
            if name in found:
                where = f"twice in {path.name}" if found[name] == path.name else f"in {found[name]} and in {path.name}"
                raise PointsetError(f"{folder}: {quoted(name)} is listed {where}: list every file once")
            found[name] = path.name


def _lines(path: Path, what: str) -> list[str]:
    if not path.is_file():
        raise PointsetError(f"{path} is missing: it should be {what}, one per line, of the HDF5 release")
    try:
        if path.stat().st_size > LONGEST_LIST:
            raise PointsetError(f"{path} is too long for {what}: expected a name per line")
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PointsetError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    except OSError as error:
        raise PointsetError(f"{path} cannot be read: {error.strerror or error}") from error
    lines = [line.strip(" \t") for line in re.split("\r\n|\r|\n", text) if line.strip(" \t")]
    if not lines:
        raise PointsetError(f"{path} is empty: it should be {what}, one per line")
    if odd := next((line for line in lines if len(line) > LONGEST_NAME), None):
        raise PointsetError(f"{path} holds {quoted(odd)}, which cannot be a name: it should be {what}, one per line")
    return lines


def read_hdf5_file(path: Path, classes: int, known: KnownFiles, stem: str | None = None) -> Clouds:
    """Read the clouds of one file with `data` and `label` in it; see `check_clouds`."""
    if len(path.name.encode()) > LONGEST_FILE_NAME or not path.is_file():
        raise PointsetError(f"{quoted(path.name)} is listed in {path.parent} but missing: unpack the release again")
    known.require(path)
    points, labels = _read_arrays(path, "data", "label")
    return check_clouds(points, labels, classes, path, stem)


def _read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    import h5py

    try:
        with h5py.File(path, "r") as file:
            return [_read_array(file, key, path) for key in keys]
    except PointsetError:
        raise
    except Exception as error:  # h5py fails in a different way for each kind of damage
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{path} cannot be read as HDF5 ({reason}): unpack the release again") from error


def _read_array(file: Any, key: str, path: Path) -> NDArray[Any]:
    """Read an array, after checking that it is a numeric array in this file, of plausible size, and complete."""
    import h5py

    link = file.get(key, getlink=True)
    if link is None:
        found = one_line(", ".join(sorted(file)), REPEATED) or "nothing"
        raise PointsetError(f"{path} has no dataset {key!r}: found {found}")
    node = None if isinstance(link, h5py.ExternalLink) else file.get(key)
    if not isinstance(node, h5py.Dataset) or node.shape is None or node.is_virtual or node.external:
        raise PointsetError(f"{path}: {key!r} must be an array in this file, not a link, a group or nothing")
    if node.dtype.kind not in "fiu" or not node.id.get_type().equal(h5py.h5t.py_create(node.dtype)):
        raise PointsetError(f"{path}: {key!r} must be numbers of a usual type, got {one_line(node.dtype, REPEATED)}")
    size, stored = math.prod(node.shape) * node.dtype.itemsize, path.stat().st_size
    if size > MOST_RATIO * stored:
        raise PointsetError(f"{path}: {key!r} is {list(node.shape)}, too large for a file of {stored:,} bytes")
    if size and not _is_written(node, size):
        raise PointsetError(f"{path}: parts of {key!r} were never written, or it is damaged: make the file again")
    return np.asarray(node[()])


def _is_written(node: Any, size: int) -> bool:
    """True if the stored bytes are exactly those of the array; HDF5 returns zeros for parts never written."""
    if node.chunks is None:
        return bool(node.id.get_storage_size() == size)  # larger if a damaged shape hides points
    stored = list[Any]()
    node.id.chunk_iter(stored.append)
    whole = math.prod(node.chunks) * node.dtype.itemsize
    grid = itertools.product(*map(range, itertools.repeat(0), node.shape, node.chunks))
    # HDF5 skips a filter only for a chunk that it would make larger, so such a chunk has its full size.
    return {chunk.chunk_offset for chunk in stored} == set(grid) and all(
        chunk.size >= whole for chunk in stored if chunk.filter_mask
    )
