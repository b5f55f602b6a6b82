"""Pooling by sliced-Wasserstein embedding (Naderializadeh et al., NeurIPS 2021).

Its authors call the pooling PSWE; Kothapalli et al. (arXiv 2306.05553) call the same LPSWE, with L for learned, and one
whose reference and slices stay as they are FPSWE.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.nn.pooling.sorted import SortedPool
from pointset.nn.registry import register


@register("pooling", "fpswe<m>", listed="fpswe64", packed=True, export=True)
class FixedWassersteinPool(SortedPool):
    """PSWE_m with the features themselves as slices, against a reference of m points evenly from -1 to 1.

    See `WassersteinPool`. Only the weights of the sums are trained.

    Args:
        m: points of the reference.
        dim: width d of the rows, and slices.
    """

    reference: Tensor

    def __init__(self, m: int, dim: int) -> None:
        super().__init__()
        self.scales = nn.Parameter(nn.init.xavier_uniform_(torch.empty(dim, m)))
        """w, [slices, m]."""
        self.register_buffer("reference", torch.linspace(-1, 1, m).expand(dim, m).clone())

    def weights(self) -> Float[Tensor, "d m"]:
        """-w, in the order of the reference's points."""
        return -self.scales.gather(1, self.reference.detach().argsort(dim=1))

    def basis(self, places: Int[Tensor, " n"], sizes: Int[Tensor, "B 1 1"]) -> Float[Tensor, "B m n"]:
        """How the m quantiles come of the n values: each of the two that it lies between, or of the last two."""
        m = self.scales.shape[1]
        wanted = torch.arange(1, m + 1, device=places.device, dtype=self.scales.dtype)[:, None] / (m + 1)
        at = wanted * (sizes + 1) - 1  # as if the value at place i were that at the place i of all real numbers
        lower = (at.ceil() - 1).clamp(min=0).minimum((sizes - 2).clamp(min=0))
        share = (at - lower) * (sizes > 1)
        return (places == lower) * (1 - share) + (places == lower + 1) * share

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Tensor | None = None) -> Float[Tensor, "B 1 d"]:
        """The weighted sums over the reference."""
        return (self.scales * self.reference).sum(dim=1).to(Z.dtype) + super().pooled(Z, mask)


@register("pooling", "pswe<m>", listed="pswe64", packed=True, export=True)
class WassersteinPool(FixedWassersteinPool):
    """y_f = sum_j w_fj (r_fj - q_f(rank of r_fj)): how far a set is from a reference of m points, slice by slice.

    Slice f of a set are the numbers theta_f z of its rows, theta_f of length 1. q_f(j) is their quantile at (j + 1) /
    (m + 1), the value at place i from 0 of n being that at (i + 1) / (n + 1); between values it is interpolated, beyond
    them extrapolated, linearly. So the reference's point with the j-th rank is moved to q_f(j), which is optimal
    transport in one dimension.

    As released: as many slices as features, which they are in the beginning; a reference evenly from -1 to 1 in the
    beginning; w is drawn as by Xavier and Glorot. The authors sort the reference in place of ranking it, which is the
    same until training exchanges three points; here it is the paper's.

    Args:
        m: points of the reference.
        dim: width d of the rows, and slices.
    """

    def __init__(self, m: int, dim: int) -> None:
        super().__init__(m, dim)
        reference = self.reference
        del self.reference
        self.reference = nn.Parameter(reference)
        self.slices = nn.Parameter(torch.eye(dim))
        """theta, [slices, d], up to their lengths."""

    def features(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        """The slices of each row."""
        return F.linear(Z, F.normalize(self.slices, dim=1).to(Z.dtype))
