"""A model in a form whose graph is the same for every size of set, as files that leave Python need it.

Our modules may look at sizes and at data before they compute: attention takes the order of products that is cheaper for
n points, and the context models drop padded rows. A recorded graph would keep the way that the example took. So each of
these modules has a counterpart here that always goes one way; values differ by rounding only.
"""

# Graphs are recorded for padded sets: a counterpart need not take the packed ones that its module takes.
# mypy: disable-error-code="override"

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.attention import FEW_KEYS, Multihead
from pointset.nn.blocks import MAB
from pointset.nn.context import DGCNN, PointNet
from pointset.nn.masks import as_mask, masked_max, masked_mean, non_empty, zero_padding
from pointset.nn.norms import BatchNorm
from pointset.nn.pooling.aggregation import AggregationPool
from pointset.nn.scores import AdditiveScore, DotScore


def portable(model: nn.Module) -> nn.Module:
    """A copy of a model for recording: on the CPU, in evaluation mode, of modules that never look at sizes or data."""
    copied = copy.deepcopy(model).cpu().eval().requires_grad_(False)
    for module in copied.modules():
        module.__class__ = COUNTERPARTS.get(type(module), type(module))
        if hasattr(module, "allow_single_element"):
            # torch-geometric's batch norm: counts rows to choose between two branches that are one in evaluation.
            setattr(module, "allow_single_element", False)  # noqa: B010 - not an attribute of every module
    return copied


