"""From a name, a folder or a torch-geometric data set to sets of points."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pointset.data.catalogue.cards import Card
from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import check_against_card, locate_data
from pointset.data.catalogue.released import is_released, read_released
from pointset.data.geometric import geometric_pool
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.pool import Pool
from pointset.data.pools.plan import Plan, Sampling
from pointset.data.pools.store import load_pool
from pointset.errors import PointsetError


def load_dataset(
    name_or_folder: str | Path | Sequence[Any],
    split: str = "train",
    points: int = 1024,
    *,
    seed: int = 0,
    normals: bool = False,
    classes: Sequence[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> PointSets:
    """Load one split of a data set as sets of points.

    Args:
        name_or_folder: a card's name, as text (see `list_cards`), whose data is looked for in `home()/datasets`; or a
            folder, with meshes or clouds (.npy, .npz, .ply, .pcd, .xyz, .txt) as class/split/file, split/class/file
            or class/file, or in a released layout (ModelNet40's HDF5 files, ScanObjectNN, ModelNet40-C); or a
            torch-geometric data set of `Data` with `pos`. "shapes10" is built at first use.
        split: "train" or "test" (any split that a class/split/file folder has).
        points: points per set, n. Cloud files may differ in size: those with fewer points give all they have, and
            batches are padded and masked.
        seed: of the pools and of the fixed subsets; `DataOptions.data_seed`.
        normals: keep the unit normals of the surface at the points; see `PointSets.normals`.
        classes: keep only these, labelled in this order; None keeps all.
        progress: show a bar while pools are made (on a terminal only).
        options: other fields of `DataOptions`: pool_points, normalize, sampler, split_seed, variant, up. Pools made
            by `pointset data build --points 10000` are those of pool_points=10000.

    Raises:
        PointsetError: the name is unknown, the data is absent, damaged or in no known layout, or an option is wrong.
    """
    chosen = DataOptions.from_dict({"points": points, "data_seed": seed, **options})
    return load_split(name_or_folder, split, chosen, normals=normals, classes=classes, progress=progress)


def load_sets(data: str | Path, options: DataOptions, *, progress: bool = True) -> tuple[PointSets, PointSets]:
    """The training and the test sets that the options describe."""
    return load_split(data, "train", options, progress=progress), load_split(data, "test", options, progress=progress)


def load_split(
    data: str | Path | Sequence[Any],
    split: str,
    options: DataOptions,
    *,
    normals: bool = False,
    classes: Sequence[str] | None = None,
    progress: bool = True,
) -> PointSets:
    """One split of a data set under the options; arguments and errors as for `load_dataset`."""
    if not isinstance(data, str | Path):
        pool = geometric_pool(data, options, normals)
        sets = PointSets(pool, options, name=type(data).__name__, split=split)
    else:
        card, folder = locate_data(data, progress=progress)
        pool = _folder_pool(folder, card, split, options, normals, progress)
        name, source = (card.name, card.name) if card else (folder.name, str(folder))
        up = options.up or (card.up if card else "z")
        sets = PointSets(pool, dataclasses.replace(options, up=up), name=name, source=source, split=split)
    if classes is None:
        return sets
    pool, rows = _keep_classes(sets.source_pool, classes)
    return PointSets(pool, sets.options, name=sets.name, source=sets.source, split=split, rows=rows)


def _folder_pool(
    folder: Path, card: Card | None, split: str, options: DataOptions, normals: bool, progress: bool
) -> Pool:
    """The pool of one split of a folder: of released clouds, of cloud files or of meshes."""
    if is_released(folder):
        _require_no_sampling(folder, options)
        if normals:
            raise PointsetError(f"{folder} holds points without normals: leave normals out")
        pool = read_released(folder, split, options.variant)
        check_against_card(pool.classes, len(pool), card, split, folder, options.variant)
        return pool
    if options.variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={options.variant!r} out")
    listing = list_folder(folder, split, seed=options.split_seed)
    check_against_card(listing.classes, len(listing.shapes), card, split, folder)
    sampling = Sampling(options.pool_points, options.sampler, options.data_seed, normals)
    if listing.kind == "clouds":
        _require_no_sampling(folder, options)
        sampling = Sampling.none(normals)
    plan = _built_with_normals(Plan.of(f"{folder.name}-{split}", listing, sampling))
    pool = load_pool(plan, progress=progress)
    return pool if normals else dataclasses.replace(pool, normals=None)


def _built_with_normals(plan: Plan) -> Plan:
    """The plan, or the same with normals where only that pool is there: it has the same points."""
    more = dataclasses.replace(plan, sampling=dataclasses.replace(plan.sampling, normals=True))
    return more if more.folder.is_dir() and not plan.folder.is_dir() else plan


def _require_no_sampling(folder: Path, options: DataOptions) -> None:
    if options.sampler != "uniform":
        raise PointsetError(f"{folder} holds sampled points already: leave sampler={options.sampler!r} out")


def _keep_classes(pool: Pool, classes: Sequence[str]) -> tuple[Pool, Tensor]:
    """The pool with new labels for the chosen classes, and the rows of their shapes."""
    for name in classes:
        if name not in pool.classes:
            raise PointsetError(f"no class is called {name!r}: there are {', '.join(pool.classes)}")
    new_labels = np.full(len(pool.classes), -1)
    new_labels[[pool.classes.index(name) for name in classes]] = np.arange(len(classes))
    labels = new_labels[pool.labels]
    skipped = tuple(name for name in pool.skipped if not set(classes).isdisjoint(name.split("/")[:2]))
    kept = dataclasses.replace(pool, labels=labels, classes=list(classes), skipped=skipped)
    return kept, torch.from_numpy(np.flatnonzero(labels >= 0))
