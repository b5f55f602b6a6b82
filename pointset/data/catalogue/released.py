"""Recognise the layouts of released point clouds, and read their splits."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.cards import Card
from pointset.data.catalogue.hdf5 import is_hdf5_folder, labels_in_hdf5_folder, read_hdf5_folder
from pointset.data.catalogue.intact import known_files
from pointset.data.catalogue.modelnet40c import is_modelnet40c_folder, read_modelnet40c
from pointset.data.catalogue.scanobjectnn import is_scanobjectnn_folder, labels_in_scanobjectnn, read_scanobjectnn
from pointset.data.pool import Pool
from pointset.errors import PointsetError, quoted


def is_released(folder: Path) -> bool:
    """True if a folder holds point clouds in a known released layout."""
    return is_hdf5_folder(folder) or is_scanobjectnn_folder(folder) or is_modelnet40c_folder(folder)


def read_released(
    folder: Path,
    split: str,
    variant: str | None = None,
    *,
    card: Card | None = None,
    on_error: str = "raise",
) -> Pool:
    """Read one split of a released dataset, in one of its variants.

    Args:
        folder: folder of the dataset.
        split: "train" or "test".
        variant: one of the dataset's variants, if it has several.
        card: the card by which the folder was found, with digests of the files.
        on_error: "raise", or "skip" to leave out files and clouds that cannot be used.

    Raises:
        UnreadableShapesError: files or clouds cannot be used, and `on_error` is not "skip".
        PointsetError: a file is missing or damaged, or the split or variant is unknown.
    """
    known = known_files(folder, card)
    if is_scanobjectnn_folder(folder):
        return read_scanobjectnn(folder, split, variant, known, on_error)
    if is_modelnet40c_folder(folder):
        return read_modelnet40c(folder, split, variant, known, on_error)
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={quoted(variant)} out")
    return read_hdf5_folder(folder, split, known, on_error)


def released_labels(folder: Path, split: str, variant: str | None = None) -> NDArray[np.int64]:
    """The labels of one split; empty if the folder does not have it."""
    if is_scanobjectnn_folder(folder):
        return labels_in_scanobjectnn(folder, split, variant)
    if is_modelnet40c_folder(folder):
        return np.zeros(0, np.int64)
    return labels_in_hdf5_folder(folder, split)
