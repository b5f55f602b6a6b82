"""FSPool: featurewise sort pooling."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.configuration import check_counts
from pointset.nn.pooling.sorted import SortedPool
from pointset.nn.registry import register


@register("pooling", "fspool")
class FSPool(SortedPool):
    """y_f = sum_i w_f(i / (n - 1)) x_f(i), where x_f(0) >= x_f(1) >= ... are the n values of feature f in a set.

    w_f is a trained piecewise linear function on [0, 1], the same for sets of any size. With p pieces, its value at r
    is sum_k v_fk max(0, 1 - |k - p r|), with k from 0 to p. As in the authors' code, v is initialised from a normal
    distribution, and y is a sum, which grows with n.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Args:
        dim: width d of the rows.
        pieces: number p of pieces.

    Source:
        Zhang, Hare and Prugel-Bennett, FSPool (arXiv 1906.02795), sections 3.1 and 3.2.

    Example:
        >>> pointset.nn.FSPool(16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 16])
    """

    def __init__(self, dim: int, pieces: int = 20) -> None:
        super().__init__()
        check_counts(dim=dim, pieces=pieces)
        self.values = nn.Parameter(torch.randn(dim, pieces + 1))
        """The values v [d, pieces + 1] of the functions at their knots."""

    def weights(self) -> Float[Tensor, "d k"]:
        """Return the values v."""
        return self.values

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B k n"]:
        """Return max(0, 1 - |k - p r|), with r = 0 for the largest value of a set."""
        knots = torch.arange(self.values.shape[1], device=ranks.device)[:, None]
        last = sizes - 1
        r = (last - ranks).to(self.values.dtype) / last.clamp(min=1)
        return (1 - (knots - r * (self.values.shape[1] - 1)).abs()).clamp(min=0)
