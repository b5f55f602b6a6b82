"""Attentive statistics pooling: mean and standard deviation under attention weights."""

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.nn.modules import Maps, OneRowPool
from pointset.nn.registry import register
from pointset.nn.simplex.unbounded import softmax


@register("pooling", "asp")
class AttentiveStatisticsPool(OneRowPool):
    """The d means and then the d standard deviations of the features, under attention weights on the rows.

    The weights are a = softmax over the rows of v^T ReLU(W x + b), with d / 2 hidden units. The mean is m = sum_i a_i
    x_i. The deviation is sqrt(sum_i a_i (x_i - m)^2 + 10^-6), where 10^-6 keeps the root differentiable. The constant
    that the paper adds to the logits is omitted, because it cancels in the softmax.

    Z [B, n, d] with a mask [B, n] (True at real rows) gives [B, 1, 2 d], or zeros for an empty set.

    Args:
        dim: width d of the rows.

    Source:
        Okabe, Koshinaka and Shinoda, Attentive statistics pooling (arXiv 1803.10963).

    Example:
        >>> pointset.nn.AttentiveStatisticsPool(16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 32])
    """

    maps: ClassVar[Maps] = {"": ("pools", "keys")}

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(dim, max(1, dim // 2))
        self.score = nn.Linear(self.hidden.out_features, 1, bias=False)
        self.record: Callable[[Tensor], object] | None = None
        """Function that every forward pass calls with the weights [B, 1, 1, n], or None."""

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 _"]:
        hidden = F.linear(Z, self.hidden.weight.to(Z.dtype), self.hidden.bias.to(Z.dtype)).relu()
        logits = (hidden @ self.score.weight.to(Z.dtype).T).transpose(1, 2)
        A = softmax(logits, None if mask is None else mask[:, None, :])
        if self.record is not None:
            self.record(A.unsqueeze(1))
        mean = A @ Z
        return torch.cat([mean, (A @ (Z - mean).square() + 1e-6).sqrt()], dim=2)
