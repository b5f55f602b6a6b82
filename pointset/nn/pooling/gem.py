"""Pooling by a generalised mean with a trained exponent (Radenovic, Tolias and Chum, arXiv 1711.02512, eq. 3)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.pooling.whole import WholePool
from pointset.nn.registry import register

LEAST = 1e-6
"""Smaller numbers are replaced by this."""
EXPONENTS = (1e-2, 1e3)
"""Bounds of p: close to the geometric mean, and close to the maximum."""
NOTHING = -1e9
"""Replaces the logarithm of x^p at padded rows: its exponential is 0, and unlike -inf it has a finite gradient."""


@register("pooling", "gem", packed=True, export=True)
class GeneralisedMeanPool(WholePool):
    """y_f = ((1/n) sum_i x_fi^p)^(1/p), with p trained, initially 3: the mean for p = 1, the maximum as p grows.

    As released, all features share one p, and numbers below 10^-6 are replaced by 10^-6, because the mean is defined
    for positive numbers, such as outputs of a ReLU. It is computed with logarithms, so that no power overflows. The
    trained parameter is log p, so that p stays positive.
    """

    def __init__(self, exponent: float = 3.0) -> None:
        super().__init__()
        self.log_exponent = nn.Parameter(torch.tensor(math.log(exponent)))

    @property
    def exponent(self) -> Float[Tensor, ""]:
        """The exponent p."""
        low, high = map(math.log, EXPONENTS)
        return self.log_exponent.clamp(low, high).exp()

    def logarithms(self, Z: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """Logarithms of the powers x^p."""
        return Z.clamp(min=LEAST).log() * self.exponent.to(Z.dtype)

    def of_mean(self, log_mean: Float[Tensor, "B 1 d"]) -> Float[Tensor, "B 1 d"]:
        """The generalised mean y, from the logarithm of the mean of x^p."""
        return (log_mean / self.exponent.to(log_mean.dtype)).exp()

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The generalised mean of each feature."""
        logarithms = self.logarithms(Z)
        if mask is None:
            count = torch.ones_like(logarithms[:1, :, :1]).sum(dim=1, keepdim=True)
        else:
            count = mask.sum(dim=1).clamp(min=1).to(Z.dtype)[:, None, None]
            logarithms = logarithms.masked_fill(~mask.unsqueeze(-1), NOTHING)
        return self.of_mean(logarithms.logsumexp(dim=1, keepdim=True) - count.log())
