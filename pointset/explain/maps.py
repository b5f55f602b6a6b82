"""Attention maps as data: what each query of every attention in a model reads.

`import pointset` loads this module for `pointset.attention_maps`: it must stay light.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from pointset.errors import PointsetError, described, quoted
from pointset.explain.hooks import hooked_modules, kinds_by_size, recording_by_hooks
from pointset.inputs import InputError, as_mask, as_points, require_model
from pointset.nn.layers import in_evaluation_mode
from pointset.nn.modules import MapKind, Side

if TYPE_CHECKING:
    from pandas import DataFrame

_SIDES: dict[tuple[bool, bool], Side] = {(True, True): "both", (True, False): "queries", (False, True): "keys"}


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The weights of one attention, for one cloud or a batch of clouds. Rows sum to 1 over the keys.

    (Rows of user-defined weights functions may have other sums.) The kinds are:

    - "reads": each inducing point (query) over the points (keys);
    - "writes": each point (query) over the inducing points (keys);
    - "pools": each seed (query) over the points (keys);
    - "self": each element over all elements, of the set itself or of the pooled vectors;
    - "support": equal weights of the points in the support of a prediction, see `pointset.explain.support`.

    Heads are averaged only if `heads` is called. For a batch, `map[i]` is the map of one cloud without its padding.

    Example:
        >>> map = pointset.find_map(pointset.attention_maps(model, test.points[0]), kind="pools")
        >>> map.weights.shape, float(map.weights.sum(dim=-1).mean().round(decimals=4))
        (torch.Size([4, 1, 32]), 1.0)
        >>> map.relative().mean(dim=-1).round(decimals=4).flatten().tolist()  # 1 is uniform attention
        [1.0, 1.0, 1.0, 1.0]
    """

    layer: str
    """The name of the module inside the model, such as "encoder.0.reads"."""
    kind: MapKind
    """The kind of the map."""
    weights: Tensor
    """[heads, queries, keys] for one cloud, [B, heads, queries, keys] for a batch; on the CPU. Padded keys have 0."""
    points_are: Side
    """Whether the queries, the keys, both or neither are the points of the cloud."""
    mask: Tensor | None = None
    """Mask of a padded batch: bool [B, n], True at real points."""
    up: Literal["x", "y", "z"] = "z"
    """The upward axis of the points, that of the model's preparation; for pictures."""

    def __repr__(self) -> str:
        """A summary in one line."""
        *batch, heads, queries, keys = self.weights.shape
        clouds = "".join(f"{count} clouds, " for count in batch)
        sizes = f"{heads} head{'s' * (heads != 1)}, {queries} quer{'y' if queries == 1 else 'ies'}, {keys} keys"
        return f"AttentionMap {self.layer} ({self.kind}): {clouds}{sizes}; {self.points_are} are points"

    def __len__(self) -> int:
        """Number of clouds in the batch."""
        if self.weights.dim() == 3:
            raise TypeError(f"the map of {self.layer} has no length: it is of one cloud, not of a batch")
        return len(self.weights)

    def __getitem__(self, index: int) -> AttentionMap:
        """The map of one cloud of a batch, without its padded queries and keys."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"the batch has {len(self)} clouds, got index {index}")
        weights = self.weights[index]
        if self.mask is not None:
            real = self.mask[index]
            if self.points_are in ("keys", "both"):
                weights = weights[:, :, real]
            if self.points_are in ("queries", "both"):
                weights = weights[:, real]
        return dataclasses.replace(self, weights=weights, mask=None)

    def relative(self) -> Tensor:
        """The weights times the number of real keys: 1 is uniform attention for a set of any size."""
        return self.weights * self._keys()

    def entropy(self) -> Tensor:
        """Normalised entropy of each row, entropy / log n: 1 is uniform, 0 is a single key. [..., heads, queries].

        A row over one key, or over none, has entropy 1. A row that does not sum to 1 is first divided by its sum; the
        entropy of a row with a negative weight is NaN.
        """
        shares = self.weights / self.weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)
        nats = torch.special.entr(shares).sum(dim=-1).where((shares >= 0).all(dim=-1), math.nan)
        greatest = self._keys().log().clamp(min=0)[..., 0]
        return torch.where(greatest > 0, nats / greatest.clamp(min=1e-12), 1.0)

    def row_distance(self) -> Tensor:
        """Mean distance between the rows of different queries, [..., heads]: 0 if all are equal, 1 if none overlap.

        The distance of two rows is their total variation, half the sum of absolute differences. Padded queries do not
        count. NaN for a single query.
        """
        distances = torch.cdist(self.weights, self.weights, p=1.0) / 2
        queries = torch.tensor(float(self.weights.shape[-2]))
        if self.mask is not None and self.points_are in ("queries", "both"):
            padded = ~self.mask[:, None]
            distances = distances.masked_fill(padded[..., None] | padded[..., None, :], 0)
            queries = self.mask.sum(dim=1, keepdim=True)
        return (distances.sum(dim=(-1, -2)) / (queries * (queries - 1))).where(queries > 1, math.nan)

    def heads(self, how: Literal["mean", "max"]) -> AttentionMap:
        """The map with its heads combined into one by mean or max. Rows of a mean sum to 1; rows of a maximum do not.

        Raises:
            PointsetError: `how` is neither "mean" nor "max".
        """
        if how not in ("mean", "max"):
            raise PointsetError(f"heads are combined by mean or max, got {quoted(how)}")
        over = self.weights.mean if how == "mean" else self.weights.amax
        return dataclasses.replace(self, weights=over(dim=-3, keepdim=True))

    def to_pandas(self) -> DataFrame:
        """A row per weight: layer, kind, head, query, key, weight, relative (1 is uniform); of a batch, also cloud.

        Padded queries and keys are left out.

        Example:
            >>> table = pointset.find_map(pointset.attention_maps(model, test.points[0]), kind="pools").to_pandas()
            >>> len(table), list(table.columns)
            (128, ['layer', 'kind', 'head', 'query', 'key', 'weight', 'relative'])
        """
        import pandas

        if self.weights.dim() > 3:
            tables = [self[row].to_pandas().assign(cloud=row) for row in range(len(self))]
            return pandas.concat(tables, ignore_index=True)
        head, query, key = np.indices(tuple(self.weights.shape)).reshape(3, -1)
        columns: dict[str, Any] = {"layer": self.layer, "kind": self.kind, "head": head, "query": query, "key": key}
        columns |= {"weight": self.weights.numpy().ravel(), "relative": self.relative().numpy().ravel()}
        return pandas.DataFrame(columns)

    def _keys(self) -> Tensor:
        """Number of real keys of each cloud, in a shape that broadcasts with the weights."""
        if self.mask is None or self.points_are not in ("keys", "both"):
            return torch.tensor(float(self.weights.shape[-1]))[..., None]
        return self.mask.sum(dim=1).to(self.weights.dtype)[:, None, None, None]


def attention_maps(model: nn.Module, points: Any, mask: Tensor | None = None) -> list[AttentionMap]:
    """Run a model once in evaluation mode, and return one map per attention, in the order of the computation.

    The model is unchanged afterwards: its mode is restored, and recording is switched off.

    Args:
        model: any module that contains attention blocks of this package, `torch.nn.MultiheadAttention` (as in
            `nn.TransformerEncoder` and torch-geometric's set attention) or torch-geometric's `AttentionalAggregation`;
            called as `model(points)`, or as `model(points, mask)` with a mask. Maps of an ensemble have names that
            begin with model.members; `inspect_shape` gives those of its network alone.
        points: one cloud [n, 3], which gives maps [heads, queries, keys], or a batch [B, n, 3], which gives maps
            [B, heads, queries, keys]; a tensor or an array, already prepared: of points in other units, give
            `model.prepare(points).points`. Or a file, a `Mesh` or a `Cloud`, which the model prepares; a list of clouds
            or files; or `PointSets`.
        mask: [n] or [B, n], True at real points.

    Returns:
        One map per attention.

    Raises:
        PointsetError: the model has no attention, or points or mask do not fit it.

    Example:
        >>> maps = pointset.attention_maps(model, test.points[0])
        >>> [(map.layer, list(map.weights.shape)) for map in maps][:2]
        [('encoder.0.reads', [4, 4, 32]), ('encoder.0.writes', [4, 32, 4])]
    """
    points, mask = as_clouds(model, points, mask)
    modules = dict(attentions(model))
    if not modules and not hooked_modules(model):
        name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
        raise PointsetError(f"{name} has no attention maps: use a model with attention, such as isab16-pma")
    is_single = points.dim() == 2
    points, mask = (points[None], None if mask is None else mask[None]) if is_single else (points, mask)
    device = next(model.parameters()).device
    hooks = recording_by_hooks(model, mask, len(points))
    with torch.no_grad(), in_evaluation_mode(model), _recording(modules) as records, hooks as hooked:
        model(points.to(device)) if mask is None else model(points.to(device), mask.to(device))
    kinds, up = attention_kinds(model), cast("Any", getattr(getattr(model, "preparation", None), "up", "z"))
    kept = None if mask is None else mask.cpu()
    maps = []
    for layer, weights in records:
        kind, side = kinds[layer]
        if side == "both":
            queries, keys = (size == points.shape[1] for size in weights.shape[-2:])
            side = _SIDES.get((queries, keys), "neither")
        maps.append(AttentionMap(layer, kind, weights, side, None if side == "neither" else kept, up))
    for record, kind, side in kinds_by_size(hooked, *points.shape[:2]):
        maps.append(AttentionMap(record.layer, kind, record.weights, side, None if side == "neither" else kept, up))
    return [attention[0] for attention in maps] if is_single else maps


def find_map(maps: Sequence[AttentionMap], *, layer: str | None = None, kind: MapKind | None = None) -> AttentionMap:
    """Find the map of a layer, or the only map of a kind.

    Args:
        maps: maps from `attention_maps`.
        layer: the name of the layer, such as "encoder.0.reads".
        kind: "reads", "writes", "pools" or "self".

    Returns:
        The map.

    Raises:
        PointsetError: no map, or more than one, fits; the message lists all maps.

    Example:
        >>> maps = pointset.attention_maps(model, test.points[0])
        >>> pointset.find_map(maps, kind="pools").kind, pointset.find_map(maps, layer="encoder.1.reads").kind
        ('pools', 'reads')
    """
    chosen = [entry for entry in maps if layer in (None, entry.layer) and kind in (None, entry.kind)]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(f"{entry.layer} ({entry.kind})" for entry in maps)
    wanted = {"layer": layer, "kind": kind}
    words = " and ".join(f"{name} {quoted(value)}" for name, value in wanted.items() if value is not None)
    if not chosen:
        raise PointsetError(f"no attention map has {words}: choose from {known}")
    raise PointsetError(f"{len(chosen)} attention maps have {words or 'been found'}: give a layer, one of {known}")


def as_clouds(model: nn.Module, points: Any, mask: Any = None) -> tuple[Tensor, Tensor | None]:
    """Check one cloud or a batch, and return tensors for `model(points, mask)`; finite, and without an empty set.

    Files, meshes and clouds are prepared by the model, alone or in a list; `PointSets` are not changed.
    """
    require_model(model)
    points, mask = _prepared(model, points, mask)
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
    """Prepare files, meshes and clouds, and pad clouds of several sizes; other points and masks are not changed."""
    if isinstance(shapes, Tensor | np.ndarray):
        return shapes, mask
    from pointset.data.point_sets import PointSets
    from pointset.data.ragged import pad_sets
    from pointset.data.readers.clouds import Cloud
    from pointset.data.readers.meshes import Mesh
    from pointset.zoo.classifiers import Classifier

    if isinstance(shapes, PointSets):
        sets = shapes.with_local_features(getattr(model, "local_features", "none"))
        return sets.points, sets.mask
    kinds = str | Path | Mesh | Cloud
    if isinstance(shapes, kinds):
        if not isinstance(model, Classifier):
            raise InputError(f"a {type(model).__name__} cannot prepare a file or a mesh: give its points [n, 3]")
        return model.prepare(shapes).points, mask
    if not isinstance(shapes, Sequence) or not any(isinstance(shape, kinds | Tensor | np.ndarray) for shape in shapes):
        return shapes, mask
    clouds = [_prepared(model, shape, None)[0] for shape in shapes]
    return pad_sets([torch.as_tensor(cloud) for cloud in clouds])


def as_cloud_of(model: nn.Module, points: Any, least: int = 1) -> Tensor:
    """Check one cloud [n, inputs] with at least `least` points; see `as_clouds`."""
    cloud, _ = as_clouds(model, points)
    if cloud.dim() != 2 or len(cloud) < least:
        raise InputError(
            f"points must be one cloud [n, {cloud.shape[-1]}], n at least {least}, got {described(points)}"
        )
    return cloud


@contextmanager
def _recording(modules: dict[str, Any]) -> Iterator[list[tuple[str, Tensor]]]:
    """Record the weights of every attention inside this block, on the CPU, in float32 or float64."""
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
    """The modules of a model that compute attention, with the names of their maps."""
    for name, module in model.named_modules():
        if hasattr(module, "record"):
            yield name.removesuffix("multihead").removesuffix("."), module


def attention_kinds(model: nn.Module) -> dict[str, tuple[MapKind, Side]]:
    """The kind of each attention of a model, and which side are the points, by the name of the layer.

    The classes of the blocks that contain them say so, an outer one before an inner one; a MAB elsewhere has kind
    "self".
    """
    kinds: dict[str, tuple[MapKind, Side]] = {}
    for name, module in model.named_modules():
        for inner, kind in getattr(type(module), "maps", {}).items():
            kinds.setdefault(f"{name}.{inner}".strip("."), kind)
    return {name: kinds.get(name, ("self", "both")) for name, _ in attentions(model)}
