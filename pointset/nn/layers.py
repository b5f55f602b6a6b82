"""Row-wise layers, and the mode of modules."""

from collections.abc import Iterator
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.masks import Mask


class Masked(nn.Module):
    """A sequence of row-wise modules that is called with a mask, and ignores it."""

    def __init__(self, *rowwise: nn.Module) -> None:
        super().__init__()
        self.rowwise = nn.Sequential(*rowwise)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X."""
        return self.rowwise(X)


@contextmanager
def in_evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put the module in evaluation mode inside this block; afterwards restore the mode of each submodule."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training
