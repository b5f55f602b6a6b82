"""From a name or a folder to a torch data set."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pointset.data.augment import Axis
from pointset.data.catalogue.cards import Card
from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import check_against_card, locate_data
from pointset.data.catalogue.released import is_released, read_released
from pointset.data.geometric import geometric_pool
from pointset.data.point_sets import PointSets
from pointset.data.pools.cache import mesh_pool, pool_folder
from pointset.data.pools.cloud_pool import cloud_pool
from pointset.data.pools.manifest import Plan
from pointset.data.pools.pool import AS_RELEASED, Pool
from pointset.data.pools.shape_jobs import Sampling
from pointset.errors import PointsetError

__all__ = ["AS_RELEASED", "PointSets", "load_dataset"]


def load_dataset(
    name_or_folder: str | Path | Sequence[Any],
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
            folder, with meshes or clouds (.npy, .npz, .ply, .pcd, .xyz, .txt) as class/split/file, split/class/file
            or class/file, or in the layout of ModelNet40's HDF5 release; or a torch-geometric data set of `Data` with
            `pos`. "shapes10" is built at first use.
        split: "train" or "test" (any split that a class/split/file folder has).
        points: points per set, n. Cloud files may differ in size: those with fewer points give all they have, and
            batches are padded and masked.
        pool_points: points sampled on each mesh, once, to draw the sets from; clouds are their own pool. Pools made
            by `pointset data build --points 10000` are those of pool_points=10000.
        normalize: "unit-sphere", "standardize" or "none"; see `pointset.data.normalize`.
        sampler: how points are chosen on a mesh; see `pointset.data.sampling`. Clouds in HDF5 are sampled
            already.
        seed: of the pools and of the fixed subsets.
        normals: keep the unit normals of the surface at the points; see `PointSets.normals`.
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
    if up not in (None, "y", "z"):
        raise PointsetError(f"up={up!r} is no up axis: choose y or z")
    sampling = Sampling(pool_points, sampler, seed, normals)
    if not isinstance(name_or_folder, str | Path):
        name = source = type(name_or_folder).__name__
        pool, card = geometric_pool(name_or_folder, sampling), None
    else:
        card, folder = locate_data(name_or_folder, progress=progress)
        name, source = (card.name, card.name) if card else (folder.name, str(folder))
        pool = _folder_pool(folder, card, split, sampling, variant, split_seed, progress)
    rows = None
    if classes is not None:
        pool, rows = _keep_classes(pool, classes)
    return PointSets(
        pool,
        points,
        name=name,
        source=source,
        split=split,
        normalize=normalize,
        seed=seed,
        split_seed=split_seed,
        variant=variant,
        up=up or (card.up if card else "z"),
        rows=rows,
    )


def _folder_pool(
    folder: Path,
    card: Card | None,
    split: str,
    sampling: Sampling,
    variant: str | None,
    split_seed: int,
    progress: bool,
) -> Pool:
    """The pool of one split of a folder: of released clouds, of cloud files or of meshes."""
    if is_released(folder):
        _require_no_sampling(folder, sampling)
        if sampling.normals:
            raise PointsetError(f"{folder} holds points without normals: leave normals out")
        clouds = read_released(folder, split, variant)
        check_against_card(clouds.classes, len(clouds.points), card, split, folder, variant)
        return Pool(clouds.points, clouds.names, clouds.labels, clouds.classes, AS_RELEASED)
    if variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={variant!r} out")
    listing = list_folder(folder, split, seed=split_seed)
    check_against_card(listing.classes, len(listing.shapes), card, split, folder)
    pool_name = f"{folder.name}-{split}"
    if listing.kind == "clouds":
        _require_no_sampling(folder, sampling)
        return cloud_pool(pool_name, listing.shapes, listing.classes, normals=sampling.normals, progress=progress)
    kept = _built_with_normals(Plan.of(pool_name, listing.shapes, listing.classes, sampling))
    pool = mesh_pool(pool_name, listing.shapes, listing.classes, **vars(kept), progress=progress)
    return pool if sampling.normals else dataclasses.replace(pool, normals=None)


def _built_with_normals(plan: Plan) -> Sampling:
    """What to open: a pool that was built with normals has the same points, and need not be made without."""
    more = dataclasses.replace(plan.sampling, normals=True)
    if not pool_folder(plan).is_dir() and pool_folder(dataclasses.replace(plan, sampling=more)).is_dir():
        return more
    return plan.sampling


def _require_no_sampling(folder: Path, sampling: Sampling) -> None:
    if sampling.sampler != "uniform":
        raise PointsetError(f"{folder} holds sampled points already: leave sampler={sampling.sampler!r} out")


def _keep_classes(pool: Pool, classes: Sequence[str]) -> tuple[Pool, Tensor]:
    """The pool with the classes labelled anew, and the rows whose class is kept."""
    for name in classes:
        if name not in pool.classes:
            raise PointsetError(f"no class is called {name!r}: there are {', '.join(pool.classes)}")
    new_labels = np.full(len(pool.classes), -1)
    new_labels[[pool.classes.index(name) for name in classes]] = np.arange(len(classes))
    labels = new_labels[pool.labels]
    skipped = tuple(name for name in pool.skipped if not set(classes).isdisjoint(name.split("/")[:2]))
    kept = dataclasses.replace(pool, labels=labels, classes=list(classes), skipped=skipped)
    return kept, torch.from_numpy(np.flatnonzero(labels >= 0))
