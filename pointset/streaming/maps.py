"""Attention over a cloud of any size: statistics of each attention row instead of one weight per point.

These are the maps of `pointset.attention_maps` for a cloud that does not fit in memory. The weights of all attentions
are recorded in one more pass, after those that accumulated their sums.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.data.chunks import Chunks
from pointset.errors import PointsetError
from pointset.inputs import require_model
from pointset.nn.blocks import ISAB, PMA
from pointset.nn.modes import in_evaluation_mode
from pointset.nn.pooling.dumlp import DualMLP
from pointset.streaming.running import RunningSoftmax, exact_type
from pointset.streaming.stream import EmptyCloudError, Passes

SPAN = 1e4
"""The finite edges of a histogram go from 1 / SPAN to SPAN times uniform attention."""


@dataclass(frozen=True, eq=False)
class StreamedMap:
    """Statistics of what each query (inducing point or seed) of one attention reads in a cloud; tensors are on the CPU.

    Example:
        >>> pooled = pointset.stream_attention(model, [torch.rand(500, 3)])[-1]
        >>> pooled.kind, pooled.counts.sum(dim=-1).flatten().tolist()
        ('pools', [500, 500, 500, 500])
    """

    layer: str
    """The module's name inside the model, such as "encoder.0.reads"; as in `AttentionMap`."""
    kind: Literal["reads", "pools"]
    """Whether the queries are inducing points ("reads") or seeds ("pools")."""
    points: int
    """Number of points in the cloud, n."""
    indices: Int[Tensor, "heads queries top"]
    """Indices of the points with the largest weights, in descending order; all points if the cloud has fewer."""
    weights: Float[Tensor, "heads queries top"]
    """The weights of these points; the weights of all points sum to 1."""
    coordinates: Float[Tensor, "heads queries top inputs"]
    """The coordinates of these points, as the model received them."""
    edges: Float[Tensor, " bins+1"]
    """Edges of the histogram bins, in relative weights; the first is 0, the last infinite, the others are
    log-spaced."""
    counts: Int[Tensor, "heads queries bins"]
    """Number of points whose weight times n is in each bin; a bin includes its lower edge, not its upper edge."""
    entropy: Float[Tensor, "heads queries"]
    """Normalised entropy of the weights of all points, entropy / log n: 1 is uniform, 0 is a single point."""

    def __repr__(self) -> str:
        """A summary in one line."""
        heads, queries, top = self.weights.shape
        return (
            f"StreamedMap {self.layer} ({self.kind}): {heads} heads, {queries} quer{'y' if queries == 1 else 'ies'}; "
            f"the top {top} of {self.points:,} points"
        )

    def relative(self) -> Float[Tensor, "heads queries top"]:
        """The weights times the number of points: 1 is uniform attention, whatever the size of the cloud."""
        return self.weights * self.points


def stream_attention(model: nn.Module, chunks: Chunks, *, top: int = 16, bins: int = 34) -> list[StreamedMap]:
    """Return what inducing points and seeds read in a cloud of any size, in constant memory.

    The result has one `StreamedMap` for each map of kind "reads" or "pools" of `attention_maps`, in the order of the
    computation. This takes one pass more than `model.stream`.

    Args:
        model: a model that can be streamed and has attention.
        chunks: the cloud in pieces, as for `model.stream`.
        top: number of points to keep for each head and query.
        bins: number of bins of each histogram, at least 3; the first has the weights below 1 / 10,000 of uniform
            attention, the last those above 10,000 times uniform attention.

    Returns:
        One summary per attention.

    Raises:
        PointsetError: the model cannot stream or has no such attention, the cloud is empty or its chunks are wrong, or
            `top` or `bins` is too small.

    Example:
        >>> chunks = [torch.rand(500, 3), torch.rand(300, 3)]
        >>> maps = pointset.stream_attention(model, chunks, top=4)
        >>> maps[0].layer, maps[0].points, maps[0].indices.shape
        ('encoder.0.reads', 800, torch.Size([4, 4, 4]))
    """
    require_model(model)
    if top < 1 or bins < 3:
        raise PointsetError(f"top={top} and bins={bins} are too small: give at least top=1 and bins=3")
    if not any(isinstance(module, ISAB | PMA | DualMLP) for module in model.modules()):
        raise PointsetError(
            f"{getattr(getattr(model, 'spec', None), 'name', type(model).__name__)} has no inducing points or seeds: "
            "use a model whose name begins with isab or dumlp, or ends in pma or dumlp32"
        )
    with torch.no_grad(), in_evaluation_mode(model):
        passes = Passes(chunks, model)
        try:
            passes.pooled(model)
        except EmptyCloudError as error:
            raise PointsetError("the cloud is empty") from error
        watchers = [_Watcher(*read, passes.count or 0, top, bins, passes.inputs) for read in passes.attentions]

        def watch(number: int, rows: Tensor, points: Tensor) -> None:
            for watcher in watchers:
                if watcher.number == number:
                    watcher.watch(rows, points)

        passes.run(watch)
    return [watcher.result() for watcher in watchers]


