"""Read point clouds as they were released: ModelNet40's HDF5 files, ScanObjectNN and ModelNet40-C."""

import difflib
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue import hdf5
from pointset.data.catalogue.cards import Card, load_card
from pointset.data.catalogue.checksums import KnownFiles, known_files
from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.readers.clouds import extent_fault, float32_fault
from pointset.data.unusable import MOST_SAID, refuse_or_leave_out
from pointset.errors import REPEATED, PointsetError, one_line, quoted

# ScanObjectNN (Uy et al., arXiv 1908.04616): folder and suffix of the file names of each variant, from the authors'
# README, section "h5 files". Variants that end in _nobg have no background, like OBJ_ONLY; the authors do not name
# them, except by their folder. The first is the hardest and the most reported.
SCANS = {
    "PB_T50_RS": ("main_split", "_augmentedrot_scale75"),
    "PB_T50_R": ("main_split", "_augmentedrot"),
    "PB_T25_R": ("main_split", "_augmented25rot"),
    "PB_T25": ("main_split", "_augmented25_norot"),
    "OBJ_BG": ("main_split", ""),
    "OBJ_ONLY": ("main_split_nobg", ""),
    "PB_T50_RS_nobg": ("main_split_nobg", "_augmentedrot_scale75"),
    "PB_T50_R_nobg": ("main_split_nobg", "_augmentedrot"),
    "PB_T25_R_nobg": ("main_split_nobg", "_augmented25rot"),
    "PB_T25_nobg": ("main_split_nobg", "_augmented25_norot"),
}
SCAN_FILES = "*_objectdataset*.h5"
SCAN_SPLITS = {"train": "training", "test": "test"}
LABELS = "label.npy"
"""The labels of ModelNet40-C (Sun et al., arXiv 2201.12296), beside data_CORRUPTION_SEVERITY.npy."""
REMEDY = "correct them, or get the release again"


def is_released(folder: Path) -> bool:
    """True if a folder holds point clouds in a known released layout."""
    return hdf5.is_hdf5_folder(folder) or _is_scanobjectnn(folder) or _is_modelnet40c(folder)


def read_released(
    folder: Path,
    split: str,
    variant: str | None = None,
    *,
    card: Card | None = None,
    on_error: str = "raise",
) -> Pool:
    """Read one split of a released dataset, in one of its variants.

    Clouds are named by file and row, such as "ply_data_train0/17". All files are tried before an error.

    Args:
        folder: folder of the dataset.
        split: "train" or "test"; ModelNet40-C has only "test".
        variant: for ScanObjectNN a key of `SCANS`, by default the first; for ModelNet40-C a corruption with its
            severity, such as "gaussian_3", or "original".
        card: the card by which the folder was found, with digests of the files.
        on_error: "raise", or "skip" to leave out files and clouds that cannot be used.

    Raises:
        UnreadableShapesError: files or clouds cannot be used, and `on_error` is not "skip".
        PointsetError: the split or variant is unknown, or a list of classes or files is missing or damaged.
    """
    known = known_files(folder, card)
    classes, files = _classes_and_files(folder, split, variant, known)
    clouds, failures = list[Clouds](), dict[str, str]()
    for path, stem in files.items():
        try:
            known.require(path)
            points, labels = _read_file(path, known)
            clouds.append(check_clouds(points, labels, len(classes), path, stem))
        except PointsetError as error:
            failures[path.name] = str(error)
    return _pool_of_clouds(clouds, failures, classes, f"{folder}: its {split}", on_error)


def released_labels(folder: Path, split: str, variant: str | None = None) -> NDArray[np.int64]:
    """The labels of one split, without files that cannot be read; empty if the folder does not have it."""
    labels = [np.zeros(0, np.int64)]
    with suppress(PointsetError):
        for path in _classes_and_files(folder, split, variant, KnownFiles(folder))[1]:
            with suppress(PointsetError, ValueError):
                npy = path.suffix == ".npy"
                array = _read_npy(path.with_name(LABELS)) if npy else hdf5.read_arrays(path, "label")[0]
                labels.append(array.reshape(-1).astype(np.int64))
    return np.concatenate(labels)


