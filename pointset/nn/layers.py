"""Row-wise layers, and connections between layers.

An encoder is a list of modules that are called in turn. A layer is a module with trained weights, other than a norm,
together with the activations, norms and dropout that follow it.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
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


class ConnectedLayers(nn.Module):
    """The layers f_1, ..., f_L of an encoder of points X [B, n, inputs], with one or both of these connections.

    - Coordinates in every layer: Z_l = f_l(Z_{l-1} + X W_l) for l > 1, and Z_1 = f_1(X). The sum is a linear map of the
      concatenation of rows and coordinates, which PointNet++ uses at each level (Qi et al., arXiv 1706.02413, section
      3.2), without a change of the layers' widths.
    - Outputs of all layers: join([Z_1, ..., Z_L]) in place of Z_L, as the point cloud transformer concatenates its
      attention layers before the pooling (Guo et al., arXiv 2012.09688, eq. 1).

    Args:
        layers: each a list of modules, called in turn as `module(rows, mask)`.
        coordinates: W_2, ..., W_L, modules without a bias; empty if only the first layer gets the coordinates.
        join: modules called in turn as `module(rows, mask)` on the concatenated outputs of all layers; empty to return
            the last output.
        widths: width of the rows of X, then of the output of each layer.
    """

    javascript = ("layers", "coordinates", "join")

    def __init__(
        self,
        layers: Sequence[Sequence[nn.Module]],
        coordinates: Sequence[nn.Module],
        join: Sequence[nn.Module],
        widths: Sequence[int],
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.ModuleList(layer) for layer in layers)
        self.coordinates = nn.ModuleList(coordinates)
        self.join = nn.ModuleList(join)
        self.widths = tuple(widths)

    def forward(self, X: Float[Tensor, "B n inputs"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of X; `mask` is True at real rows."""
        rows, outputs = X, []
        for number, layer in enumerate(self.layers):
            if number and len(self.coordinates):
                rows = rows + self.coordinates[number - 1](X)
            for module in layer:  # type: ignore[attr-defined]
                rows = module(rows, mask)
            outputs.append(rows)
        rows = torch.cat(outputs, dim=-1) if len(self.join) else rows
        for module in self.join:
            rows = module(rows, mask)
        return rows


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