class _Watcher:
    """Accumulates one `StreamedMap` on the CPU; tensors are [r, ...] with r = heads * queries."""

    def __init__(self, number: int, attention: RunningSoftmax, points: int, top: int, bins: int, inputs: int) -> None:
        self.number = number
        self._attention, self._points, self._top, self._bins = attention, points, top, bins
        rows = attention.heads * attention.queries
        self._seen = 0
        self._logs = torch.zeros(rows, 0)
        self._indices = torch.zeros(rows, 0, dtype=torch.int64)
        self._coordinates = torch.zeros(rows, 0, inputs)
        self._inner_edges = torch.logspace(-math.log10(SPAN), math.log10(SPAN), bins - 1, dtype=torch.float64)
        self._counts = torch.zeros(rows * bins, dtype=torch.int64)
        self._nats = torch.zeros(rows, dtype=torch.float64)

    def watch(self, rows: Float[Tensor, "1 n d"], points: Float[Tensor, "n inputs"]) -> None:
        """Add a block."""
        logs = self._attention.log_weights(rows)
        self._keep_top(logs, points)
        self._nats -= (logs.exp() * logs).sum(dim=1, dtype=exact_type(logs.device)).cpu()
        bins = torch.bucketize(logs, (self._inner_edges / self._points).log().to(logs), right=True)
        bins += self._bins * torch.arange(len(logs), device=logs.device)[:, None]
        self._counts += torch.bincount(bins.flatten(), minlength=len(self._counts)).cpu()
        self._seen += len(points)

    def _keep_top(self, logs: Tensor, points: Tensor) -> None:
        """Merge the largest weights of this block into the largest so far."""
        largest = logs.topk(min(self._top, logs.shape[1]), dim=1)
        values = torch.cat([self._logs.to(logs.dtype), largest.values.cpu()], dim=1)
        indices = torch.cat([self._indices, largest.indices.cpu() + self._seen], dim=1)
        coordinates = torch.cat([self._coordinates.to(points.dtype), points[largest.indices].cpu()], dim=1)
        self._logs, order = values.topk(min(self._top, values.shape[1]), dim=1)
        self._indices = indices.gather(1, order)
        self._coordinates = coordinates.gather(1, order[..., None].expand(-1, -1, coordinates.shape[2]))

    def result(self) -> StreamedMap:
        """The map, after the pass."""
        attention = self._attention
        shape = attention.heads, attention.queries
        entropy = self._nats / math.log(self._points) if self._points > 1 else torch.ones_like(self._nats)
        return StreamedMap(
            layer=attention.layer,
            kind=attention.kind,
            points=self._points,
            indices=self._indices.unflatten(0, shape),
            weights=self._logs.exp().unflatten(0, shape),
            coordinates=self._coordinates.unflatten(0, shape),
            edges=torch.cat([torch.zeros(1), self._inner_edges, torch.tensor([math.inf])]),
            counts=self._counts.view(*shape, self._bins),
            entropy=entropy.view(shape).to(self._logs.dtype),
        )
