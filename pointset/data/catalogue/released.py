"""Read datasets in their authors' file layouts: ModelNet40's HDF5 files, ScanObjectNN and ModelNet40-C.

The folder of ModelNet40 holds `shape_names.txt` (one class per line), the lists `train_files.txt` and `test_files.txt`,
and the HDF5 files in these lists, each with `data` float [N, P, 3] and `label` [N, 1]. The lists have paths on the
authors' machine, of which only the file names are used.
"""

import warnings
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.configuration import check_once
from pointset.data.catalogue.cards import Card, load_card
from pointset.data.point_cache import PointCache
from pointset.data.unusable import MOST_SAID, in_kinds, refuse_or_leave_out
from pointset.errors import REPEATED, PointsetError, one_line, quoted
from pointset.runs.records import read_text

SHAPE_NAMES = "shape_names.txt"
# ScanObjectNN (Uy et al., arXiv 1908.04616): folder and suffix of the file names of each variant, from the authors'
# README, section "h5 files". OBJ_ONLY and variants that end in _nobg have no background; the authors name the latter
# only by their folder. The first variant is the hardest, and the one most often reported.
_MOVED = {
    "PB_T50_RS": "_augmentedrot_scale75",
    "PB_T50_R": "_augmentedrot",
    "PB_T25_R": "_augmented25rot",
    "PB_T25": "_augmented25_norot",
}
SCANS = {name: ("main_split", ending) for name, ending in _MOVED.items()}
SCANS |= {"OBJ_BG": ("main_split", ""), "OBJ_ONLY": ("main_split_nobg", "")}
SCANS |= {f"{name}_nobg": ("main_split_nobg", ending) for name, ending in _MOVED.items()}
SCAN_SPLITS = {"train": "training", "test": "test"}
LABELS = "label.npy"
"""File of the labels of ModelNet40-C (Sun et al., arXiv 2201.12296); points are in data_CORRUPTION_SEVERITY.npy."""


def is_released(folder: Path) -> bool:
    """Return True if a folder has the file layout of one of these datasets."""
    return bool(_release(folder))


def _release(folder: Path) -> str:
    """Return the name of the dataset whose file layout a folder has; empty for other folders."""
    if any(any(folder.glob(f"{inside}main_split*/*_objectdataset*.h5")) for inside in ("", "h5_files/")):
        return "scanobjectnn"
    if (folder / LABELS).is_file() and any(folder.glob("data_*_*.npy")):
        return "modelnet40-c"
    return "modelnet40-hdf5" if (folder / SHAPE_NAMES).is_file() or any(folder.glob("*_files.txt")) else ""


def read_released(folder: Path, split: str, variant: str | None = None, *, on_error: str = "raise") -> PointCache:
    """Read one split, in one variant, of a dataset in its authors' file layout.

    Clouds are named by file and index, such as "ply_data_train0/17". The variants of ScanObjectNN are the keys of
    `SCANS` (default: the first). ModelNet40-C has only the split "test". Its variants are "original", and corruptions
    with a severity, such as "gaussian_3". `on_error="skip"` leaves out clouds with numbers that are not finite.
    """
    classes, files = _classes_and_files(folder, split, variant)
    points, labels, names, failures = list[NDArray[Any]](), list[NDArray[Any]](), list[str](), dict[str, str]()
    for path, stem in files.items():
        clouds, numbers = _read_clouds(path)
        _require_indices(path, numbers, len(classes))
        finite: NDArray[np.bool_] = np.abs(clouds).max(axis=(1, 2)) <= np.finfo(np.float32).max
        for row in np.flatnonzero(~finite).tolist():
            failures[f"{stem}/{row}"] = f"{path}: row {row} has a number that is not finite"
        points.append((clouds if finite.all() else clouds[finite]).astype(np.float32, copy=False))
        labels.append(numbers[finite])
        names += [f"{stem}/{row}" for row in np.flatnonzero(finite)]
    refuse_or_leave_out(failures, len(names), on_error, "clouds", "correct them, or download the data again")
    if failures:
        reasons = one_line(in_kinds(failures), MOST_SAID)
        warnings.warn(f"{folder}: {len(failures)} {split} clouds are left out: {reasons}", stacklevel=6)
    if len(sizes := {clouds.shape[1] for clouds in points}) > 1:
        raise PointsetError(f"{folder}: its {split} files hold clouds of different sizes: {sorted(sizes)}")
    whole = points[0] if len(points) == 1 else np.concatenate(points)
    return PointCache(whole, names, np.concatenate(labels), classes, skipped=failures)


