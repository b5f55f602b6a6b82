"""Dropout whose random numbers cost little on a CPU."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LEVELS = 2**16


class Dropout(nn.Module):
    """Zeroes each number with probability `rate` while training and divides the others by 1 - rate.

    The same as `nn.Dropout` up to the random numbers: on a CPU they are 16 bits each, four from one draw of torch's
    default generator, where `nn.Dropout` makes a double of each (3 against 12 ms for 32 sets of 100 rows of 256, a
    tenth of a training step). The rate is rounded to the nearest 2^-16. Under `torch.compile` they are torch's own, as
    the compiler knows neither this draw nor a view of int64 as int16.
    """

    def __init__(self, rate: float = 0.5) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, X: Tensor) -> Tensor:
        """Return X with some of its numbers dropped; X itself in evaluation mode."""
        if not self.training or self.rate == 0.0:
            return X
        if X.device.type != "cpu" or torch.compiler.is_compiling():
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
