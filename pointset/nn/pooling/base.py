"""Base classes of poolings: one row per set, and weighted sums of sorted features."""

from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pointset.nn.fast.sorting import ascending
from pointset.nn.masks import Mask, non_empty, zero_padded_rows
from pointset.nn.modules import Pooling


class OneRowPool(Pooling):
    """Base class: Z [B, n, d], mask [B, n] -> [B, 1, e]; zeros for an empty set.

    A subclass implements `pooled` for sets with and without padding. It computes in float32 or float64: a sum of ones
    in bfloat16 would stop growing at 256.
    """

    options_used: ClassVar[tuple[str, ...] | None] = ()
    export = True

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it from the argument in its name and the width of the rows."""
        return cls(width) if argument is None else cls(argument, width)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one row per set; the mask is True at real rows."""
        mixed = torch.is_autocast_enabled(Z.device.type)
        with torch.autocast(Z.device.type, enabled=False):
            rows = Z.to(torch.promote_types(Z.dtype, torch.float32))
            pooled = self.pooled(zero_padded_rows(rows, mask), mask)
        if mask is not None:
            pooled = pooled.masked_fill(~non_empty(mask), 0.0)
        return pooled if mixed else pooled.to(Z.dtype)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """The pooled row of each set; for an empty set any result with finite gradients, as it is replaced by 0."""
        raise NotImplementedError


class SortedPool(OneRowPool):
    """y_f = sum_i w_f(i, n) x_f(i), where x_f(0) <= x_f(1) <= ... are the n values of feature f in a set.

    A subclass defines the weights as the product of `weights`, which are trained, and `basis`, which depends only on n,
    so they are computed once for a batch of sets of equal size. Most of the time is spent on sorting.
    """

    def features(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B n f"]:
        """The features of each row to sort."""
        return Z

    def weights(self) -> Float[Tensor, "f k"]:
        """The trained part of the weights of each feature."""
        raise NotImplementedError

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B k n"]:
        """The contribution of each trained weight to each rank from 0, for these set sizes, all at least 1."""
        raise NotImplementedError

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 f"]:
        """The weighted sums of each set."""
        X = self.features(Z).transpose(1, 2)
        if mask is not None:
            X = X.masked_fill(~mask.unsqueeze(1), torch.inf)
        X = X.gather(2, ascending(X))
        ranks = torch.arange(X.shape[2], device=X.device)
        sizes = ranks[-1:] + 1 if mask is None else mask.sum(dim=1).clamp(min=1)
        weights = self.weights().to(X.dtype) @ self.basis(ranks, sizes[:, None, None]).to(X.dtype)
        if mask is not None:
            X = X.masked_fill(ranks >= mask.sum(dim=1)[:, None, None], 0.0)
        return (X * weights).sum(dim=2).unsqueeze(1)
