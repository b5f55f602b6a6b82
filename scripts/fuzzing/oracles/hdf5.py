"""Clouds in the layout of ModelNet40's HDF5 release: lists of text, files with `data` and `label`.

The HDF5 library itself is trusted here: this holds the rules of the layout, not of its bytes.
"""

import itertools
import math
from pathlib import Path, PurePosixPath

import h5py
import numpy as np

from fuzzing.oracles.words import Illegal, lines_of, require, without_mark

FLOATS = ("IEEE_F16", "IEEE_F32", "IEEE_F64")
WHOLES = tuple(f"STD_{sign}{bits}" for sign in "IU" for bits in (8, 16, 32, 64))
USUAL = [getattr(h5py.h5t, name + order) for name in (*FLOATS, *WHOLES) for order in ("LE", "BE")]


def read(folder: Path) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    """Points [N, P, 3], labels [N], names and classes of the train split."""
    classes = listed(folder / "shape_names.txt")
    files = [PurePosixPath(line.replace("\\", "/")).name for line in listed(folder / "train_files.txt")]
    others = [PurePosixPath(line.replace("\\", "/")).name for line in listed(folder / "test_files.txt")]
    require(len({*files, *others}) == len(files) + len(others), "a file twice")
    require(all(files), "no name")
    points, labels, names = [], [], []
    for name in files:
        require("\0" not in name and len(name.encode()) <= 255 and (folder / name).is_file(), "no such file")
        cloud, label = one(folder / name, len(classes))
        points.append(cloud)
        labels.append(label)
        names += [f"{PurePosixPath(name).stem}/{row}" for row in range(len(cloud))]
    require(len({cloud.shape[1] for cloud in points}) == 1, "clouds of several sizes")
    return np.concatenate(points), np.concatenate(labels), names, classes


def listed(path: Path) -> list[str]:
    """Names, one on a line."""
    try:
        lines = [line.strip(b" \t").decode() for line in lines_of(without_mark(path.read_bytes()))]
    except UnicodeDecodeError:
        raise Illegal("no UTF-8") from None
    names = [line for line in lines if line]
    require(all(len(name) <= 4096 for name in names), "a long name")
    require(bool(names) and len(set(names)) == len(names), "no name, or one twice")
    return names


def one(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and labels of a file."""
    try:
        with h5py.File(path) as file:
            points, labels = dataset(file, "data", path), dataset(file, "label", path)
    except (OSError, KeyError, ValueError, RuntimeError, TypeError, AttributeError, MemoryError) as error:
        raise Illegal(f"{type(error).__name__}") from None
    require(points.dtype.kind == "f" and points.dtype.itemsize <= 8, "points are not floats")
    require(points.ndim == 3 and points.shape[2] == 3 and points.size > 0, "shape of the points")
    require(labels.dtype.kind in "iu", "labels are not whole numbers")
    require(labels.shape in ((len(points),), (len(points), 1)), "shape of the labels")
    require(bool((labels >= 0).all() and (labels < classes).all()), "a label outside the classes")
    require(bool((np.abs(points.astype(np.float64)) <= 3.4028235e38).all()), "not finite")
    return points.astype(np.float32), labels.reshape(-1).astype(np.int64)


def dataset(file: h5py.File, key: str, path: Path) -> np.ndarray:
    """An array that lies in this file, all of it written."""
    require(not isinstance(file.get(key, getlink=True), h5py.ExternalLink), "in another file")
    found = file[key]
    require(isinstance(found, h5py.Dataset) and found.shape is not None, "no array")
    require(any(found.id.get_type().equal(usual) for usual in USUAL), "an odd type")
    require(not found.is_virtual and not found.external, "in another file")
    require(found.size * found.dtype.itemsize <= 1100 * path.stat().st_size, "larger than its file")
    if found.chunks:
        ranges = [range(0, length, chunk) for length, chunk in zip(found.shape, found.chunks, strict=True)]
        there = {found.id.get_chunk_info(place).chunk_offset for place in range(found.id.get_num_chunks())}
        require(math.prod(map(len, ranges)) == len(there), "chunks never written")
        require(there == set(itertools.product(*ranges)), "chunks elsewhere")
    else:
        require(found.id.get_storage_size() == found.size * found.dtype.itemsize, "never written")
    return np.asarray(found[()])
