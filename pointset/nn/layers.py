"""Connections between encoder layers: coordinates in every layer, and outputs of all layers.

An encoder is a list of modules that are called in turn. A layer of it begins at a module with trained weights that is
not a norm, and has everything up to the next of them: activations, norms, dropout.
"""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout
from pointset.nn.norms import is_norm


def split_layers(modules: Sequence[nn.Module]) -> list[list[nn.Module]]:
    """The modules of an encoder, layer by layer."""
    starts = [i for i, module in enumerate(modules) if not is_norm(module) and any(True for _ in module.parameters())]
    cuts = [0, *starts[1:], len(modules)]
    return [list(modules[first:last]) for first, last in itertools.pairwise(cuts)]


class ConnectedLayers(nn.Module):
    """The layers of an encoder f_1, ..., f_L with one or both of these connections, for points X [B, n, inputs].

    - Coordinates in every layer: Z_l = f_l(Z_{l-1} + X W_l) for l > 1, Z_1 = f_1(X). A linear map of the two laid side
      by side is such a sum, so that every row meets its coordinates at each level, as PointNet++ has it (Qi et al.,
      arXiv 1706.02413, section 3.2), and layers keep their widths.
    - Outputs of all layers: join([Z_1, ..., Z_L]) in place of Z_L, as the point cloud transformer lays its attention
      layers side by side before the pooling (Guo et al., arXiv 2012.09688, eq. 1).

    Args:
        layers: each a list of modules called in turn as `module(rows, mask)`.
        coordinates: W_2, ..., W_L, modules without a bias; empty for the first layer alone.
        join: modules called in turn as `module(rows, mask)` on the outputs of all layers, laid side by side; empty for
            the last output alone.
        widths: of the rows of X, and of those that leave each layer.
    """

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

    def forward(self, X: Float[Tensor, "*rows inputs"], mask: Layout | None = None) -> Float[Tensor, "*rows d"]:
        """Return the rows, in the order of X; `mask` is True at real rows."""
        rows, outputs = X, []
        for number, layer in enumerate(self.layers):
            rows = self.enter(number, rows, X)
            for module in layer:  # type: ignore[attr-defined]
                rows = module(rows, mask)
            outputs.append(rows)
        rows = torch.cat(outputs, dim=-1) if len(self.join) else rows
        for module in self.join:
            rows = module(rows, mask)
        return rows

    def enter(self, number: int, rows: Tensor, X: Tensor) -> Tensor:
        """What layer `number`, from 0, is given: the rows so far, with the coordinates if it gets them."""
        return rows + self.coordinates[number - 1](X) if number and len(self.coordinates) else rows
