"""Datasets of torch-geometric as point sets."""

import dataclasses
from typing import Any

import torch

from pointset.data.arrays import as_array, from_arrays
from pointset.data.options import NORMALS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_arrays, seed_for
from pointset.errors import PointsetError, quoted


def from_geometric(dataset: Any, split: str, options: DataOptions, *, normals: bool) -> PointSets:
    """Make point sets from a torch-geometric dataset.

    Args:
        dataset: a sequence of `Data` with `pos` [n, 3] and one label `y`. Those with `face` [3, F] are meshes and
            are sampled; the others are clouds, and may have `normal` [n, 3], `x` [n, f] (the feature "columns") and
            other features [n] or [n, f] by name. The class names are its `classes`, if it has them, else the labels.
            With `options.labels`, clouds need that attribute in place of one `y`: integers [n], as "y" of ShapeNet.
        split: name of the split.
        options: how meshes are sampled, and which features are read.
        normals: keep the normals too.

    Raises:
        UnreadableShapesError: clouds cannot be used; see `from_arrays`.
        PointsetError: an item has no `pos`, no single label, or lacks a feature, or a mesh cannot be sampled.
    """
    if not hasattr(dataset, "__getitem__") or not hasattr(dataset, "__len__"):
        raise PointsetError(f"{quoted(dataset)} is neither a name, a folder nor a torch-geometric dataset")
    arrays: list[dict[str, Any]] = []
    labels, meshes = list[int](), 0
    for index in range(len(dataset)):
        item = dataset[index]
        meshes += getattr(item, "face", None) is not None
        labels.append(0 if options.labels else _label(item, index))
        try:
            arrays.append(_arrays(item, index, options, normals))
        except PointsetError as error:
            raise PointsetError(f"item {index} of the torch-geometric dataset cannot be used: {error}") from error
    if 0 < meshes < len(arrays):
        raise PointsetError(f"the torch-geometric dataset mixes {meshes} meshes and {len(arrays) - meshes} clouds")
    if not meshes and options.sampler != "uniform":
        raise PointsetError(f"the torch-geometric dataset holds clouds: leave sampler={options.sampler!r} out")
    names = getattr(dataset, "classes", None) or [str(label) for label in range(max(labels, default=-1) + 1)]
    features = {
        name: [own[name] for own in arrays]
        for name in (arrays[0] if arrays else ())
        if name not in ("points", "point_labels")
    }
    points = [own["points"] for own in arrays]
    how: dict[str, Any] = {"split": split, "on_error": options.on_error}
    if options.labels:
        if meshes:
            raise PointsetError("labels per point are for clouds: the torch-geometric dataset holds meshes")
        how["point_labels"] = [own["point_labels"] for own in arrays]
        sets = from_arrays(points, None, None, features, **how)
    else:
        sets = from_arrays(points, labels, names, features, **how)
    pool = sets.source_pool
    pool = dataclasses.replace(pool, sampler=options.sampler if meshes else pool.sampler)
    return PointSets(pool, options, name=type(dataset).__name__, split=split)


def _arrays(item: Any, index: int, options: DataOptions, normals: bool) -> dict[str, Any]:
    if getattr(item, "face", None) is not None:
        if options.further:
            raise PointsetError(f"its points have only normals: leave {', '.join(options.further)} out")
        seed = seed_for(options.data_seed, f"{index:06}")
        mesh = Mesh(as_array(item.pos), as_array(item.face).T)
        return sample_arrays(mesh, options.pool_points, seed=seed, sampler=options.sampler, normals=normals)
    fields = {"points": "pos", **({NORMALS: "normal"} if normals else {})}
    fields |= {name: "x" if name == "columns" else name for name in options.further}
    fields |= {"point_labels": options.labels} if options.labels else {}
    if lacking := [name for name, field in fields.items() if getattr(item, field, None) is None]:
        raise PointsetError(f"it lacks {', '.join(lacking)}")
    return {name: getattr(item, field) for name, field in fields.items()}


def _label(item: Any, index: int) -> int:
    label: Any = getattr(item, "y", None)
    whole = isinstance(label, int) or (
        isinstance(label, torch.Tensor) and label.numel() == 1 and not label.dtype.is_floating_point
    )
    if getattr(item, "pos", None) is None or not whole or int(label) < 0:
        raise PointsetError(
            f"item {index} of the torch-geometric dataset must have positions pos and one class y from 0, "
            f"got {quoted(item)}"
        )
    return int(label)
