"""Adapter for row-wise modules, which take no mask."""

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout


class Masked(nn.Module):
    """A sequence of row-wise modules that is called with a mask, and ignores it."""

    def __init__(self, *rowwise: nn.Module) -> None:
        super().__init__()
        self.rowwise = nn.Sequential(*rowwise)

    def forward(self, X: Float[Tensor, "*rows d_in"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the rows, in the order of X."""
        return self.rowwise(X)
