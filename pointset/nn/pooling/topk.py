"""Mean of the k largest values of each feature."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.configuration import check_counts
from pointset.nn.modules import OneRowPool, Pooling
from pointset.nn.registry import register


@register("pooling", "top<k>", listed="top8")
class TopKPool(OneRowPool):
    """Mean of the k largest values of each feature, or of all values in sets of fewer than k rows.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Args:
        k: number of values.

    Source:
        Durand, Thome and Cord, WELDON (CVPR 2016).

    Example:
        >>> pointset.nn.TopKPool(2)(torch.tensor([[[1.0], [4.0], [8.0]]])).tolist()
        [[[6.0]]]
    """

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        return cls(argument)

    def __init__(self, k: int) -> None:
        super().__init__()
        check_counts(k=k)
        self.k = k

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        X = Z.transpose(1, 2)
        sizes = torch.ones_like(X[:1, :1]).sum(dim=2, keepdim=True)
        if mask is not None:
            X, sizes = X.masked_fill(~mask.unsqueeze(1), -torch.inf), mask.sum(dim=1).clamp(min=1)[:, None, None]
        # Pad to at least k rows.
        largest = F.pad(X, (0, self.k - 1), value=-torch.inf).topk(self.k, dim=2, sorted=True).values
        is_real = torch.arange(self.k, device=X.device) < sizes
        sums = largest.masked_fill(~is_real, 0.0).sum(dim=2, keepdim=True)
        return (sums / is_real.sum(dim=2, keepdim=True)).transpose(1, 2)
