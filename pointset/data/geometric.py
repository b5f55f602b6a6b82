"""To torch-geometric and back: sets as `Data`, and any data set of `Data` with positions as sets."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from pointset.data.files.clouds import CloudError, extent_fault, require_cloud
from pointset.data.files.meshes import Mesh
from pointset.data.options import DataOptions
from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.sampling import sample_points, seed_for
from pointset.data.unusable import MOST_SAID, refuse_or_leave_out
from pointset.errors import PointsetError, one_line, quoted


class GeometricSets(Dataset[Any]):
    """Point sets as `torch_geometric.data.Data(pos [n, 3], y [1], normal [n, 3])`, without padding.

    `normal` is there if the sets were loaded with normals. With `fresh`, `pos` is a new random subset each time, and
    there is no `normal`.
    """

    def __init__(self, sets: Any, fresh: torch.Generator | None = None) -> None:
        self.sets, self.fresh = sets, fresh
        self.classes = sets.classes
        self.num_classes = len(sets.classes)

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, index: int) -> Any:
        from torch_geometric.data import Data

        if self.fresh is not None:
            points = self.sets.draw([index], self.fresh)[0]
            return Data(pos=points, y=self.sets.labels[index].reshape(1))
        points, label = self.sets[index]
        data = Data(pos=points, y=torch.tensor([label]))
        if self.sets.has_normals:
            data.normal = self.sets.normals_of(index)
        return data


def geometric_pool(dataset: Any, options: DataOptions, normals: bool) -> Pool:
    """Read a torch-geometric data set into memory.

    Args:
        dataset: a sequence of `Data` with `pos` [n, 3] and one label `y`. Those with `face` [3, F] are meshes and
            are sampled; the others are clouds, and may have `normal` [n, 3]. Classes are called by its `classes`, if it
            has them, else by their labels.
        options: how meshes are sampled; with `on_error="skip"`, items that cannot be used are left out with a warning.
        normals: keep the normals too.

    Returns:
        A pool [M, P, 3] of meshes, or a ragged one of clouds.

    Raises:
        UnreadableShapesError: items have no `pos`, no single label, no normals or no usable points; all were tried.
        PointsetError: meshes stand beside clouds, or there are more labels than classes.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise PointsetError(f"{quoted(dataset)} is neither a name, a folder nor a torch-geometric data set")
    items = [dataset[index] for index in range(len(dataset))]
    if not items:
        raise PointsetError("the torch-geometric data set is empty: give one with at least one item")
    are_meshes = [getattr(item, "face", None) is not None and len(item.face.T) > 0 for item in items]
    if any(are_meshes) != all(are_meshes):
        odd = are_meshes.index(not are_meshes[0])
        raise PointsetError(f"the torch-geometric data set mixes meshes and clouds: item {odd} differs from item 0")
    if not are_meshes[0] and options.sampler != "uniform":
        raise PointsetError(f"the torch-geometric data set holds clouds: leave sampler={options.sampler!r} out")
    make = functools.partial(_sample, options=options) if are_meshes[0] else functools.partial(_cloud, normals=normals)
    made, failures = _try_all(items, make)
    refuse_or_leave_out(failures, len(made), options.on_error, "items", "correct them")
    if failures:
        left_out = f"{len(failures)} of {len(items)} items of the torch-geometric data set are left out"
        warnings.warn(f"{left_out}: {one_line('; '.join(failures.values()), MOST_SAID)}", stacklevel=4)
    labels = np.array([label for label, _ in made.values()], np.int64)
    points = [found for _, (found, _) in made.values()]
    directions: Any = [found for _, (_, found) in made.values()]
    names, known, skipped = list(made), _classes(dataset, labels), tuple(failures)
    if are_meshes[0]:
        kept = np.stack(directions) if normals else None
        return Pool(np.stack(points), names, labels, known, options.sampler, normals=kept, skipped=skipped)
    offsets = np.cumsum([0, *(len(one) for one in points)])
    kept = np.concatenate(directions) if normals else None
    whole = np.concatenate(points)
    return Pool(whole, names, labels, known, AS_RELEASED, normals=kept, skipped=skipped, offsets=offsets)


Arrays = tuple[np.ndarray, np.ndarray | None]
"""Points and normals of one item."""


def _try_all(
    items: Sequence[Any], make: Callable[[Any, int, str], Arrays]
) -> tuple[dict[str, tuple[int, Arrays]], dict[str, str]]:
    """Labels and arrays of the items that can be used, and why the others cannot, by name."""
    made, failures = dict[str, tuple[int, Arrays]](), dict[str, str]()
    for index, item in enumerate(items):
        name = f"{index:06}"
        try:
            made[name] = _label(item, index), make(item, index, name)
        except PointsetError as error:
            failures[name] = str(error)
    return made, failures


def _label(item: Any, index: int) -> int:
    if getattr(item, "pos", None) is None:
        raise PointsetError(f"item {index} of the torch-geometric data set has no pos: give Data with positions")
    label: Any = getattr(item, "y", None)
    whole = isinstance(label, int) or (
        isinstance(label, torch.Tensor) and label.numel() == 1 and not label.dtype.is_floating_point
    )
    if not whole or int(label) < 0:
        raise PointsetError(
            f"item {index} of the torch-geometric data set has y={quoted(label)}: give one class from 0 up"
        )
    return int(label)


def _classes(dataset: Any, labels: np.ndarray) -> list[str]:
    needed = int(labels.max()) + 1
    found = getattr(dataset, "classes", None)
    known = [str(label) for label in range(needed)] if found is None else [str(name) for name in found]
    if len(known) < needed:
        raise PointsetError(f"the torch-geometric data set has label {needed - 1}, and only {len(known)} class names")
    return known


def _sample(item: Any, index: int, name: str, options: DataOptions) -> Arrays:
    seed = seed_for(options.data_seed, name)
    try:
        mesh = Mesh(_array(item.pos), _array(item.face).T)
        return sample_points(mesh, options.pool_points, seed=seed, sampler=options.sampler, normals=True)
    except PointsetError as error:
        raise PointsetError(f"item {index} of the torch-geometric data set cannot be sampled: {error}") from error


def _cloud(item: Any, index: int, name: str, normals: bool) -> Arrays:
    try:
        columns = _array(item.pos)
        normal = getattr(item, "normal", None)
        if normals and normal is not None:
            columns = np.hstack([columns, _array(normal)])
        cloud = require_cloud(columns, normals)
        if fault := extent_fault([cloud.points]):
            raise CloudError(f"the cloud {fault}")
    except (PointsetError, ValueError) as error:
        raise PointsetError(f"item {index} of the torch-geometric data set cannot be used: {error}") from error
    return cloud.points, cloud.normals


def _array(values: Any) -> np.ndarray:
    return values.numpy(force=True) if isinstance(values, torch.Tensor) else np.asarray(values)
