"""Layers of an encoder: its split into them."""

from torch import nn

from pointset.nn import LayerNorm
from pointset.nn.layers import Masked, split_layers


def test_a_layer_begins_at_each_module_with_weights_other_than_a_norm():
    first, norm, second, third = Masked(nn.Linear(3, 5)), LayerNorm(5), Masked(nn.Linear(5, 7)), nn.Bilinear(2, 2, 2)
    act, scale = Masked(nn.ReLU()), Masked(nn.Hardtanh())
    layers = split_layers([scale, first, norm, act, second, act, norm, third])
    assert layers == [[scale, first, norm, act], [second, act, norm], [third]]
