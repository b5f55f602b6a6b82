"""From a set of rows to k rows: pooling by max, mean and sum.

Rows are [B, n, d] with a mask [B, n], or [N, d] with a `Packed`. Pooling by attention is `PMA`, in blocks.py;
torch-geometric's aggregations are in aggregation.py.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout
from pointset.nn.masks import masked_max, masked_mean, masked_sum


class Pool(nn.Module):
    """A symmetric function of the rows: Z [B, n, d], mask [B, n] -> [B, 1, d]; zeros for an empty set."""

    pool: Callable[[Tensor, Layout | None], Tensor]

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 d"]:
        """Return one row per set."""
        return type(self).pool(Z, mask)


class MaxPool(Pool):
    """Largest value of each feature."""

    pool = staticmethod(masked_max)


class MeanPool(Pool):
    """Mean of each feature."""

    pool = staticmethod(masked_mean)


class SumPool(Pool):
    """Sum of each feature: the one that can count."""

    pool = staticmethod(masked_sum)


class MaxMeanPool(nn.Module):
    """Largest value and mean of each feature side by side: Z [B, n, d], mask [B, n] -> [B, 1, 2 d]."""

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 2*d"]:
        """Return one row per set, the d maxima first; zeros for an empty set."""
        return torch.cat([masked_max(Z, mask), masked_mean(Z, mask)], dim=2)
