"""Generalised mean of each feature."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.modules import OneRowPool, Pooling
from pointset.nn.registry import register

LEAST_NUMBER = 1e-6
"""Smaller numbers are replaced by this one before the mean."""
EXPONENTS = (1e-2, 1e3)
"""Bounds of the exponent p. The lower one gives almost the geometric mean, the upper one almost the maximum."""
NOTHING = -1e9
"""Logarithm of x^p at padded rows. Its exponential is 0, and unlike -inf, it gives finite gradients."""


@register("pooling", "gem")
class GeMPool(OneRowPool):
    """y_f = ((1/n) sum_i x_fi^p)^(1/p), with a trained p: the mean if p = 1, near the maximum if p is large.

    As in the authors' code, all features share one p, and numbers below 10^-6 are replaced by 10^-6, because the mean
    is defined for positive numbers, such as outputs of a ReLU. The mean is computed with logarithms, so that no power
    overflows. The trained parameter is log p, so p stays positive.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, d], or zeros for an empty set.

    Args:
        exponent: initial exponent p.

    Source:
        Radenovic, Tolias and Chum, GeM (arXiv 1711.02512), eq. 3.

    Example:
        >>> pooled = pointset.nn.GeMPool(exponent=2.0)(torch.tensor([[[1.0], [7.0]]]))
        >>> round(pooled.item(), 3)
        5.0
    """

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        return cls()

    def __init__(self, exponent: float = 3.0) -> None:
        super().__init__()
        self.log_exponent = nn.Parameter(torch.tensor(math.log(exponent)))

    @property
    def exponent(self) -> Float[Tensor, ""]:
        """Exponent p."""
        low, high = map(math.log, EXPONENTS)
        return self.log_exponent.clamp(low, high).exp()

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        logarithms = Z.clamp(min=LEAST_NUMBER).log() * self.exponent.to(Z.dtype)  # logarithms of x^p
        if mask is None:
            count = torch.ones_like(logarithms[:1, :, :1]).sum(dim=1, keepdim=True)
        else:
            count = mask.sum(dim=1).clamp(min=1).to(Z.dtype)[:, None, None]
            logarithms = logarithms.masked_fill(~mask.unsqueeze(-1), NOTHING)
        return ((logarithms.logsumexp(dim=1, keepdim=True) - count.log()) / self.exponent.to(Z.dtype)).exp()
