"""Pooling by sliced-Wasserstein embedding (PSWE)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.configuration import check_counts
from pointset.nn.pooling.sorted import SortedPool
from pointset.nn.registry import register


@register("pooling", "fpswe<m>", listed="fpswe64")
class FPSWEPool(SortedPool):
    """`PSWEPool` with the features as fixed slices, and m evenly spaced points in [-1, 1] as fixed reference.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Args:
        m, dim: number of reference points, and width d of the rows.

    Source:
        Naderializadeh et al., see `PSWEPool`; named FPSWE by Kothapalli et al. (arXiv 2306.05553).

    Example:
        >>> pointset.nn.FPSWEPool(64, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 16])
    """

    reference: Tensor

    def __init__(self, m: int, dim: int) -> None:
        super().__init__()
        check_counts(m=m, dim=dim)
        self.scales = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, m)))
        """The weights w, [slices, m]."""
        self.register_buffer("reference", torch.linspace(-1, 1, m).expand(dim, m).clone())

    def weights(self) -> Float[Tensor, "d m"]:
        """Return the weights -w, in ascending order of the reference points."""
        return -self.scales.gather(1, self.reference.detach().argsort(dim=1))

    def basis(self, ranks: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B m n"]:
        """Return the coefficients of the n sorted values in the m quantiles, which are inter- or extrapolated."""
        m = self.scales.shape[1]
        quantiles = torch.arange(1, m + 1, device=ranks.device, dtype=self.scales.dtype)[:, None] / (m + 1)
        at = quantiles * (sizes + 1) - 1  # fractional rank of each quantile
        lower = (at.ceil() - 1).clamp(min=0).minimum((sizes - 2).clamp(min=0))
        share = (at - lower) * (sizes > 1)
        return (ranks == lower) * (1 - share) + (ranks == lower + 1) * share

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Tensor | None = None) -> Float[Tensor, "B 1 d"]:
        return (self.scales * self.reference).sum(dim=1).to(Z.dtype) + super().pooled(Z, mask)


@register("pooling", "pswe<m>", listed="pswe64")
class PSWEPool(FPSWEPool):
    """y_f = sum_j w_fj (r_fj - q_f(rank of r_fj)): the weighted displacement between a set and m reference points.

    Slice f of a set consists of the products theta_f z of a unit vector theta_f and each row z. q_f(j) is the quantile
    of these products at (j + 1) / (m + 1). The i-th of n sorted values (i from 0) is the quantile at (i + 1) / (n + 1).
    Other quantiles are linearly interpolated or extrapolated. The optimal transport in one dimension moves the
    reference point of rank j to q_f(j).

    As in the authors' code, the number of slices is d. At initialisation, each slice is one of the features, the
    reference r is evenly spaced in [-1, 1], and w has Xavier initialisation. As in the paper, the argument of q_f is a
    rank. The authors' code uses the indices that sort r, which equal the ranks until training permutes three or more
    points of r.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

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
        """Return the slices of each row."""
        return F.linear(Z, F.normalize(self.slices, dim=1).to(Z.dtype))
