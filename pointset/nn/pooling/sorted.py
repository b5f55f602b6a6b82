"""Base class of weighted sums of the sorted values of each feature."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pointset.nn.fast.sorting import ascending
from pointset.nn.modules import OneRowPool


class SortedPool(OneRowPool):
    """y_f = sum_i w_f(i, n) x_f(i), where x_f(0) <= x_f(1) <= ... are the n values of feature f in a set.

    A subclass defines w_f as the product of `weights`, which are trained, and `basis`, which depends only on n. For a
    batch of sets of the same size, w_f is thus computed once, and sorting takes most of the time.
    """

    def features(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B n f"]:
        """Return the features of each row, to be sorted."""
        return Z

    def weights(self) -> Float[Tensor, "f k"]:
        """Return the trained part of the weights of each feature."""
        raise NotImplementedError

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B k n"]:
        """Return the factor of each trained weight at each rank (from 0), for each set size (at least 1)."""
        raise NotImplementedError

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 f"]:
        """Return the weighted sums of each set."""
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