def _classes_and_files(
    folder: Path, split: str, variant: str | None, known: KnownFiles
) -> tuple[list[str], dict[Path, str]]:
    """The classes of a dataset, and the first part of the shapes' names for each file of one split and variant."""
    if _is_scanobjectnn(folder):
        path = _scanobjectnn_file(folder, split, variant or next(iter(SCANS)))
        return list(load_card("scanobjectnn").classes), {path: f"{variant or next(iter(SCANS))}/{path.stem}"}
    if _is_modelnet40c(folder):
        return list(load_card("modelnet40-c").classes), {_modelnet40c_file(folder, split, variant): "test"}
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={quoted(variant)} out")
    known.require(folder / hdf5.SHAPE_NAMES)
    known.require(hdf5.list_of_files(folder, split))
    return hdf5.read_classes(folder), {path: path.stem for path in hdf5.listed_files(folder, split)}


def _is_scanobjectnn(folder: Path) -> bool:
    """True if a folder is `h5_files`, its parent, or one of its subfolders."""
    return any(any(folder.glob(inside + SCAN_FILES)) for inside in ("main_split*/", "h5_files/main_split*/", ""))


def _scanobjectnn_file(folder: Path, split: str, variant: str) -> Path:
    if variant not in SCANS:
        raise PointsetError(f"ScanObjectNN has no variant {quoted(variant)}: choose one of {', '.join(SCANS)}")
    if split not in SCAN_SPLITS:
        raise PointsetError(f"ScanObjectNN has no split {quoted(split)}: choose train or test")
    if any(folder.glob(SCAN_FILES)):
        raise PointsetError(f"{folder} is a part of ScanObjectNN: give the folder that has main_split in it")
    top = folder / "h5_files" if (folder / "h5_files").is_dir() else folder
    paths = {
        name: top / subfolder / f"{SCAN_SPLITS[split]}_objectdataset{ending}.h5"
        for name, (subfolder, ending) in SCANS.items()
    }
    if not paths[variant].is_file():
        present = ", ".join(name for name, path in paths.items() if path.is_file()) or "all missing"
        raise PointsetError(f"{paths[variant]} is missing: the variants of split {split!r} are {present}")
    return paths[variant]


def _is_modelnet40c(folder: Path) -> bool:
    """True if a folder has the labels and at least one corruption."""
    return (folder / LABELS).is_file() and any(folder.glob("data_*_*.npy"))


def _modelnet40c_file(folder: Path, split: str, variant: str | None) -> Path:
    if split != "test":
        raise PointsetError(f"ModelNet40-C has no split {quoted(split)}: it is a test set, train on ModelNet40")
    present = sorted(path.stem.removeprefix("data_") for path in folder.glob("data_*.npy"))
    if variant in present:
        return folder / f"data_{variant}.npy"
    if near := difflib.get_close_matches(variant or "", present, n=5, cutoff=0.7):
        raise PointsetError(f"{folder} has no variant {quoted(variant)}: did you mean {', '.join(near)}?")
    corruptions = ", ".join(sorted({name.rstrip("0123456789").rstrip("_") for name in present}))
    fault = "needs a variant" if variant is None else f"has no variant {quoted(variant)}"
    raise PointsetError(f"{folder} {fault}: give one of {corruptions}, with its severity, such as {present[0]!r}")


def _read_file(path: Path, known: KnownFiles) -> list[NDArray[Any]]:
    """The clouds and the labels of a file."""
    if path.suffix != ".npy":
        return hdf5.read_arrays(path, "data", "label")
    known.require(path.with_name(LABELS))
    return [_read_npy(path), _read_npy(path.with_name(LABELS))]


