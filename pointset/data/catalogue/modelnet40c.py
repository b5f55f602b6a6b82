"""Read ModelNet40-C (Sun et al., arXiv 2201.12296): a folder with data_CORRUPTION_SEVERITY.npy and label.npy."""

import difflib
from pathlib import Path

import numpy as np

from pointset.data.catalogue.cards import load_card
from pointset.data.catalogue.intact import KnownFiles
from pointset.data.catalogue.released_clouds import check_clouds, pool_of_clouds
from pointset.data.pool import Pool
from pointset.errors import REPEATED, PointsetError, one_line, quoted

LABELS = "label.npy"


def is_modelnet40c_folder(folder: Path) -> bool:
    """True if a folder has the labels and at least one corruption."""
    return (folder / LABELS).is_file() and any(folder.glob("data_*_*.npy"))


def read_modelnet40c(
    folder: Path,
    split: str,
    variant: str | None = None,
    known: KnownFiles | None = None,
    on_error: str = "raise",
) -> Pool:
    """Read one corruption at one severity; all have the same shapes, in the same order and with the same names.

    The only split is "test". A variant is a corruption with its severity, such as "gaussian_3", or "original".

    Raises:
        UnreadableShapesError: clouds cannot be used, and `on_error` is not "skip".
        PointsetError: the split or variant is unknown, or an array is damaged.
    """
    known = known or KnownFiles(folder)
    if split != "test":
        raise PointsetError(f"ModelNet40-C has no split {quoted(split)}: it is a test set, train on ModelNet40")
    there = sorted(path.stem.removeprefix("data_") for path in folder.glob("data_*.npy"))
    if variant not in there:
        raise PointsetError(f"{folder} {_missing(variant, there)}")
    classes = list(load_card("modelnet40-c").classes)
    path = folder / f"data_{variant}.npy"
    clouds = check_clouds(_load(path, known), _load(folder / LABELS, known), len(classes), path, "test")
    return pool_of_clouds([clouds], {}, classes, f"{folder}: its {split}", on_error)


def _missing(variant: str | None, there: list[str]) -> str:
    """The message for a missing variant, with similar variants or all corruptions."""
    near = difflib.get_close_matches(variant or "", there, n=5, cutoff=0.7)
    if near:
        return f"has no variant {quoted(variant)}: did you mean {', '.join(near)}?"
    corruptions = sorted({name.rstrip("0123456789").rstrip("_") for name in there})
    asked = "needs a variant" if variant is None else f"has no variant {quoted(variant)}"
    return f"{asked}: give one of {', '.join(corruptions)}, with its severity, such as {there[0]!r}"


def _load(path: Path, known: KnownFiles) -> np.ndarray:
    if not path.is_file():  # reading a pipe would never end
        raise PointsetError(f"{path} is missing, or not a file: unpack the release again")
    known.require(path)
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped, so that a damaged shape takes no memory
        if mapped.offset + mapped.nbytes != path.stat().st_size:
            raise ValueError("it has bytes after its array")
        return np.array(mapped)
    except Exception as error:  # numpy fails in a different way for each kind of damage
        reason = one_line(error, REPEATED) or type(error).__name__
        raise PointsetError(f"{path} cannot be read as an array ({reason}): unpack the release again") from error
