"""Weighted sums of the sorted values of each feature: FSPool, and pooling by sliced-Wasserstein embedding (PSWE)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.nn.fast.sorting import ascending
from pointset.nn.modules import OneRowPool
from pointset.nn.registry import register


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


@register("pooling", "fspool")
class FSPool(SortedPool):
    """y_f = sum_i w_f(i / (n - 1)) x_f(i), with the values of each feature in descending order, i from 0.

    w_f is a trained piecewise linear function on [0, 1], so sets of any size share it. With p pieces, its value at r is
    sum_k v_fk max(0, 1 - |k - p r|), k from 0 to p. As released, v is initialised from a normal distribution, and y is
    a sum, which grows with n.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

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
        self.values = nn.Parameter(torch.randn(dim, pieces + 1))
        """v, the values of the functions at their `pieces` + 1 knots, [d, pieces + 1]."""

    def weights(self) -> Float[Tensor, "d k"]:
        """The values v."""
        return self.values

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B k n"]:
        """max(0, 1 - |k - r pieces|), with r = 0 for the largest value of a set."""
        knots = torch.arange(self.values.shape[1], device=ranks.device)[:, None]
        last = sizes - 1
        r = (last - ranks).to(self.values.dtype) / last.clamp(min=1)
        return (1 - (knots - r * (self.values.shape[1] - 1)).abs()).clamp(min=0)


@register("pooling", "fpswe<m>", listed="fpswe64")
class FPSWEPool(SortedPool):
    """`PSWEPool` with fixed slices, the features themselves, and a fixed reference of m even points in [-1, 1].

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Args:
        m, dim: number of reference points, and width d of the rows.

    Source:
        Naderializadeh et al., see `PSWEPool`; FPSWE in Kothapalli et al. (arXiv 2306.05553).

    Example:
        >>> pointset.nn.FPSWEPool(64, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 16])
    """

    reference: Tensor

    def __init__(self, m: int, dim: int) -> None:
        super().__init__()
        self.scales = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, m)))
        """The weights w, [slices, m]."""
        self.register_buffer("reference", torch.linspace(-1, 1, m).expand(dim, m).clone())

    def weights(self) -> Float[Tensor, "d m"]:
        """The weights -w, sorted by the points of the reference."""
        return -self.scales.gather(1, self.reference.detach().argsort(dim=1))

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B m n"]:
        """The coefficients of the n sorted values in the m quantiles, by linear inter- and extrapolation."""
        m = self.scales.shape[1]
        quantiles = torch.arange(1, m + 1, device=ranks.device, dtype=self.scales.dtype)[:, None] / (m + 1)
        at = quantiles * (sizes + 1) - 1  # the fractional rank of each quantile
        lower = (at.ceil() - 1).clamp(min=0).minimum((sizes - 2).clamp(min=0))
        share = (at - lower) * (sizes > 1)
        return (ranks == lower) * (1 - share) + (ranks == lower + 1) * share

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Tensor | None = None) -> Float[Tensor, "B 1 d"]:
        """The embedding y of each set."""
        return (self.scales * self.reference).sum(dim=1).to(Z.dtype) + super().pooled(Z, mask)


@register("pooling", "pswe<m>", listed="pswe64")
class PSWEPool(FPSWEPool):
    """y_f = sum_j w_fj (r_fj - q_f(rank of r_fj)): the weighted displacement between a set and m reference points.

    Slice f of a set consists of the numbers theta_f z of its rows z, with |theta_f| = 1. q_f(j) is their quantile at
    (j + 1) / (m + 1), where the i-th of n sorted values (i from 0) is the quantile at (i + 1) / (n + 1); other
    quantiles are linearly interpolated or extrapolated. The optimal transport in one dimension moves the reference
    point of rank j to q_f(j).

    As released: there are as many slices as features, initially the features themselves; the reference is initially
    evenly spaced in [-1, 1]; w has Xavier initialisation. The authors' code sorts the reference instead of ranking it,
    which is the same until training permutes three of its points; this is the paper's version.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d]; zeros for an empty set.

    Args:
        m, dim: number of reference points, and width d of the rows.

    Source:
        Naderializadeh et al., Pooling by sliced-Wasserstein embedding (NeurIPS 2021).

    Example:
        >>> pointset.nn.PSWEPool(64, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 16])
    """

    def __init__(self, m: int, dim: int) -> None:
        super().__init__(m, dim)
        reference = self.reference
        del self.reference
        self.reference = nn.Parameter(reference)
        self.slices = nn.Parameter(torch.eye(dim))
        """The directions theta, [slices, d], before normalisation."""

    def features(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        """The slices of each row."""
        return F.linear(Z, F.normalize(self.slices, dim=1).to(Z.dtype))