def released_labels(folder: Path, split: str, variant: str | None = None) -> NDArray[np.int64]:
    """Return the labels of one split, except those in unreadable files; empty if the folder has no such split."""
    classes, files, labels = list[str](), dict[Path, str](), [np.zeros(0, np.int64)]
    with suppress(PointsetError):
        classes, files = _classes_and_files(folder, split, variant)
    for path in files:
        with suppress(PointsetError):
            labels.append(_read_labels(path))
    _require_indices(folder, np.concatenate(labels), len(classes))
    return np.concatenate(labels)


def _classes_and_files(folder: Path, split: str, variant: str | None) -> tuple[list[str], dict[Path, str]]:
    """Return the classes, and for each file of one split and variant the beginning of the names of its shapes."""
    if (release := _release(folder)) != "modelnet40-hdf5":
        variant, path = _file_of_variant(folder, split, variant, load_card(release))
        return list(load_card(release).classes), {path: f"{variant}/{path.stem}" if path.suffix == ".h5" else "test"}
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={quoted(variant)} out")
    lists = sorted({*folder.glob("*_files.txt"), folder / f"{split}_files.txt"})
    files = {path: [PurePosixPath(line.replace("\\", "/")).name for line in _lines(path)] for path in lists}
    check_once(f"{folder}: in its lists,", [name for names in files.values() for name in names])
    classes = _lines(folder / SHAPE_NAMES)
    check_once(f"{folder}: in its {SHAPE_NAMES},", classes)
    return classes, {folder / name: Path(name).stem for name in files[folder / f"{split}_files.txt"]}


def _lines(path: Path) -> list[str]:
    """Return the lines of a list of classes or files; raise a PointsetError if there is no line."""
    text = read_text(path, "unpack the release again").removeprefix("\ufeff")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise PointsetError(f"{path} is empty: it must have a name on each line")
    return lines


def _file_of_variant(folder: Path, split: str, variant: str | None, card: Card) -> tuple[str, Path]:
    """Return the name and the file of a variant; None means the first variant of ScanObjectNN."""
    if split not in card.splits:
        raise PointsetError(f"{card.title} has no split {quoted(split)}: it has {' and '.join(card.splits)}")
    if card.name == "scanobjectnn":
        variant = variant or next(iter(SCANS))
        top = folder / "h5_files" if (folder / "h5_files").is_dir() else folder
        name = f"{SCAN_SPLITS[split]}_objectdataset"
        files = {key: top / inside / f"{name}{ending}.h5" for key, (inside, ending) in SCANS.items()}
    else:
        files = {path.stem.removeprefix("data_"): path for path in sorted(folder.glob("data_*.npy"))}
    files = {key: path for key, path in files.items() if path.is_file()}
    if variant is None or variant not in files:
        fault = "needs a variant" if variant is None else f"has no variant {quoted(variant)} of split {split!r}"
        names = dict.fromkeys(key.rstrip("_12345") if card.kind == "npy" else key for key in files)
        raise PointsetError(f"{folder} {fault}: give one of {', '.join(names)}, such as {next(iter(files), 'none')}")
    return variant, files[variant]


def _read_clouds(path: Path) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the clouds [N, P, 3] and labels [N] of a file; raise a PointsetError for other shapes or types."""
    points, labels = _read_array(path, "data"), _read_labels(path)
    if points.ndim != 3 or points.shape[2] != 3 or 0 in points.shape or points.dtype.kind != "f":
        raise PointsetError(f"{path}: 'data' must be floats [N, P, 3], got {points.dtype} {list(points.shape)}")
    if len(labels) != len(points):
        raise PointsetError(
            f"{path}: 'label' must have {len(points):,} entries, one for each cloud, got {len(labels):,}"
        )
    return points, labels


def _read_labels(path: Path) -> NDArray[np.int64]:
    labels = _read_array(path.with_name(LABELS) if path.suffix == ".npy" else path, "label")
    if labels.ndim not in (1, 2) or labels.size != len(labels) or labels.dtype.kind not in "iu":
        raise PointsetError(f"{path}: 'label' must be integers [N, 1], got {labels.dtype} {list(labels.shape)}")
    return labels.reshape(-1).astype(np.int64)


def _require_indices(path: Path, labels: NDArray[np.int64], classes: int) -> None:
    """Require labels from 0 to `classes` - 1: labels that are counted from 1 would all mean the next class."""
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        found = f"found {labels.min()} to {labels.max()}"
        raise PointsetError(f"{path}: labels of {classes} classes must be counted from 0 to {classes - 1}, {found}")


def _read_array(path: Path, key: str) -> NDArray[Any]:
    """Return an array of an HDF5 or .npy file; raise a PointsetError if the file is missing or damaged."""
    import h5py

    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        with h5py.File(path, "r") as file:
            return np.asarray(file[key])
    except FileNotFoundError as error:
        raise PointsetError(f"{path} is missing: unpack the release again") from error
    except Exception as error:  # numpy and h5py raise a different error for each kind of damage
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{path} cannot be read ({reason}): unpack the release again") from error
