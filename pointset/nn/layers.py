"""Row-wise layers, and the layers of an encoder.

An encoder is a list of modules that are called in turn. A layer is a module with trained weights, other than a norm,
together with the activations, norms and dropout that follow it.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.masks import Mask
from pointset.nn.norms import is_norm


class Masked(nn.Module):
    """A sequence of row-wise modules that is called with a mask, and ignores it."""

    def __init__(self, *rowwise: nn.Module) -> None:
        super().__init__()
        self.rowwise = nn.Sequential(*rowwise)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X."""
        return self.rowwise(X)


def split_layers(modules: Sequence[nn.Module]) -> list[list[nn.Module]]:
    """The modules of an encoder, layer by layer."""
    starts = [i for i, module in enumerate(modules) if not is_norm(module) and any(True for _ in module.parameters())]
    cuts = [0, *starts[1:], len(modules)]
    return [list(modules[first:last]) for first, last in itertools.pairwise(cuts)]


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
