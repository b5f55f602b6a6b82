"""The points of datasets of torch-geometric."""

import dataclasses
from typing import Any

import torch

from pointset.data.arrays import as_array, from_arrays
from pointset.data.options import NORMALS, DataOptions
from pointset.data.pool import AS_RELEASED, Pool
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_arrays, seed_for
from pointset.errors import PointsetError, quoted


def geometric_pool(dataset: Any, options: DataOptions) -> Pool:
    """The points of a torch-geometric dataset.

    Args:
        dataset: a sequence of `Data` with `pos` [n, 3] and one label `y`. Those with `face` [3, F] are meshes and
            are sampled; the others are clouds, and may have `normal` [n, 3], `x` [n, f] (the feature "columns") and
            other features [n] or [n, f] by name. The class names are its `classes`, if it has them, else the labels.
        options: how meshes are sampled, and which features are read.

    Raises:
        UnreadableShapesError: clouds cannot be used; see `from_arrays`.
        PointsetError: an item has no `pos`, no single label, or lacks a feature, or a mesh cannot be sampled.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise PointsetError(f"{quoted(dataset)} is neither a name, a folder nor a torch-geometric dataset")
    arrays, labels, meshes = list[dict[str, Any]](), list[int](), 0
    for index in range(len(dataset)):
        item = dataset[index]
        meshes += getattr(item, "face", None) is not None
        try:
            labels.append(_label(item))
            arrays.append(_geometric_arrays(item, index, options))
        except PointsetError as error:
            raise PointsetError(f"item {index} of the torch-geometric dataset cannot be used: {error}") from error
    if 0 < meshes < len(arrays):
        raise PointsetError(f"the torch-geometric dataset mixes {meshes} meshes and {len(arrays) - meshes} clouds")
    if not meshes and options.sampler != "uniform":
        raise PointsetError(f"the torch-geometric dataset holds clouds: leave sampler={options.sampler!r} out")
    names = getattr(dataset, "classes", None) or [str(label) for label in range(max(labels, default=-1) + 1)]
    columns: dict[str, Any] = {name: [own[name] for own in arrays] for name in (arrays[0] if arrays else ())}
    sets = from_arrays(columns.pop("points", []), labels, names, columns, on_error=options.on_error)
    return dataclasses.replace(sets.source_pool, sampler=options.sampler if meshes else AS_RELEASED)


def _geometric_arrays(item: Any, index: int, options: DataOptions) -> dict[str, Any]:
    if getattr(item, "face", None) is not None:
        if options.further:
            raise PointsetError(f"its points have only normals: leave {', '.join(options.further)} out")
        seed = seed_for(options.data_seed, f"{index:06}")
        mesh = Mesh(as_array(item.pos), as_array(item.face).T)
        return sample_arrays(mesh, options.pool_points, seed=seed, sampler=options.sampler, normals=options.has_normals)
    fields = {"points": "pos", **({NORMALS: "normal"} if options.has_normals else {})}
    fields |= {name: "x" if name == "columns" else name for name in options.further}
    if lacking := [name for name, field in fields.items() if getattr(item, field, None) is None]:
        raise PointsetError(f"it lacks {', '.join(lacking)}")
    return {name: getattr(item, field) for name, field in fields.items()}


def _label(item: Any) -> int:
    label: Any = getattr(item, "y", None)
    single = isinstance(label, torch.Tensor) and label.numel() == 1 and not label.dtype.is_floating_point
    whole = isinstance(label, int) or single
    if getattr(item, "pos", None) is None or not whole or int(label) < 0:
        raise PointsetError(f"it must have positions pos and one class y from 0, got {quoted(item)}")
    return int(label)
