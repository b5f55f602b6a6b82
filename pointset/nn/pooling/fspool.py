"""Featurewise sort pooling (Zhang, Hare and Prugel-Bennett, arXiv 1906.02795, sections 3.1 and 3.2)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.nn.pooling.sorted import SortedPool
from pointset.nn.registry import register


@register("pooling", "fspool", packed=True, export=True)
class FeaturewiseSortPool(SortedPool):
    """y_f = sum_i w_f(i / (n - 1)) x_f(i), with the values of each feature in descending order, i from 0.

    w_f is a trained piecewise linear function on [0, 1], so sets of any size share it. With p pieces, its value at r is
    sum_k v_fk max(0, 1 - |k - p r|), k from 0 to p. As released, v is initialised from a normal distribution, and y is
    a sum, which grows with n.

    Args:
        dim: width d of the rows.
        pieces: number p of pieces.
    """

    def __init__(self, dim: int, pieces: int = 20) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.randn(dim, pieces + 1))
        """v, the values of the functions at their `pieces` + 1 knots, [d, pieces + 1]."""

    def weights(self) -> Float[Tensor, "d k"]:
        """The values v."""
        return self.values

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B k n"]:
        """max(0, 1 - |k - r pieces|), with r = 0 for the largest value of a set."""
        points = torch.arange(self.values.shape[1], device=ranks.device)[:, None]
        last = sizes - 1
        r = (last - ranks).to(self.values.dtype) / last.clamp(min=1)
        return (1 - (points - r * (self.values.shape[1] - 1)).abs()).clamp(min=0)
