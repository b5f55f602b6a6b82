"""Attention maps as data: the weights of an attention for each head, query and key."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Tensor

from pointset.errors import PointsetError, quoted
from pointset.nn.modules import MapKind, Side

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The weights of one attention, for one cloud or a batch of clouds.

    Each row of `weights` belongs to one query. Rows sum to 1, except for some user-defined functions. The kinds are:

    - "reads": each inducing point (query) attends to the points (keys);
    - "writes": each point (query) attends to the inducing points (keys);
    - "pools": each seed (query) attends to the points (keys);
    - "self": the points, or the pooled vectors, attend to each other;
    - "support": all points in the support of a prediction have the same weight (see `pointset.explain.exact_support`).

    All heads are kept. The method `heads` combines them. For a batch, `map[i]` is the map of cloud i without its
    padding.

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
    """[heads, queries, keys] for one cloud or [B, heads, queries, keys] for a batch, on the CPU. It is 0 at padded
    keys."""
    points_are: Side
    """Where the points of the cloud are in the attention: they are the queries, the keys, both or neither."""
    mask: Tensor | None = None
    """Mask of a padded batch: bool [B, n], True at real points."""
    up: Literal["x", "y", "z"] = "z"
    """The upward axis of the points, for pictures. It comes from the model's preparation."""
    points: Tensor | None = None
    """The points [n, d] of a cloud or [B, n, d] of a batch, for pictures."""

    def __repr__(self) -> str:
        """Return a summary in one line."""
        *batch, heads, queries, keys = self.weights.shape
        clouds = "".join(f"{count} clouds, " for count in batch)
        sizes = f"{heads} head{'s' * (heads != 1)}, {queries} quer{'y' if queries == 1 else 'ies'}, {keys} keys"
        return f"AttentionMap {self.layer} ({self.kind}): {clouds}{sizes}; {self.points_are} are points"

    def __len__(self) -> int:
        """Return the number of clouds in the batch."""
        if self.weights.dim() == 3:
            raise TypeError(f"the map of {self.layer} has no length: it is of one cloud, not of a batch")
        return len(self.weights)

    def __getitem__(self, index: int) -> AttentionMap:
        """Return the map of one cloud of a batch, without its padded queries and keys."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"the batch has {len(self)} clouds, got index {index}")
        weights, points = self.weights[index], None if self.points is None else self.points[index]
        if self.mask is not None:
            real = self.mask[index]
            points = None if points is None else points[real]
            if self.points_are in ("keys", "both"):
                weights = weights[:, :, real]
            if self.points_are in ("queries", "both"):
                weights = weights[:, real]
        return dataclasses.replace(self, weights=weights, mask=None, points=points)

    def relative(self) -> Tensor:
        """Return the weights times the number of unpadded keys. For sets of any size, 1 is uniform attention."""
        return self.weights * self._keys()

    def entropy(self) -> Tensor:
        """Return the normalised entropy of each row, [..., heads, queries]: 1 is uniform, 0 is a single key.

        For n unpadded keys, it is entropy / log n, or 1 if n is 0 or 1. A row that does not sum to 1 is first divided
        by its sum. The entropy of a row with a negative weight is NaN.
        """
        shares = self.weights / self.weights.sum(dim=-1, keepdim=True).clamp(min=1e-12)
        nats = torch.special.entr(shares).sum(dim=-1).where((shares >= 0).all(dim=-1), math.nan)
        greatest = self._keys().log().clamp(min=0)[..., 0]
        return torch.where(greatest > 0, nats / greatest.clamp(min=1e-12), 1.0)

    def row_distance(self) -> Tensor:
        """Return the mean distance between the rows of different queries, [..., heads]: 0 if equal, 1 if disjoint.

        The distance of two rows is their total variation, half the sum of absolute differences. Padded queries are
        left out. The result is NaN for a single query.
        """
        distances = torch.cdist(self.weights, self.weights, p=1.0) / 2
        queries = torch.tensor(float(self.weights.shape[-2]))
        if self.mask is not None and self.points_are in ("queries", "both"):
            padded = ~self.mask[:, None]
            distances = distances.masked_fill(padded[..., None] | padded[..., None, :], 0)
            queries = self.mask.sum(dim=1, keepdim=True)
        return (distances.sum(dim=(-1, -2)) / (queries * (queries - 1))).where(queries > 1, math.nan)

    def heads(self, how: Literal["mean", "max"]) -> AttentionMap:
        """Return a map of one head, the mean or maximum of all heads. Rows of a maximum do not sum to 1.

        Raises:
            PointsetError: `how` is neither "mean" nor "max".
        """
        if how not in ("mean", "max"):
            raise PointsetError(f"heads are combined by mean or max, got {quoted(how)}")
        over = self.weights.mean if how == "mean" else self.weights.amax
        return dataclasses.replace(self, weights=over(dim=-3, keepdim=True))

    def to_pandas(self) -> DataFrame:
        """Return a table with a row for each weight, without padded queries and keys.

        Columns: `layer`, `kind`, `head`, `query`, `key`, `weight`, `relative` (1 is uniform) and, for a batch, `cloud`.

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
        """Return the number of unpadded keys of each cloud, in a shape that broadcasts with the weights."""
        if self.mask is None or self.points_are not in ("keys", "both"):
            return torch.tensor(float(self.weights.shape[-1]))[..., None]
        return self.mask.sum(dim=1).to(self.weights.dtype)[:, None, None, None]


def find_map(maps: Sequence[AttentionMap], *, layer: str | None = None, kind: MapKind | None = None) -> AttentionMap:
    """Return the map of a layer, or the only map of a kind.

    Args:
        maps: maps from `attention_maps`.
        layer: the name of the layer, such as "encoder.0.reads".
        kind: "reads", "writes", "pools" or "self".

    Returns:
        The map.

    Raises:
        PointsetError: no map matches, or more than one does. The message lists all maps.

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
