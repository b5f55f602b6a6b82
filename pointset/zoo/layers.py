"""How a zoo model puts the layers of its encoder together, whichever encoder it is."""

import itertools
from collections.abc import Sequence

import torch
from torch import nn

from pointset.configuration import NormName
from pointset.nn.dropout import Dropout
from pointset.nn.layers import ConnectedLayers, Masked, in_evaluation_mode, split_layers
from pointset.nn.norms import NORMS, has_shift, make_norm
from pointset.nn.registry import Choice
from pointset.zoo.options import ModelOptions


def put_together(encoder: Choice, modules: list[nn.Module], inputs: int, options: ModelOptions) -> list[nn.Module]:
    """The modules that a model calls in turn, of those that an encoder was built as.

    Where the connections are the usual ones these are the encoder's own, with dropout after each layer if it is asked
    for. Weights that connections need are drawn after those of the encoder, which has the same weights with and
    without them.
    """
    layers = split_layers(modules)
    if options.row_dropout:
        layers = [[*layer, Masked(Dropout(options.row_dropout))] for layer in layers]
    if len(layers) < 2 or (options.coordinates == "first" and options.outputs == "last"):
        return list(itertools.chain(*layers))
    connected = _connected(encoder, layers, inputs, options)
    connected.registered_as = encoder.part  # type: ignore[assignment]
    return [connected]


def _connected(encoder: Choice, layers: list[list[nn.Module]], inputs: int, options: ModelOptions) -> ConnectedLayers:
    widths = [inputs]
    for layer in layers:
        widths.append(shape_of(layer, widths[-1])[-1])
    again = widths[1:-1] if options.coordinates == "every" else []
    coordinates = [nn.Linear(inputs, width, bias=False) for width in again]
    join: list[nn.Module] = []
    if options.outputs == "all":
        norm = _norm_of(layers)
        linear = nn.Linear(sum(widths[1:]), options.dim, bias=not has_shift(norm))
        join = [Masked(linear), make_norm(norm, options.dim), Masked(encoder.part.activation())]
    return ConnectedLayers(layers, coordinates, join, widths)


def _norm_of(layers: list[list[nn.Module]]) -> NormName:
    """The norm that an encoder's own layers have."""
    inside = (type(part) for module in itertools.chain(*layers) for part in module.modules())
    names = (name for kind in inside for name, norm in NORMS.items() if kind is norm)
    return next(names, "none")


def shape_of(modules: Sequence[nn.Module], width: int) -> list[int]:
    """The shape of what modules called in turn make of one row of this width."""
    rows = torch.zeros(1, 1, width)
    for module in modules:
        with torch.no_grad(), in_evaluation_mode(module):
            rows = module(rows, None)
    return list(rows.shape)
