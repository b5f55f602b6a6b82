"""Base class for poolings of whole sets: handles padded and packed sets, mixed precision, and empty sets (zeros)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.checks import check_layout
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.masks import non_empty, zero_padding


class WholePool(nn.Module):
    """Z [B, n, d], mask [B, n] -> [B, 1, e]; zeros for an empty set.

    A subclass implements `pooled` for sets with and without padding. It computes in float32 or float64: a sum of ones
    in bfloat16 would stop growing at 256.
    """

    def forward(self, Z: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one row per set; the mask is True at real rows."""
        check_layout(Z, mask)
        mixed = torch.is_autocast_enabled(Z.device.type)
        with torch.autocast(Z.device.type, enabled=False):
            rows = Z.to(torch.promote_types(Z.dtype, torch.float32))
            if isinstance(mask, Packed):
                pooled = self.pooled_packed(rows, mask)
            else:
                pooled = self.pooled(zero_padding(rows, mask), mask)
        if mask is not None:
            pooled = pooled.masked_fill(~non_empty(mask, Z.device), 0.0)
        return pooled if mixed else pooled.to(Z.dtype)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """The pooled row of each set; for an empty set any result with finite gradients, as it is replaced by 0."""
        raise NotImplementedError

    def pooled_packed(self, Z: Float[Tensor, "N d"], sets: Packed) -> Float[Tensor, "B 1 e"]:
        """`pooled` of packed sets, run by run."""
        return sets.each_set(self.pooled, Z)
