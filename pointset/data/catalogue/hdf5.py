"""Read the lists and the HDF5 files of ModelNet40's release, and of others with the same arrays.

A folder holds `shape_names.txt` (one class per line), `train_files.txt` and `test_files.txt`, and the files listed in
these two, each with `data` float [N, P, 3] and `label` [N, 1].

HDF5 detects a changed byte only in data with checksums (`create_dataset(..., fletcher32=True)`), which the releases do
not have; see `pointset.data.catalogue.checksums`.
"""

import itertools
import math
import re
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import REPEATED, PointsetError, one_line, quoted

SHAPE_NAMES = "shape_names.txt"
LONGEST_LIST = 1 << 20
"""Most bytes of a list of classes or files."""
LONGEST_NAME = 255
"""Most bytes of a file name; a longer one fails with another error than a missing file."""
MOST_RATIO = 100
"""Most bytes of an array per byte of its file; a larger shape is damaged, or made to exhaust memory."""


def is_hdf5_folder(folder: Path) -> bool:
    """True if a folder has a list of classes or of files."""
    return (folder / SHAPE_NAMES).is_file() or any(folder.glob("*_files.txt"))


def list_of_files(folder: Path, split: str) -> Path:
    """The list of the files of a split."""
    return folder / f"{split}_files.txt"


def read_classes(folder: Path) -> list[str]:
    """The classes of a release; a PointsetError if they cannot be read, or one is named twice."""
    classes = _lines(folder / SHAPE_NAMES, "the list of classes")
    if twice := [name for name, count in Counter(classes).items() if count > 1]:
        raise PointsetError(f"{folder / SHAPE_NAMES} names the class {quoted(twice[0])} twice: list every class once")
    return classes


def listed_files(folder: Path, split: str) -> list[Path]:
    """The files of one split; the lists hold paths of the authors' machine, so only base names are used.

    Raises:
        PointsetError: a list cannot be read, or a file is listed twice, also in lists of two splits.
    """
    lists: dict[str, str] = {}
    for path in sorted(folder.glob("*_files.txt")):
        for name in _base_names(path):
            if other := lists.get(name):
                where = f"twice in {other}" if other == path.name else f"in {other} and in {path.name}"
                raise PointsetError(f"{folder}: {quoted(name)} is listed {where}: list every file once")
            lists[name] = path.name
    return [folder / name for name in _base_names(list_of_files(folder, split))]


def _base_names(path: Path) -> list[str]:
    lines = _lines(path, f"the list of {path.name.removesuffix('_files.txt')} files")
    return [PurePosixPath(line.replace("\\", "/")).name for line in lines]


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
    return lines


def read_arrays(path: Path, *keys: str) -> list[NDArray[Any]]:
    """Read arrays of a file; a PointsetError if it is missing or damaged."""
    import h5py

    if len(path.name.encode()) > LONGEST_NAME or not path.is_file():
        raise PointsetError(f"{quoted(path.name)} is missing in {path.parent}: unpack the release again")
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
        content = one_line(", ".join(sorted(file)), REPEATED) or "nothing"
        raise PointsetError(f"{path} has no dataset {key!r}: found {content}")
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
