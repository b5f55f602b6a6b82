"""PointNet and DGCNN, built from torch-geometric's layers.

Both models concatenate the real rows of all sets, so padding changes neither results nor batch statistics. An exported
PointNet keeps padded rows until the maximum, which ignores them. DGCNN, whose graph depends on the points, is not
exported.
"""

import itertools

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.nn.masks import Mask, full_mask, masked_max
from pointset.nn.modules import WholeModel
from pointset.nn.registry import register

# In training, the running statistics normalise a single row; torch's batch norm would raise an error.
NORM = {"norm": "batch_norm", "norm_kwargs": {"allow_single_element": True}}


@register("model", "pointnet")
class PointNet(WholeModel):
    """PointNet without its transform networks ("vanilla" in the paper's table 6).

    The model has row-wise layers of widths 64, 64, 64, 128 and 1024, the maximum over the rows, and layers of widths
    512, 256 and `classes`.

    X [B, n, inputs] with a mask [B, n] (True at real points) gives logits [B, classes].

    Args:
        inputs, classes: numbers of inputs per point and of logits.
        dropout: rate of the dropout before the last layer.

    Source:
        Qi et al., PointNet (arXiv 1612.00593), section 4.2.

    Example:
        >>> pointset.nn.PointNet(3, 10)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 10])
    """

    options_used = ("dropout",)
    export = True

    def __init__(self, inputs: int, classes: int, dropout: float = 0.3) -> None:
        from torch_geometric.nn import MLP, MaxAggregation

        super().__init__()
        self.rows = MLP([inputs, 64, 64, 64, 128, 1024], plain_last=False, **NORM)
        self.pool = MaxAggregation()
        self.head = MLP([1024, 512, 256, classes], dropout=[0.0, dropout, 0.0], **NORM)

    def forward(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        if torch.compiler.is_exporting():
            rows = self.rows(points.flatten(0, 1)).unflatten(0, points.shape[:2])
            return self.head(masked_max(rows, mask).flatten(1))
        keep = full_mask(points, mask)
        return self.head(self.pool(self.rows(points[keep]), keep.nonzero()[:, 0], dim_size=len(points)))


@register("model", "dgcnn")
class DGCNN(WholeModel):
    """Dynamic graph CNN: four edge convolutions over the nearest neighbours in feature space.

    The edge convolutions have widths 64, 64, 128 and 256 and take the maximum over k neighbours. Their concatenated
    outputs go through a layer of width 1024, the maximum and mean over the rows, and layers of widths 512, 256 and
    `classes`.

    X [B, n, inputs] with a mask [B, n] (True at real points) gives logits [B, classes].

    Args:
        inputs, classes: numbers of inputs per point and of logits.
        dropout: rate of the dropout before each of the last two layers.
        neighbours: number k of neighbours.

    Source:
        Wang et al., DGCNN (arXiv 1801.07829), section 5.1.

    Example:
        >>> pointset.nn.DGCNN(3, 10)(torch.rand(2, 50, 3)).shape
        torch.Size([2, 10])
    """

    options_used = ("dropout",)

    def __init__(self, inputs: int, classes: int, dropout: float = 0.5, neighbours: int = 20) -> None:
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

    def forward(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        keep = full_mask(points, mask)
        rows, index, stages = points[keep], keep.nonzero()[:, 0], []
        for convolution in self.convolutions:
            rows = convolution(rows, self._edges(rows, keep))
            stages.append(rows)
        rows = self.rows(torch.cat(stages, dim=1))
        return self.head(torch.cat([pool(rows, index, dim_size=len(points)) for pool in self.pools], dim=1))

    def _edges(self, rows: Float[Tensor, "N d"], keep: Mask) -> Int[Tensor, "2 edges"]:
        """Return the edges from neighbours to rows, between the real rows of each set."""
        X = rows.new_zeros(*keep.shape, rows.shape[1])
        X[keep] = rows.detach()
        distance = torch.cdist(X, X).masked_fill(~keep[:, None], torch.inf)
        near = distance.topk(min(self.neighbours, X.shape[1]), largest=False)
        place = (keep.flatten().cumsum(0) - 1).view(keep.shape)  # index among all real rows
        sets = torch.arange(len(keep), device=keep.device)[:, None, None]
        edges = torch.stack([place[sets, near.indices], place[:, :, None].expand_as(near.indices)])
        return edges[:, near.values.isfinite() & keep[:, :, None]]
