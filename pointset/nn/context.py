"""Two models that readers know, as context for the zoo, from torch-geometric's layers.

Both work on packed rows (real rows of all sets one after the other, with the index of each row's set), so padding
cannot touch them, batch statistics included.
"""

import itertools

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.nn.masks import as_mask

# Normalising a batch of one row by its own statistics would erase it.
NORM = {"norm": "batch_norm", "norm_kwargs": {"allow_single_element": True}}


class PointNet(nn.Module):
    """PointNet without its transform networks (Qi et al., arXiv 1612.00593, section 4.2, "vanilla").

    Row-wise 64, 64, 64, 128, 1024; max over the rows; 512, 256, classes.
    """

    def __init__(self, inputs: int, classes: int, dropout: float) -> None:
        from torch_geometric.nn import MLP, MaxAggregation

        super().__init__()
        self.rows = MLP([inputs, 64, 64, 64, 128, 1024], plain_last=False, **NORM)
        self.pool = MaxAggregation()
        self.head = MLP([1024, 512, 256, classes], dropout=[0.0, dropout, 0.0], **NORM)

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        rows, index = pack(points, mask)
        return self.head(self.pool(self.rows(rows), index, dim_size=points.shape[0]))


class DGCNN(nn.Module):
    """Dynamic graph CNN (Wang et al., arXiv 1801.07829, section 5.1), four edge convolutions over moving neighbours.

    Edge convolutions 64, 64, 128, 256 with max over k neighbours in feature space; all four together through 1024;
    max and mean over the rows; 512, 256, classes.
    """

    def __init__(self, inputs: int, classes: int, dropout: float, neighbours: int = 20) -> None:
        from torch_geometric.nn import MLP, EdgeConv, MaxAggregation, MeanAggregation

        super().__init__()
        self.neighbours = neighbours
        act = {"act": "leaky_relu", "act_kwargs": {"negative_slope": 0.2}}
        widths = [inputs, 64, 64, 128, 256]
        self.convolutions = nn.ModuleList(
            EdgeConv(MLP([2 * before, after], plain_last=False, **act, **NORM), aggr="max")
            for before, after in itertools.pairwise(widths)
        )
        self.rows = MLP([sum(widths[1:]), 1024], plain_last=False, **act, **NORM)
        self.pools = nn.ModuleList([MaxAggregation(), MeanAggregation()])
        self.head = MLP([2048, 512, 256, classes], dropout=[dropout, dropout, 0.0], **act, **NORM)

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        rows, index = pack(points, mask)
        stages = []
        for convolution in self.convolutions:
            rows = convolution(rows, self._edges(rows, points, mask))
            stages.append(rows)
        rows = self.rows(torch.cat(stages, dim=1))
        return self.head(torch.cat([pool(rows, index, dim_size=points.shape[0]) for pool in self.pools], dim=1))

    def _edges(self, rows: Tensor, points: Tensor, mask: Tensor | None) -> Int[Tensor, "2 edges"]:
        """Edges neighbour -> row, within each set, between the packed rows."""
        keep = as_mask(points, mask)
        padded = rows.new_zeros(*keep.shape, rows.shape[1])
        padded[keep] = rows.detach()
        position = keep.flatten().cumsum(0).sub(1).unflatten(0, keep.shape)  # packed index of each padded row
        distance = torch.cdist(padded, padded).masked_fill(~keep[:, None, :], float("inf"))
        near = distance.topk(min(self.neighbours, keep.shape[1]), largest=False)
        source = position.gather(1, near.indices.flatten(1)).view_as(near.indices)
        target = position[:, :, None].expand_as(source)
        real = near.values.isfinite() & keep[:, :, None]
        return torch.stack([source[real], target[real]])


def pack(
    points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None
) -> tuple[Float[Tensor, "N d"], Int[Tensor, " N"]]:
    """The real rows of all sets, one after the other, and the index of the set each belongs to."""
    keep = as_mask(points, mask)
    return points[keep], keep.nonzero()[:, 0]
