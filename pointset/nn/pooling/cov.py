"""Covariance pooling: the matrix square root of the covariance of the rows."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import check_counts
from pointset.errors import PointsetError
from pointset.nn.masks import masked_mean, zero_padded_rows
from pointset.nn.modules import OneRowPool
from pointset.nn.registry import register

WIDEST_COVARIANCE = 256
"""Maximum reduced width r of a covariance, with which the result has 32,896 numbers."""


@register("pooling", "cov<r>", listed="cov32")
class CovariancePool(OneRowPool):
    """The upper triangle of C^(1/2), where C [r, r] is the covariance of the rows ReLU(W x + b).

    This is iSQRT-COV: C is divided by its trace, five Newton-Schulz iterations approximate the square root, and the
    result is multiplied by the square root of the trace. As in the paper, a linear layer first reduces the width from d
    to r, because the result grows with the square of the width. The paper's batch norm before the ReLU is omitted.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, r (r + 1) / 2], or zeros for an empty set.

    Args:
        r: reduced width.
        dim: width d of the rows.
        steps: number of Newton-Schulz iterations.

    Source:
        Li et al., iSQRT-COV (arXiv 1712.01034), section 3.

    Example:
        >>> pointset.nn.CovariancePool(4, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 10])
    """

    upper: Tensor

    @classmethod
    def check_argument(cls, argument: int) -> None:
        """Raise a PointsetError if r is above `WIDEST_COVARIANCE`."""
        if argument > WIDEST_COVARIANCE:
            many = f"cov{argument} gives {argument * (argument + 1) // 2:,} numbers for each set"
            raise PointsetError(f"{many}: give at most cov{WIDEST_COVARIANCE}")

    def __init__(self, r: int, dim: int, steps: int = 5) -> None:
        super().__init__()
        check_counts(r=r, dim=dim, steps=steps)
        self.reduce = nn.Linear(dim, r)
        self.steps = steps
        rows, columns = torch.triu_indices(r, r)
        self.register_buffer("upper", rows * r + columns, persistent=False)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """Return the upper triangle of C^(1/2), or zeros with finite gradients for C = 0."""
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
