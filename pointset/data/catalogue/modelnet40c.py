"""Reading ModelNet40-C (Sun et al., arXiv 2201.12296): data_CORRUPTION_SEVERITY.npy and label.npy, one folder."""

import difflib
from pathlib import Path

import numpy as np

from pointset.data.catalogue.cards import load_card
from pointset.data.catalogue.hdf5 import check_clouds
from pointset.data.pool import AS_RELEASED, Pool
from pointset.errors import PointsetError

LABELS = "label.npy"


def is_modelnet40c_folder(folder: Path) -> bool:
    """Whether a folder has the labels and at least one corruption."""
    return (folder / LABELS).is_file() and any(folder.glob("data_*_*.npy"))


def read_modelnet40c(folder: Path, split: str, variant: str | None = None) -> Pool:
    """Read one corruption at one severity: the same shapes in the same order in each, under the same names.

    The only split is "test". A variant is a corruption and its severity, such as "gaussian_3", or "original".

    Raises:
        PointsetError: the split or variant is unknown, or an array is damaged.
    """
    if split != "test":
        raise PointsetError(f"ModelNet40-C has no split {split!r}: it is a test set, to train on ModelNet40")
    there = sorted(path.stem.removeprefix("data_") for path in folder.glob("data_*.npy"))
    if variant not in there:
        raise PointsetError(f"{folder} {_missing(variant, there)}")
    classes = list(load_card("modelnet40-c").classes)
    path = folder / f"data_{variant}.npy"
    points, labels = check_clouds(_load(path), _load(folder / LABELS), len(classes), path)
    return Pool(points, [f"test/{row}" for row in range(len(points))], labels, classes, AS_RELEASED)


def _missing(variant: str | None, there: list[str]) -> str:
    """The message for an absent variant: its neighbours, or the corruptions without their severities."""
    near = difflib.get_close_matches(variant or "", there, n=5, cutoff=0.7)
    if near:
        return f"has no variant {variant!r}: did you mean {', '.join(near)}?"
    corruptions = sorted({name.rstrip("0123456789").rstrip("_") for name in there})
    asked = "needs a variant" if variant is None else f"has no variant {variant!r}"
    return f"{asked}: give one of {', '.join(corruptions)}, with its severity, such as {there[0]!r}"


def _load(path: Path) -> np.ndarray:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise PointsetError(f"{path} cannot be read as an array ({error}): unpack the release again") from error
