"""Read ScanObjectNN (Uy et al., arXiv 1908.04616) in its authors' layout: h5_files/main_split*/*.h5."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.cards import load_card
from pointset.data.catalogue.hdf5 import labels_in_file, read_hdf5_file
from pointset.data.catalogue.intact import KnownFiles
from pointset.data.catalogue.released_clouds import pool_of_clouds
from pointset.data.pool import Pool
from pointset.errors import PointsetError, quoted

# Folder and suffix of the file names of each variant, from the authors' README, section "h5 files". Variants that end
# in _nobg have no background, like OBJ_ONLY; the authors do not name them, except by their folder.
FILES = {
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
USUAL = "PB_T50_RS"
ANY_FILE = "*_objectdataset*.h5"
PREFIXES = {"train": "training", "test": "test"}


def is_scanobjectnn_folder(folder: Path) -> bool:
    """True if a folder is `h5_files`, its parent, or one of its subfolders."""
    return any(any(folder.glob(place + ANY_FILE)) for place in ("main_split*/", "h5_files/main_split*/", ""))


def read_scanobjectnn(
    folder: Path,
    split: str,
    variant: str | None = None,
    known: KnownFiles | None = None,
    on_error: str = "raise",
) -> Pool:
    """Read one split of one variant, a key of `FILES`; None takes PB_T50_RS, the hardest and most reported.

    Raises:
        UnreadableShapesError: clouds cannot be used, and `on_error` is not "skip".
        PointsetError: the split or variant is unknown, or its file is missing or damaged.
    """
    known = known or KnownFiles(folder)
    variant = variant or USUAL
    if variant not in FILES:
        raise PointsetError(f"ScanObjectNN has no variant {quoted(variant)}: choose one of {', '.join(FILES)}")
    if split not in PREFIXES:
        raise PointsetError(f"ScanObjectNN has no split {quoted(split)}: choose train or test")
    if any(folder.glob(ANY_FILE)):
        raise PointsetError(f"{folder} is a part of ScanObjectNN: give the folder that has main_split in it")
    if (folder / "h5_files").is_dir():
        folder = folder / "h5_files"
    path = _file(folder, variant, split)
    if not path.is_file():
        there = [name for name in FILES if _file(folder, name, split).is_file()]
        present = ", ".join(there) or "all missing"
        raise PointsetError(f"{path} is missing: the variants of split {split!r} are {present}")
    classes = list(load_card("scanobjectnn").classes)
    clouds = read_hdf5_file(path, len(classes), known, f"{variant}/{path.stem}")
    return pool_of_clouds([clouds], {}, classes, f"{folder}: its {split}", on_error)


def labels_in_scanobjectnn(folder: Path, split: str, variant: str | None = None) -> NDArray[np.int64]:
    """The labels of one split of one variant; empty if they cannot be read."""
    folder = folder / "h5_files" if (folder / "h5_files").is_dir() else folder
    return labels_in_file(_file(folder, variant or USUAL, split))


def _file(folder: Path, variant: str, split: str) -> Path:
    part, ending = FILES[variant]
    return folder / part / f"{PREFIXES[split]}_objectdataset{ending}.h5"