class FixedOrder(Multihead):
    """Multihead attention in the order of products that is the cheaper one for large sets."""

    def attend(
        self,
        Q: Float[Tensor, "_ n d"],
        Y: Float[Tensor, "B m dim_key"],
        mask: Bool[Tensor, "B m"] | None = None,
    ) -> Float[Tensor, "B n d"]:
        """Attention of projected queries Q, before W^O: concat_j(A_j V_j) [B, n, d]; 0 where Y is empty."""
        Y = zero_padding(Y, mask)
        attended = self._absorbed(Q, Y, mask) if self._absorbing_pays(Q, Y) else self._plain(Q, Y, mask)
        return attended if mask is None else attended * non_empty(mask)

    def _absorbing_pays(self, Q: Tensor, Y: Tensor) -> bool:
        """Compare the multiply-adds per row of Y, for queries whose number is not that of a set of any size."""
        dim, dim_key = self.key.weight.shape
        n = Q.shape[1]
        fixed = isinstance(n, int) and not isinstance(Y.shape[1], int) and isinstance(self.score, DotScore)
        return fixed and self.heads * n * dim_key < (dim_key + n) * dim

    def _absorbed(self, Q: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
        queries = self.absorbed_queries(Q).flatten(1, 2)  # [_, h n, y]
        logits = (queries @ Y.mT).unflatten(1, (self.heads, -1))
        read = self.weights(logits, mask).flatten(1, 2) @ Y
        return self.absorbed_values(read.unflatten(1, (self.heads, -1)))

    def _plain(self, Q: Tensor, Y: Tensor, mask: Tensor | None) -> Tensor:
        """The same with projected keys and values."""
        few = isinstance(Y.shape[1], int) and Y.shape[1] <= FEW_KEYS
        return self._explicit(Q, Y, mask) if few or not self.is_plain else self._fused(Q, Y, mask)


class WholeScore(AdditiveScore):
    """The additive score of all pairs of a query and a key at once."""

    def forward(self, Q: Float[Tensor, "_ h n c"], K: Float[Tensor, "B h m c"]) -> Float[Tensor, "B h n m"]:
        """Return the logits."""
        return self.logits(*self.first_layer(Q, K))


class PlainMAB(MAB):
    """MAB step by step, as its formula says."""

    def forward(
        self,
        X: Float[Tensor, "_ n dim_query"],
        Y: Float[Tensor, "B m dim_key"],
        mask: Bool[Tensor, "B m"] | None = None,
        query_mask: Bool[Tensor, "B n"] | None = None,
    ) -> Float[Tensor, "B n d"]:
        """Return O [B, n, d]; see `MAB.forward`."""
        Q = self.multihead.query(self.norm_query(X, query_mask))
        attended = self.multihead.attend(Q, self.norm_key(Y, mask), mask)
        residual = X if self.form == "paper" else Q
        return self.complete(residual, self.multihead.output(attended), query_mask)


class RowwiseBatchNorm(BatchNorm):
    """Batch norm by running statistics: of each row on its own, so that padding need not be taken out before."""

    def forward(self, X: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B n d"]:
        """Return the normalised X [B, n, d]; `mask` is True at real rows, padded rows come out as zeros."""
        return zero_padding(rowwise(lambda rows: nn.BatchNorm1d.forward(self, rows), X), mask)


class FixedAggregation(AggregationPool):
    """An aggregation of torch-geometric whose index of sets is made without `repeat_interleave`.

    The ONNX that torch 2.13 writes for a count of repeats that is no constant is wrong for batches of several sets.
    """

    def forward(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one row per set."""
        if mask is not None:
            return super().forward(Z, mask)
        sets = torch.arange(Z.shape[0], device=Z.device).unsqueeze(1).expand(Z.shape[:2])
        return self.aggregation(Z.flatten(0, 1), sets.flatten(), dim_size=Z.shape[0]).unsqueeze(1)


class PaddedPointNet(PointNet):
    """PointNet on padded rows."""

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        return self.head(masked_max(rowwise(self.rows, points), mask).flatten(1))


class PaddedDGCNN(DGCNN):
    """Dynamic graph CNN on padded rows, with k neighbours [B, n, k] in place of a list of edges."""

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        keep = as_mask(points, mask)
        stages = [points]
        for convolution in self.convolutions:
            stages.append(self._convolved(convolution.nn, stages[-1], keep))
        rows = rowwise(self.rows, torch.cat(stages[1:], dim=2))
        return self.head(torch.cat([masked_max(rows, keep), masked_mean(rows, keep)], dim=2).flatten(1))

    def _convolved(self, network: Any, rows: Tensor, keep: Tensor) -> Tensor:
        """Max over the neighbours j of network(x_i, x_j - x_i): [B, n, d]; padded rows come out as zeros."""
        # Said outright, as cdist by itself chooses a way of computing by n.
        distance = torch.cdist(rows, rows, compute_mode="use_mm_for_euclid_dist")
        distance = distance.masked_fill(~keep[:, None, :], float("inf"))
        # So many columns at infinity that even a set of one row has k of them to choose from: their number is fixed.
        near = F.pad(distance, (0, self.neighbours), value=float("inf")).topk(self.neighbours, largest=False)
        chosen = near.indices.clamp(max=rows.shape[1] - 1)
        first = torch.arange(rows.shape[0], device=rows.device)[:, None, None] * rows.shape[1]
        others = rows.flatten(0, 1)[chosen + first]  # [B, n, k, d_in]
        own = rows.unsqueeze(2).expand_as(others)
        edges = rowwise(network, torch.cat([own, others - own], dim=3))
        real = near.values.isfinite().unsqueeze(-1)
        return zero_padding(edges.masked_fill(~real, float("-inf")).amax(dim=2), keep)


COUNTERPARTS: dict[type[nn.Module], type[nn.Module]] = {
    Multihead: FixedOrder,
    AdditiveScore: WholeScore,
    MAB: PlainMAB,
    BatchNorm: RowwiseBatchNorm,
    AggregationPool: FixedAggregation,
    PointNet: PaddedPointNet,
    DGCNN: PaddedDGCNN,
}


def rowwise(network: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Apply to every row [..., d] a network that takes rows [N, d]."""
    return network(rows.flatten(0, -2)).unflatten(0, rows.shape[:-1])
