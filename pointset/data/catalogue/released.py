"""Clouds as others released them: which layout a folder has, and reading a split of it."""

from pathlib import Path

from pointset.data.catalogue.hdf5 import Clouds, is_hdf5_folder, read_hdf5_folder
from pointset.data.catalogue.modelnet40c import is_modelnet40c_folder, read_modelnet40c
from pointset.data.catalogue.scanobjectnn import is_scanobjectnn_folder, read_scanobjectnn
from pointset.errors import PointsetError


def is_released(folder: Path) -> bool:
    """Whether a folder holds sampled points in a layout that is known here."""
    return is_hdf5_folder(folder) or is_scanobjectnn_folder(folder) or is_modelnet40c_folder(folder)


def read_released(folder: Path, split: str, variant: str | None = None) -> Clouds:
    """Read one split of a released data set.

    Args:
        folder: in the layout of ModelNet40's HDF5 release, of ScanObjectNN or of ModelNet40-C.
        split: "train" or "test".
        variant: of ScanObjectNN ("PB_T50_RS", "OBJ_ONLY", ...) or ModelNet40-C ("gaussian_3", ...).

    Raises:
        PointsetError: a file is missing or damaged, or there is no such split or variant.
    """
    if is_scanobjectnn_folder(folder):
        return read_scanobjectnn(folder, split, variant)
    if is_modelnet40c_folder(folder):
        return read_modelnet40c(folder, split, variant)
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={variant!r} out")
    return read_hdf5_folder(folder, split)
