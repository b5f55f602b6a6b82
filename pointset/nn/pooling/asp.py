"""Attentive statistics pooling (Okabe, Koshinaka and Shinoda, arXiv 1803.10963)."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.pooling.whole import WholePool
from pointset.nn.registry import register
from pointset.nn.simplex.unbounded import softmax


@register("pooling", "asp", packed=True, export=True, maps=True)
class AttentiveStatisticsPool(WholePool):
    """Mean and standard deviation of each feature under attention weights, the d means first: [B, 1, 2 d].

    The weights are a = softmax over the rows of v^T f(W x + b), with f a ReLU and d / 2 hidden units. The mean is
    m = sum_i a_i x_i, the deviation sqrt(sum_i a_i (x_i - m)^2 + 10^-6), where 10^-6 keeps the root differentiable. The
    paper's constant in the logits is omitted: it cancels in the softmax.

    Args:
        dim: width d of the rows.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, max(1, dim // 2))
        self.score = nn.Linear(self.hidden.out_features, 1, bias=False)
        self.record: Callable[[Tensor], object] | None = None
        """Called with the weights [B, 1, 1, n] of every forward pass, for packed sets once per run; None: not called.
        """

    def logits(self, Z: Float[Tensor, "B n d"]) -> Float[Tensor, "B 1 n"]:
        """The logits of the rows, before the softmax."""
        weights = (self.hidden.weight.to(Z.dtype), self.hidden.bias.to(Z.dtype))
        return (F.linear(Z, *weights).relu() @ self.score.weight.to(Z.dtype).T).transpose(1, 2)

    @staticmethod
    def side_by_side(mean: Float[Tensor, "B 1 d"], variance: Float[Tensor, "B 1 d"]) -> Float[Tensor, "B 1 _"]:
        """Mean and standard deviation, concatenated."""
        return torch.cat([mean, (variance + 1e-6).sqrt()], dim=2)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 _"]:
        """The weighted statistics of each set."""
        A = softmax(self.logits(Z), None if mask is None else mask[:, None, :])
        if self.record is not None:
            self.record(A.unsqueeze(1))
        mean = A @ Z
        return self.side_by_side(mean, A @ (Z - mean).square())
