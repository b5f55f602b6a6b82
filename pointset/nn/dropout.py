"""Dropout that is fast on a CPU: cheap random numbers."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16


class Dropout(nn.Module):
    """In training, sets each number to zero with probability `rate` and divides the others by 1 - rate.

    It differs from `nn.Dropout` only in its random numbers. On a CPU they have 16 bits, four per draw from torch's
    default generator, where `nn.Dropout` draws a double for each. The rate is rounded to a multiple of 2^-16.
    """

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, X: Tensor) -> Tensor:
        """Return X with some of its numbers dropped; X itself in evaluation mode."""
        if not self.training or self.rate == 0.0:
            return X
        if X.device.type != "cpu" or torch.compiler.is_compiling():  # the reinterpreted draws do not compile
            return F.dropout(X, self.rate)
        dropped = round(self.rate * LEVELS)
        keep = random_words(X.numel()) >= dropped - LEVELS // 2
        return X * keep.view(X.shape) * (LEVELS / (LEVELS - dropped))

    def extra_repr(self) -> str:
        """The rate."""
        return f"rate={self.rate}"


def random_words(count: int) -> Tensor:
    """Independent int16 [count], uniform over all 2^16 values."""
    whole = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    return whole.view(torch.int16)[:count]
