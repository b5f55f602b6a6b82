"""Poolings of sorted features: the k largest values, and weighted sums with weights that depend on the rank."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.nn.fast.sorting import ascending
from pointset.nn.parts import Pooling
from pointset.nn.pooling.whole import WholePool
from pointset.nn.registry import register


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


@register("pooling", "top<k>", listed="top8")
class TopPool(WholePool):
    """Mean of the k largest values of each feature, or of all values in smaller sets; k = 1 is the maximum.

    Source: Durand, Thome and Cord, WELDON, CVPR 2016.
    """

    @classmethod
    def make(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it from k."""
        return cls(argument)

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The mean of the largest values."""
        X = Z.transpose(1, 2)
        sizes = torch.ones_like(X[:1, :1]).sum(dim=2, keepdim=True)
        if mask is not None:
            X, sizes = X.masked_fill(~mask.unsqueeze(1), -torch.inf), mask.sum(dim=1).clamp(min=1)[:, None, None]
        # Pad to at least k rows.
        largest = F.pad(X, (0, self.k - 1), value=-torch.inf).topk(self.k, dim=2, sorted=True).values
        is_real = torch.arange(self.k, device=X.device) < sizes
        sums = largest.masked_fill(~is_real, 0.0).sum(dim=2, keepdim=True)
        return (sums / is_real.sum(dim=2, keepdim=True)).transpose(1, 2)


@register("pooling", "fspool")
class FeaturewiseSortPool(SortedPool):
    """y_f = sum_i w_f(i / (n - 1)) x_f(i), with the values of each feature in descending order, i from 0.

    w_f is a trained piecewise linear function on [0, 1], so sets of any size share it. With p pieces, its value at r is
    sum_k v_fk max(0, 1 - |k - p r|), k from 0 to p. As released, v is initialised from a normal distribution, and y is
    a sum, which grows with n. Source: Zhang, Hare and Prugel-Bennett, arXiv 1906.02795, sections 3.1 and 3.2.
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


@register("pooling", "fpswe<m>", listed="fpswe64")
class FixedWassersteinPool(SortedPool):
    """`WassersteinPool` with fixed slices, the features themselves, and a fixed reference of m points in [-1, 1].

    The points of the reference are evenly spaced. Only the weights of the sums are trained.
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
class WassersteinPool(FixedWassersteinPool):
    """y_f = sum_j w_fj (r_fj - q_f(rank of r_fj)): the weighted displacement between a set and m reference points.

    Slice f of a set consists of the numbers theta_f z of its rows z, with |theta_f| = 1. q_f(j) is their quantile at
    (j + 1) / (m + 1), where the i-th of n sorted values (i from 0) is the quantile at (i + 1) / (n + 1); other
    quantiles are linearly interpolated or extrapolated. The optimal transport in one dimension moves the reference
    point of rank j to q_f(j).

    As released: there are as many slices as features, initially the features themselves; the reference is initially
    evenly spaced in [-1, 1]; w has Xavier initialisation. The authors' code sorts the reference instead of ranking it,
    which is the same until training permutes three of its points; this is the paper's version. The authors call the
    pooling PSWE; Kothapalli et al. (arXiv 2306.05553) call it LPSWE ("learned"), and FPSWE ("fixed") if reference and
    slices are not trained. Source: Naderializadeh et al., pooling by sliced-Wasserstein embedding (NeurIPS 2021).
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
