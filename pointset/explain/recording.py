"""Attention maps of a model, recorded during one forward pass."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.point_sets import PointSets
from pointset.data.preparation import Prepared, is_one_shape
from pointset.data.ragged import pad_sets
from pointset.errors import PointsetError, described
from pointset.explain.hooks import hooked_modules, kinds_by_size, recording_by_hooks
from pointset.explain.maps import AttentionMap
from pointset.inputs import InputError, as_mask, as_points, require_model
from pointset.nn.layers import in_evaluation_mode
from pointset.nn.masks import PADDING_MASKS
from pointset.nn.modules import MapKind, Side
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import list_clouds

SIDES: dict[tuple[bool, bool], Side] = {(True, True): "both", (True, False): "queries", (False, True): "keys"}


def attention_maps(model: nn.Module, points: Any, mask: Tensor | None = None) -> list[AttentionMap]:
    """Run a model once in evaluation mode, and return one map for each attention, in the order of the computation.

    Afterwards, the model is again in the mode (training or evaluation) that it had before.

    Args:
        model: any module that contains attention blocks of this package, `torch.nn.MultiheadAttention` (as in
            `nn.TransformerEncoder` and torch-geometric's set attention) or torch-geometric's `AttentionalAggregation`.
            The mask is passed to the argument of `forward` named `mask`, `key_padding_mask`, `src_key_padding_mask` or
            `padding_mask` (the last three are True at padding), or else to a second argument without a default. The
            layer names of an ensemble begin with `model.members`. `inspect_shape` records only the ensemble's network.
        points: one cloud [n, 3], which gives maps [heads, queries, keys]; a batch [B, n, 3], which gives maps
            [B, heads, queries, keys]; or any other input of `model.predict`. A trained model of the zoo prepares shapes
            as `model.predict` does, so a cloud may have any unit, and `map.points` are the prepared points. `PointSets`
            and points with local features are not changed.
        mask: [n] or [B, n], True at real points.

    Returns:
        One map for each attention.

    Raises:
        PointsetError: the model has no attention, or `points` or `mask` has the wrong shape for the model.

    Example:
        >>> maps = pointset.attention_maps(model, test.points[0])
        >>> [(map.layer, list(map.weights.shape)) for map in maps][:2]
        [('encoder.0.reads', [4, 4, 32]), ('encoder.0.writes', [4, 32, 4])]
    """
    require_model(model)
    return record_maps(model, *_prepared(model, points, mask))


def record_maps(model: nn.Module, points: Any, mask: Any = None) -> list[AttentionMap]:
    """Return the attention maps of prepared points. See `attention_maps`."""
    points, mask = as_clouds(model, points, mask)
    modules = dict(attentions(model))
    if not modules and not hooked_modules(model):
        name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
        raise PointsetError(f"{name} has no attention maps: use a model with attention, such as isab16-pma")
    is_single = points.dim() == 2
    if is_single:
        points, mask = (points if mask is None else points[mask])[None], None
    masks, device = mask_argument(model, points, mask), next(model.parameters()).device
    hooks = recording_by_hooks(model, mask, len(points))
    with torch.no_grad(), in_evaluation_mode(model), _recording(modules) as records, hooks as hooked:
        model(points.to(device), **{name: each.to(device) for name, each in masks.items()})
    kinds, recorded = attention_kinds(model), []
    for layer, weights in records:
        kind, side = kinds[layer]
        if side == "both":
            queries, keys = (size == points.shape[1] for size in weights.shape[-2:])
            side = SIDES.get((queries, keys), "neither")
        recorded.append((layer, kind, weights, side))
    recorded += [
        (record.layer, kind, record.weights, side) for record, kind, side in kinds_by_size(hooked, *points.shape[:2])
    ]
    kept: dict[str, Any] = {"up": getattr(getattr(model, "preparation", None), "up", "z"), "points": points.cpu()}
    real = None if mask is None else mask.cpu()
    maps = [AttentionMap(*one, None if one[3] == "neither" else real, **kept) for one in recorded]
    return [attention[0] for attention in maps] if is_single else maps


def mask_argument(model: nn.Module, points: Tensor, mask: Tensor | None) -> dict[str, Tensor]:
    """Return the mask as a keyword argument of the model's `forward`. See `attention_maps`."""
    parameters = list(inspect.signature(model.forward).parameters.values())[1:]
    named = [each for each in parameters if each.name in ("mask", *PADDING_MASKS)]
    required = [each for each in parameters if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
    chosen = next(iter([*named, *required[:1]]), None)
    if chosen is None and mask is not None:
        raise InputError(f"{type(model).__name__}.forward takes no mask: give sets of one size, or one at a time")
    if chosen is None or (mask is None and chosen.default is not chosen.empty):
        return {}
    mask = torch.ones(points.shape[:2], dtype=torch.bool) if mask is None else mask
    return {chosen.name: ~mask if chosen.name in PADDING_MASKS else mask}


def each_shape(model: nn.Module, shapes: Any) -> tuple[Sequence[Any], bool]:
    """Return the shapes in an input of `model.predict`, and True if the input is one shape instead of several."""
    if isinstance(shapes, PointSets):
        sets = shapes.with_local_features(getattr(model, "local_features", "none"))
        clouds = [sets[row][0] for row in range(len(sets))]
        return [Prepared(cloud, cloud[:, :3].numpy()) for cloud in clouds], False
    axes = getattr(shapes, "ndim", 0)
    if axes == 2 or is_one_shape(shapes):
        return [shapes], True
    return shapes if axes == 3 else list_clouds(shapes, None, getattr(model, "inputs", 3)), False


def explain_each(model: nn.Module, shapes: Any, explain: Callable[[Tensor], Any], least: int = 1) -> Any:
    """Return `explain(cloud [n, d])` for one shape, or a list of results for several shapes.

    All points of an array or a tensor are used, so that results for points are in the order of the rows of the array.
    """
    require_model(model)
    listed, single = each_shape(model, shapes)
    explained = []
    for shape in listed:
        rows = {"points": len(shape)} if isinstance(shape, Tensor | np.ndarray) else {}
        cloud, _ = as_clouds(model, _prepare(model, shape, **rows))
        if len(cloud) < least:
            raise InputError(f"points must be [n, {cloud.shape[-1]}], n at least {least}, got {described(shape)}")
        explained.append(explain(cloud))
    return explained[0] if single else explained


def as_clouds(model: nn.Module, points: Any, mask: Any = None) -> tuple[Tensor, Tensor | None]:
    """Check a prepared cloud or batch, and return it as tensors for `model(points, mask)`. Empty sets are errors."""
    widths = getattr(model, "widths", None) or (getattr(points, "shape", [3])[-1],)
    width = widths[0]
    clouds = as_points(points, widths, next(model.parameters(), None), "[n, {0}] or [B, n, {0}]")
    if clouds.dim() not in (2, 3):
        raise InputError(f"points must be [n, {width}] or [B, n, {width}], got {described(points)}")
    keep = as_mask(mask, clouds)
    real = clouds.reshape(-1, clouds.shape[-1]) if keep is None else clouds[keep]
    if not len(real) or (keep is not None and not bool(keep.any(dim=-1).all())):
        raise InputError("every cloud must have at least one real point, got an empty one")
    if not bool(real.isfinite().all()):
        raise InputError("coordinates must be finite, got NaN or infinity: leave the point out, or mask it")
    return clouds, keep


def _prepared(model: nn.Module, shapes: Any, mask: Any) -> tuple[Any, Any]:
    """Return points and mask of any input of `model.predict`, prepared unless `_prepares` is False for an array."""
    if isinstance(shapes, PointSets):
        sets = shapes.with_local_features(getattr(model, "local_features", "none"))
        return sets.points, sets.mask
    if isinstance(shapes, Tensor) or (isinstance(shapes, np.ndarray) and shapes.dtype.kind != "O"):
        if not _prepares(model, shapes):
            return shapes, mask
        points, mask = as_clouds(model, shapes, mask)
        shapes, mask = (points, mask) if points.dim() == 3 or mask is None else (points[mask], None)
    listed = list_clouds(shapes, mask, getattr(model, "inputs", 3))
    clouds = [torch.as_tensor(_prepare(model, shape)) for shape in listed]
    return (clouds[0], None) if is_one_shape(shapes) or getattr(shapes, "ndim", 1) == 2 else pad_sets(clouds)


def _prepares(model: nn.Module, points: Tensor | np.ndarray) -> bool:
    """Return True if the model is a trained model of the zoo and the points have no local features."""
    return isinstance(model, Classifier) and model.has_preparation and points.shape[-1:] == (model.inputs,)


def _prepare(model: nn.Module, shape: Any, **reading: Any) -> Any:
    """Return the prepared points of one shape. An array that the model does not prepare is returned unchanged."""
    if isinstance(shape, Prepared):
        return shape.points
    if isinstance(shape, Tensor | np.ndarray) and not _prepares(model, shape):
        return shape
    if not isinstance(model, Classifier):
        raise InputError(f"a {type(model).__name__} cannot prepare a file or a mesh: give its points [n, 3]")
    return model.prepare(shape, **reading).points


@contextmanager
def _recording(modules: dict[str, Any]) -> Iterator[list[tuple[str, Tensor]]]:
    """Record the weights of each attention that is called inside this block, on the CPU, in float32 or float64."""
    records: list[tuple[str, Tensor]] = []
    before = {name: attention.record for name, attention in modules.items()}
    for name, attention in modules.items():
        attention.record = lambda weights, name=name: records.append(
            (name, weights.cpu().to(torch.promote_types(weights.dtype, torch.float32)))
        )
    try:
        yield records
    finally:
        for name, attention in modules.items():
            attention.record = before[name]


def attentions(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Yield the layer name and the module of each attention of a model."""
    for name, module in model.named_modules():
        if hasattr(module, "record"):
            yield name.removesuffix("multihead").removesuffix("."), module


def attention_kinds(model: nn.Module) -> dict[str, tuple[MapKind, Side]]:
    """Return the kind of each attention and the side of the points (queries or keys), by the name of the layer.

    Both come from the attribute `maps` of the outermost block class that lists the attention. An attention that no
    block lists has kind "self".
    """
    kinds: dict[str, tuple[MapKind, Side]] = {}
    for name, module in model.named_modules():
        for inner, kind in getattr(type(module), "maps", {}).items():
            kinds.setdefault(f"{name}.{inner}".strip("."), kind)
    return {name: kinds.get(name, ("self", "both")) for name, _ in attentions(model)}
