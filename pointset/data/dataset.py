"""From a name or a folder to a torch data set."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from pointset.data.augment import Axis
from pointset.data.cache import mesh_pool
from pointset.data.folders import list_shapes
from pointset.data.locate import check_against_card, locate_data
from pointset.data.point_sets import PointSets, Pool
from pointset.data.released import is_released, read_released
from pointset.errors import PointsetError

__all__ = ["AS_RELEASED", "PointSets", "load_dataset"]

AS_RELEASED = "as released"
"""The sampler of clouds that came as clouds."""


def load_dataset(
    name_or_folder: str | Path,
    split: str = "train",
    points: int = 1024,
    *,
    pool_points: int = 2048,
    normalize: str = "unit-sphere",
    sampler: str = "uniform",
    seed: int = 0,
    normals: bool = False,
    up: Axis | None = None,
    classes: Sequence[str] | None = None,
    variant: str | None = None,
    split_seed: int = 0,
    progress: bool = True,
) -> PointSets:
    """Load one split of a data set as sets of points.

    Args:
        name_or_folder: a card's name, as text (see `list_cards`), whose data is looked for in `home()/datasets`; or a
            folder, with meshes as class/split/file or class/file, or in the layout of ModelNet40's HDF5
            release. "shapes10" is built at first use.
        split: "train" or "test" (any split that a class/split/file folder has).
        points: points per set, n.
        pool_points: points sampled on each mesh, once, to draw the sets from; clouds in HDF5 are their own
            pool.
        normalize: "unit-sphere", "standardize" or "none"; see `pointset.data.normalize`.
        sampler: how points are chosen on a mesh; see `pointset.data.sampling`. Clouds in HDF5 are sampled
            already.
        seed: of the pools and of the fixed subsets.
        up: "y" or "z"; None takes the card's, and "z" for a folder.
        classes: keep only these, labelled in this order; None keeps all, sorted by name or as the card orders
            them.
        variant: which version of a data set that comes in several: of ScanObjectNN ("PB_T50_RS", "OBJ_ONLY", ...), or
            of ModelNet40-C ("gaussian_3", ...).
        split_seed: of the rule that splits a class/file folder, apart from `seed` so that a run with another
            seed never trains on what it is tested on.
        progress: show a bar while pools are made (on a terminal only).

    Raises:
        PointsetError: the name is unknown, the data is absent, damaged or in no known layout, or an option is
            wrong.
    """
    card, folder = locate_data(name_or_folder, progress=progress)
    if up not in (None, "y", "z"):
        raise PointsetError(f"up={up!r} is no up axis: choose y or z")
    if is_released(folder):
        if sampler != "uniform":
            raise PointsetError(f"{folder} holds sampled points already: leave sampler={sampler!r} out")
        clouds = read_released(folder, split, variant)
        pool = Pool(clouds.points, clouds.names, clouds.labels, clouds.classes, AS_RELEASED)
        check_against_card(clouds.classes, len(clouds.points), card, split, folder, variant)
    else:
        if variant is not None:
            raise PointsetError(f"{folder} holds meshes, in one version only: leave variant={variant!r} out")
        shapes, names = list_shapes(folder, split, seed=split_seed)
        check_against_card(names, len(shapes), card, split, folder)
        pool_name = f"{folder.name}-{split}"
        pool = mesh_pool(pool_name, shapes, names, points=pool_points, sampler=sampler, seed=seed, progress=progress)
    rows = None
    if classes is not None:
        pool, rows = _keep_classes(pool, classes)
    return PointSets(
        pool,
        points,
        name=card.name if card else folder.name,
        source=card.name if card else str(folder),
        split=split,
        normalize=normalize,
        seed=seed,
        split_seed=split_seed,
        variant=variant,
        up=up or (card.up if card else "z"),
        rows=rows,
    )


def _keep_classes(pool: Pool, classes: Sequence[str]) -> tuple[Pool, Tensor]:
    """The pool with the classes labelled anew, and the rows whose class is kept."""
    for name in classes:
        if name not in pool.classes:
            raise PointsetError(f"no class is called {name!r}: there are {', '.join(pool.classes)}")
    new_labels = np.full(len(pool.classes), -1)
    new_labels[[pool.classes.index(name) for name in classes]] = np.arange(len(classes))
    labels = new_labels[pool.labels]
    skipped = tuple(name for name in pool.skipped if name.split("/")[0] in classes)
    kept = dataclasses.replace(pool, labels=labels, classes=list(classes), skipped=skipped)
    return kept, torch.from_numpy(np.flatnonzero(labels >= 0))
