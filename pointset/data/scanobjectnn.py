"""Reading ScanObjectNN (Uy et al., arXiv 1908.04616) as its authors hand it out: h5_files/main_split*/*.h5."""

from pathlib import Path

from pointset.data.cards import load_card
from pointset.data.hdf5 import Clouds, read_hdf5_file
from pointset.errors import PointsetError

# Folder and ending of the file names of each variant, from the authors' README, section "h5 files".
FILES = {
    "PB_T50_RS": ("main_split", "_augmentedrot_scale75"),
    "PB_T50_R": ("main_split", "_augmentedrot"),
    "PB_T25_R": ("main_split", "_augmented25rot"),
    "PB_T25": ("main_split", "_augmented25_norot"),
    "OBJ_BG": ("main_split", ""),
    "OBJ_ONLY": ("main_split_nobg", ""),
}
PREFIXES = {"train": "training", "test": "test"}


def is_scanobjectnn_folder(folder: Path) -> bool:
    """Whether a folder is `h5_files`, or a copy of some of it."""
    return any(folder.glob("main_split*/*_objectdataset*.h5"))


def read_scanobjectnn(folder: Path, split: str, variant: str | None = None) -> Clouds:
    """Read one split of one variant.

    Args:
        folder: with main_split and main_split_nobg in it.
        split: "train" or "test".
        variant: a key of `FILES`; None takes PB_T50_RS, the hardest and most reported.

    Raises:
        PointsetError: there is no such split or variant, or its file is missing or damaged.
    """
    variant = variant or next(iter(FILES))
    if variant not in FILES:
        raise PointsetError(f"ScanObjectNN has no variant {variant!r}: choose one of {', '.join(FILES)}")
    if split not in PREFIXES:
        raise PointsetError(f"ScanObjectNN has no split {split!r}: choose train or test")
    part, ending = FILES[variant]
    path = folder / part / f"{PREFIXES[split]}_objectdataset{ending}.h5"
    if not path.is_file():
        there = [name for name in FILES if _is_there(folder, name, split)]
        raise PointsetError(f"{path} is missing: of split {split!r} there are {', '.join(there) or 'no variants'}")
    classes = list(load_card("scanobjectnn").classes)
    points, labels, names = read_hdf5_file(path, len(classes))
    return Clouds(points, labels, [f"{variant}/{name}" for name in names], classes)


def _is_there(folder: Path, variant: str, split: str) -> bool:
    part, ending = FILES[variant]
    return (folder / part / f"{PREFIXES[split]}_objectdataset{ending}.h5").is_file()
