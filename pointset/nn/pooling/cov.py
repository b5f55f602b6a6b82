"""Second-order pooling: the square root of the covariance of reduced rows (Li et al., arXiv 1712.01034, section 3)."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.masks import masked_mean, zero_padding
from pointset.nn.pooling.whole import WholePool
from pointset.nn.registry import register

MOST = 256
"""The largest reduced width r; its result has 32,896 numbers."""


def reads(r: int) -> set[str]:
    """The parameters of the pooling; raises a PointsetError if r is above `MOST`."""
    if r > MOST:
        raise PointsetError(f"cov{r} gives {r * (r + 1) // 2:,} numbers for each set: give at most cov{MOST}")
    return {"dim"}


@register("pooling", "cov<r>", listed="cov32", reads=reads, packed=True, export=True)
class CovariancePool(WholePool):
    """The upper triangle of C^(1/2), r (r + 1) / 2 numbers, with C the covariance [r, r] of the rows ReLU(W x + b).

    iSQRT-COV: C is divided by its trace, five Newton-Schulz iterations approximate the square root, and the result is
    multiplied by the root of the trace. As usual, the width is first reduced from d to r, because the result grows with
    its square. The published batch norm between W and the ReLU is omitted.

    Args:
        r: reduced width.
        dim: width d of the rows.
        steps: number of Newton-Schulz iterations.
    """

    upper: Tensor

    def __init__(self, r: int, dim: int, steps: int = 5) -> None:
        super().__init__()
        self.reduce = nn.Linear(dim, r)
        self.steps = steps
        rows, columns = torch.triu_indices(r, r)
        self.register_buffer("upper", rows * r + columns, persistent=False)

    def reduced(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B n r"]:
        """The rows ReLU(W x + b)."""
        return F.linear(Z, self.reduce.weight.to(Z.dtype), self.reduce.bias.to(Z.dtype)).relu()

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """The upper triangle of C^(1/2)."""
        X = self.reduced(Z)
        X = zero_padding(X - masked_mean(X, mask), mask)
        sizes = torch.ones_like(X[:1, :, 0]) if mask is None else mask.to(X.dtype)
        return self.of_covariance(X.transpose(1, 2) @ X / sizes.sum(dim=1).clamp(min=1)[:, None, None])

    def of_covariance(self, C: Float[Tensor, "B r r"]) -> Float[Tensor, "B 1 e"]:
        """The upper triangle of C^(1/2); zeros, with finite gradients, for C = 0."""
        eye = torch.eye(C.shape[1], dtype=C.dtype, device=C.device)
        # Not `+ 1e-12`: the ONNX exporter treats that as 0 and removes it.
        trace = C.diagonal(dim1=1, dim2=2).sum(dim=1)[:, None, None].clamp(min=1e-12)
        Y, Z = C / trace, eye.expand_as(C)
        for _ in range(self.steps):
            T = 1.5 * eye - 0.5 * (Z @ Y)
            Y, Z = Y @ T, T @ Z
        return (Y * trace.sqrt()).flatten(1)[:, self.upper].unsqueeze(1)
