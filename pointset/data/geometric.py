"""Convert to and from torch-geometric: point sets as `Data`, and datasets of `Data` with positions as pools."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from pointset.data.in_memory import Arrays, as_array, pool_of, try_all, usable_cloud
from pointset.data.options import DataOptions
from pointset.data.pool import Pool
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_arrays, seed_for
from pointset.errors import PointsetError, quoted


class GeometricSets(Dataset[Any]):
    """Point sets as `torch_geometric.data.Data(pos [n, 3], y [1], normal [n, 3])`, without padding.

    `normal` is present if the sets were loaded with normals, and `x` [n, f] if they have features. With `fresh`, `pos`
    is a new random subset at each access, and there is no `normal`.

    Args:
        sets: the `PointSets` to convert.
        fresh: generator of a new subset at each access; None gives the fixed subsets.

    Example:
        >>> train.to_geometric()[0]
        Data(y=[1], pos=[32, 3])
    """

    def __init__(self, sets: Any, fresh: torch.Generator | None = None) -> None:
        self.sets, self.fresh = sets, fresh
        self.classes = sets.classes
        self.num_classes = len(sets.classes)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> Any:
        from torch_geometric.data import Data

        points, label = self.sets[index]
        if self.fresh is not None:
            points = self.sets.draw([index], self.fresh)[0]
        data = Data(pos=points[:, :3], y=torch.tensor([label]))
        if points.shape[1] > 3:
            data.x = points[:, 3:]
        if self.sets.has_normals and self.fresh is None:
            data.normal = self.sets.array("normals", index)
        return data


def geometric_pool(dataset: Any, options: DataOptions, normals: bool) -> Pool:
    """Read a torch-geometric dataset into memory.

    Args:
        dataset: a sequence of `Data` with `pos` [n, 3] and one label `y`. Those with `face` [3, F] are meshes and
            are sampled; the others are clouds, and may have `normal` [n, 3], `x` [n, f] (the feature "columns") and
            other features [n] or [n, f] by name. The class names are its `classes`, if it has them, else the labels.
        options: how meshes are sampled; with `on_error="skip"`, items that cannot be used are left out with a warning.
        normals: keep the normals too.

    Returns:
        A pool [M, P, 3] for meshes, a ragged pool for clouds.

    Raises:
        UnreadableShapesError: items have no `pos`, no single label, no normals or no usable points; all are checked.
        PointsetError: the dataset mixes meshes and clouds, or has more labels than classes.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise PointsetError(f"{quoted(dataset)} is neither a name, a folder nor a torch-geometric dataset")
    items = [dataset[index] for index in range(len(dataset))]
    if not items:
        raise PointsetError("the torch-geometric dataset is empty: give one with at least one item")
    are_meshes = _are_meshes(items, options)
    make = functools.partial(_sample if are_meshes else _cloud, options=options, normals=normals)
    names = [f"{index:06}" for index in range(len(items))]
    made, skipped = try_all(
        names,
        lambda index, name: (_label(items[index], index), make(items[index], index, name)),
        options.on_error,
        "items",
        "the torch-geometric dataset",
        stacklevel=5,  # the caller of load_dataset
    )
    labels, clouds = [label for label, _ in made.values()], {name: arrays for name, (_, arrays) in made.items()}
    known = _classes(dataset, max(labels) + 1)
    pool = pool_of(clouds, labels, known, skipped, even=are_meshes)
    return dataclasses.replace(pool, sampler=options.sampler) if are_meshes else pool


def _are_meshes(items: Sequence[Any], options: DataOptions) -> bool:
    """True if all items are meshes, False if all are clouds; a PointsetError if mixed, or if options do not apply."""
    have_faces = [getattr(item, "face", None) is not None and len(item.face.T) > 0 for item in items]
    if any(have_faces) != all(have_faces):
        odd = have_faces.index(not have_faces[0])
        raise PointsetError(f"the torch-geometric dataset mixes meshes and clouds: item {odd} differs from item 0")
    if not have_faces[0] and options.sampler != "uniform":
        raise PointsetError(f"the torch-geometric dataset holds clouds: leave sampler={options.sampler!r} out")
    if have_faces[0] and options.further:
        raise PointsetError(
            "the torch-geometric dataset holds meshes, whose points have only normals: leave "
            f"{', '.join(options.further)} out"
        )
    return have_faces[0]


def _label(item: Any, index: int) -> int:
    if getattr(item, "pos", None) is None:
        raise PointsetError(f"item {index} of the torch-geometric dataset has no pos: give Data with positions")
    label: Any = getattr(item, "y", None)
    whole = isinstance(label, int) or (
        isinstance(label, torch.Tensor) and label.numel() == 1 and not label.dtype.is_floating_point
    )
    if not whole or int(label) < 0:
        raise PointsetError(
            f"item {index} of the torch-geometric dataset has y={quoted(label)}: give one class from 0 up"
        )
    return int(label)


def _classes(dataset: Any, needed: int) -> list[str]:
    names = getattr(dataset, "classes", None)
    known = [str(label) for label in range(needed)] if names is None else [str(name) for name in names]
    if len(known) < needed:
        raise PointsetError(f"the torch-geometric dataset has label {needed - 1}, and only {len(known)} class names")
    return known


def _sample(item: Any, index: int, name: str, options: DataOptions, normals: bool) -> Arrays:
    seed = seed_for(options.data_seed, name)
    try:
        mesh = Mesh(as_array(item.pos), as_array(item.face).T)
        return sample_arrays(mesh, options.pool_points, seed=seed, sampler=options.sampler, normals=normals)
    except PointsetError as error:
        raise PointsetError(f"item {index} of the torch-geometric dataset cannot be sampled: {error}") from error


def _cloud(item: Any, index: int, name: str, options: DataOptions, normals: bool) -> Arrays:
    try:
        values_by_name = {what: getattr(item, "x" if what == "columns" else what, None) for what in options.further}
        if lacking := [what for what, values in values_by_name.items() if values is None]:
            raise PointsetError(f"lacks the feature {quoted(lacking[0])}")
        normal = getattr(item, "normal", None) if normals else None
        return usable_cloud(item.pos, normal, normals, list(values_by_name.values()))
    except (PointsetError, ValueError) as error:
        raise PointsetError(f"item {index} of the torch-geometric dataset cannot be used: {error}") from error
