"""Poolings by moments of the rows: attentive mean and deviation, generalised mean, covariance."""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.masks import masked_mean, zero_padded_rows
from pointset.nn.parts import Maps, Pooling
from pointset.nn.pooling.whole import WholePool
from pointset.nn.registry import register
from pointset.nn.simplex.unbounded import softmax

LEAST_NUMBER = 1e-6
"""A generalised mean replaces smaller numbers by this."""
EXPONENTS = (1e-2, 1e3)
"""Bounds of its exponent p: close to the geometric mean, and close to the maximum."""
NOTHING = -1e9
"""Replaces the logarithm of x^p at padded rows: its exponential is 0, and unlike -inf it has a finite gradient."""
WIDEST_COVARIANCE = 256
"""The largest reduced width r of a covariance; its result has 32,896 numbers."""


@register("pooling", "asp")
class AttentiveStatisticsPool(WholePool):
    """Mean and standard deviation of each feature under attention weights, the d means first: [B, 1, 2 d].

    The weights are a = softmax over the rows of v^T f(W x + b), with f a ReLU and d / 2 hidden units. The mean is
    m = sum_i a_i x_i, the deviation sqrt(sum_i a_i (x_i - m)^2 + 10^-6), where 10^-6 keeps the root differentiable. The
    paper's constant in the logits is omitted: it cancels in the softmax. Source: Okabe, Koshinaka and Shinoda, arXiv
    1803.10963.
    """

    maps: ClassVar[Maps] = {"": ("pools", "keys")}

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, max(1, dim // 2))
        self.score = nn.Linear(self.hidden.out_features, 1, bias=False)
        self.record: Callable[[Tensor], object] | None = None
        """Called with the weights [B, 1, 1, n] of every forward pass; None: not called."""

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 _"]:
        """The weighted statistics of each set."""
        hidden = F.linear(Z, self.hidden.weight.to(Z.dtype), self.hidden.bias.to(Z.dtype)).relu()
        logits = (hidden @ self.score.weight.to(Z.dtype).T).transpose(1, 2)
        A = softmax(logits, None if mask is None else mask[:, None, :])
        if self.record is not None:
            self.record(A.unsqueeze(1))
        mean = A @ Z
        return torch.cat([mean, (A @ (Z - mean).square() + 1e-6).sqrt()], dim=2)


@register("pooling", "gem")
class GeneralisedMeanPool(WholePool):
    """y_f = ((1/n) sum_i x_fi^p)^(1/p), with p trained, initially 3: the mean for p = 1, the maximum as p grows.

    As released, all features share one p, and numbers below 10^-6 are replaced by 10^-6, because the mean is defined
    for positive numbers, such as outputs of a ReLU. It is computed with logarithms, so that no power overflows. The
    trained parameter is log p, so that p stays positive. Source: Radenovic, Tolias and Chum, arXiv 1711.02512, eq. 3.
    """

    @classmethod
    def make(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build it; it depends on nothing."""
        return cls()

    def __init__(self, exponent: float = 3.0) -> None:
        super().__init__()
        self.log_exponent = nn.Parameter(torch.tensor(math.log(exponent)))

    @property
    def exponent(self) -> Float[Tensor, ""]:
        """The exponent p."""
        low, high = map(math.log, EXPONENTS)
        return self.log_exponent.clamp(low, high).exp()

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 d"]:
        """The generalised mean of each feature."""
        logarithms = Z.clamp(min=LEAST_NUMBER).log() * self.exponent.to(Z.dtype)  # of x^p
        if mask is None:
            count = torch.ones_like(logarithms[:1, :, :1]).sum(dim=1, keepdim=True)
        else:
            count = mask.sum(dim=1).clamp(min=1).to(Z.dtype)[:, None, None]
            logarithms = logarithms.masked_fill(~mask.unsqueeze(-1), NOTHING)
        return ((logarithms.logsumexp(dim=1, keepdim=True) - count.log()) / self.exponent.to(Z.dtype)).exp()


@register("pooling", "cov<r>", listed="cov32")
class CovariancePool(WholePool):
    """The upper triangle of C^(1/2), r (r + 1) / 2 numbers, with C the covariance [r, r] of the rows ReLU(W x + b).

    iSQRT-COV: C is divided by its trace, five Newton-Schulz iterations approximate the square root, and the result is
    multiplied by the root of the trace. As usual, the width is first reduced from d to r, because the result grows with
    its square. The published batch norm between W and the ReLU is omitted.

    Source: Li et al., arXiv 1712.01034, section 3.

    Args:
        r: reduced width.
        dim: width d of the rows.
        steps: number of Newton-Schulz iterations.
    """

    upper: Tensor

    @classmethod
    def check_argument(cls, argument: int) -> None:
        """Raise a PointsetError if r is above `WIDEST_COVARIANCE`."""
        if argument > WIDEST_COVARIANCE:
            numbers = argument * (argument + 1) // 2
            raise PointsetError(
                f"cov{argument} gives {numbers:,} numbers for each set: give at most cov{WIDEST_COVARIANCE}"
            )

    def __init__(self, r: int, dim: int, steps: int = 5) -> None:
        super().__init__()
        self.reduce = nn.Linear(dim, r)
        self.steps = steps
        rows, columns = torch.triu_indices(r, r)
        self.register_buffer("upper", rows * r + columns, persistent=False)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """The upper triangle of C^(1/2); zeros, with finite gradients, for C = 0."""
        X = F.linear(Z, self.reduce.weight.to(Z.dtype), self.reduce.bias.to(Z.dtype)).relu()
        X = zero_padded_rows(X - masked_mean(X, mask), mask)
        sizes = torch.ones_like(X[:1, :, 0]) if mask is None else mask.to(X.dtype)
        C = X.transpose(1, 2) @ X / sizes.sum(dim=1).clamp(min=1)[:, None, None]
        eye = torch.eye(C.shape[1], dtype=C.dtype, device=C.device)
        # Not `+ 1e-12`: the ONNX exporter treats that as 0 and removes it.
        trace = C.diagonal(dim1=1, dim2=2).sum(dim=1)[:, None, None].clamp(min=1e-12)
        Y, Z = C / trace, eye.expand_as(C)
        for _ in range(self.steps):
            T = 1.5 * eye - 0.5 * (Z @ Y)
            Y, Z = Y @ T, T @ Z
        return (Y * trace.sqrt()).flatten(1)[:, self.upper].unsqueeze(1)
