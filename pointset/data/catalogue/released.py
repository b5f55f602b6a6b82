"""Released clouds: recognising the layout of a folder, and reading a split of it."""

from pathlib import Path

from pointset.data.catalogue.hdf5 import is_hdf5_folder, read_hdf5_folder
from pointset.data.catalogue.modelnet40c import is_modelnet40c_folder, read_modelnet40c
from pointset.data.catalogue.scanobjectnn import is_scanobjectnn_folder, read_scanobjectnn
from pointset.data.pool import Pool
from pointset.errors import PointsetError


def is_released(folder: Path) -> bool:
    """Whether a folder holds sampled points in a layout that is known here."""
    return is_hdf5_folder(folder) or is_scanobjectnn_folder(folder) or is_modelnet40c_folder(folder)


def read_released(folder: Path, split: str, variant: str | None = None) -> Pool:
    """Read one split of a released data set, in one of its variants.

    Raises:
        PointsetError: a file is missing or damaged, or the split or variant is unknown.
    """
    if is_scanobjectnn_folder(folder):
        return read_scanobjectnn(folder, split, variant)
    if is_modelnet40c_folder(folder):
        return read_modelnet40c(folder, split, variant)
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={variant!r} out")
    return read_hdf5_folder(folder, split)
