"""Row-wise layers, dropout, and evaluation mode."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.tiles import TILE, have_values
from pointset.nn.masks import Mask

LEVELS = 2**16
"""Number of possible values of a random number in `Dropout`."""


class Masked(nn.Module):
    """A sequence of row-wise modules that accepts a mask and ignores it."""

    def __init__(self, *rowwise: nn.Module) -> None:
        super().__init__()
        self.rowwise = nn.Sequential(*rowwise)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X."""
        return self.rowwise(X)


class Dropout(nn.Dropout):
    """`nn.Dropout` with cheaper random numbers on a CPU.

    In training, each number is set to zero with probability p. The other numbers are divided by 1 - p. On a CPU, one
    draw from torch's global generator gives four random numbers of 16 bits, so p is rounded to a multiple of 2^-16.
    `nn.Dropout` makes one draw per number.

    Example:
        >>> X = pointset.nn.Dropout(0.25)(torch.ones(1000))
        >>> X.unique().tolist()
        [0.0, 1.3333333730697632]
    """

    def forward(self, X: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Return X with some numbers set to zero and the others scaled. In evaluation mode, return X itself."""
        if not self.training or self.p == 0.0:
            return X
        dropped = round(self.p * LEVELS)
        if X.device.type != "cpu" or not have_values(X) or dropped == LEVELS:
            return super().forward(X)
        keep = torch.empty_like(X, requires_grad=False, memory_format=torch.contiguous_format)
        for tile in keep.view(-1).split(TILE):  # a tile fits the cache
            draws = torch.empty(-(-len(tile) // 4), dtype=torch.int64).random_(-(2**63), None)
            words = draws.view(torch.int16)[: len(tile)]  # uniform from -2^15 to 2^15 - 1
            torch.ge(words, dropped - LEVELS // 2, out=tile).mul_(LEVELS / (LEVELS - dropped))
        return X * keep


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put the module in evaluation mode inside this block. Afterwards, restore the mode of each submodule."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
