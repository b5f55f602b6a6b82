"""ApproxRepSet: matches of the rows with trained elements of hidden sets."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import check_counts
from pointset.nn.masks import masked_sum
from pointset.nn.modules import OneRowPool
from pointset.nn.registry import register


@register("pooling", "repset<k>", listed="repset5")
class RepSetPool(OneRowPool):
    """ApproxRepSet: y_f = sum_i max_j ReLU(x_i . u_fj), where hidden set f has k trained elements u_f1, ..., u_fk.

    Each row x_i is matched with the element of the largest product. The authors' RepSet, which this relaxes, matches no
    two rows with the same element. There are d hidden sets, one per output. Kothapalli et al. (arXiv 2306.05553) use k
    = 5 for point clouds. The authors use 10 hidden sets of 20 elements for words. The result is a sum, so it grows with
    n. Elements are initialised uniformly in [-1, 1], as in the authors' code.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Args:
        k: number of elements of each hidden set.
        dim: width d of the rows.

    Source:
        Skianis et al., Rep the Set (arXiv 1904.01962).

    Example:
        >>> pointset.nn.RepSetPool(5, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 16])
    """

    def __init__(self, k: int, dim: int) -> None:
        super().__init__()
        check_counts(k=k, dim=dim)
        self.elements = nn.Parameter(torch.empty(k, dim, dim).uniform_(-1, 1))
        """The elements u, [k, hidden sets, d]."""

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        # One product per element, so that the maximum is over the first axis.
        products = Z.flatten(0, 1).expand(len(self.elements), -1, -1) @ self.elements.to(Z.dtype).transpose(1, 2)
        return masked_sum(products.amax(dim=0).relu().unflatten(0, Z.shape[:2]), mask)