def _read_npy(path: Path) -> NDArray[Any]:
    if not path.is_file():  # reading a pipe would never end
        raise PointsetError(f"{path} is missing, or not a file: unpack the release again")
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped, so that a damaged shape takes no memory
        if mapped.offset + mapped.nbytes != path.stat().st_size:
            raise ValueError("it has bytes after its array")
        return np.array(mapped)
    except Exception as error:  # numpy fails in a different way for each kind of damage
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{path} cannot be read as an array ({reason}): unpack the release again") from error


@dataclass(frozen=True, eq=False)
class Clouds:
    """The usable clouds of one file, which have equal sizes."""

    points: NDArray[np.float32]
    """[N, P, 3]."""
    labels: NDArray[np.int64]
    """[N]."""
    names: list[str]
    failures: dict[str, str] = field(default_factory=dict)
    """The reasons why other rows cannot be used, by name."""


def check_clouds(points: NDArray[Any], labels: NDArray[Any], classes: int, path: Path, stem: str) -> Clouds:
    """Check clouds [N, P, 3] and labels [N] or [N, 1]; a cloud's name is `stem` and its row.

    Raises:
        PointsetError: an array has a wrong shape or type.
    """
    if points.ndim != 3 or points.shape[2] != 3 or 0 in points.shape or points.dtype.kind != "f":
        raise PointsetError(f"{path}: 'data' must be floats [N, P, 3], got {points.dtype} {list(points.shape)}")
    if labels.shape not in ((len(points),), (len(points), 1)) or labels.dtype.kind not in "iu":
        expected = f"integers [{len(points)}, 1]"
        raise PointsetError(f"{path}: 'label' must be {expected}, got {labels.dtype} {list(labels.shape)}")
    labels = labels.reshape(-1)
    names = [f"{stem}/{row}" for row in range(len(points))]
    infinite = ~np.isfinite(points).all(axis=(1, 2))
    # Only rows with equal first and last points can have no extent, and only wide types can overflow.
    suspects = (points[:, 0] == points[:, -1]).all(axis=1) | (points.dtype.itemsize > 4)
    faults = {int(row): _fault(points[row]) for row in np.flatnonzero(suspects & ~infinite)}
    faults |= {int(row): "has a coordinate that is not finite" for row in np.flatnonzero(infinite)}
    outside = (labels < 0) | (labels >= classes)
    faults |= {
        int(row): f"has label {labels[row]}, but there are only {classes} classes" for row in np.flatnonzero(outside)
    }
    faults = {row: fault for row, fault in sorted(faults.items()) if fault}
    kept = np.array([row for row in range(len(points)) if row not in faults], np.int64) if faults else slice(None)
    return Clouds(
        points[kept].astype(np.float32, copy=False),
        labels[kept].astype(np.int64),
        [name for row, name in enumerate(names) if row not in faults],
        {names[row]: f"{path}: row {row} {fault}" for row, fault in faults.items()},
    )


def _fault(points: NDArray[Any]) -> str:
    return extent_fault([points]) or float32_fault(points.min(axis=0), points.max(axis=0))


def _pool_of_clouds(
    files: Sequence[Clouds], failures: Mapping[str, str], classes: list[str], where: str, on_error: str
) -> Pool:
    """Make a pool of the files of one split, of which others cannot be read."""
    failures = {**failures, **{name: reason for clouds in files for name, reason in clouds.failures.items()}}
    names = [name for clouds in files for name in clouds.names]
    refuse_or_leave_out(failures, len(names), on_error, "clouds or files of them", REMEDY)
    if failures:
        reasons = one_line("; ".join(failures.values()), MOST_SAID)
        left_out = f"{where} files: {len(failures)} clouds or files of them are left out: {reasons}"
        warnings.warn(left_out, stacklevel=7)  # the caller of load_dataset
    points = [clouds.points for clouds in files if clouds.names]
    if len(sizes := {clouds.shape[1] for clouds in points}) > 1:
        raise PointsetError(f"{where} files hold clouds of different sizes: {sorted(sizes)}")
    return Pool(
        points[0] if len(points) == 1 else np.concatenate(points),
        names,
        np.concatenate([clouds.labels for clouds in files]),
        classes,
        AS_RELEASED,
        skipped=tuple(failures),
    )
