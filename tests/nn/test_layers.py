"""The split of an encoder into layers, and connections between layers against their formula."""

import pytest
import torch
from torch import nn

from pointset.nn.layers import ConnectedLayers, Masked, split_layers
from pointset.nn.norms import LayerNorm


def test_a_layer_begins_at_each_module_with_weights_other_than_a_norm():
    first, norm, second, third = Masked(nn.Linear(3, 5)), LayerNorm(5), Masked(nn.Linear(5, 7)), nn.Bilinear(2, 2, 2)
    act, scale = Masked(nn.ReLU()), Masked(nn.Hardtanh())
    layers = split_layers([scale, first, norm, act, second, act, norm, third])
    assert layers == [[scale, first, norm, act], [second, act, norm], [third]]


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("side_by_side", [False, True])
def test_connected_layers_equal_their_formula(every, side_by_side):
    """Z_l = f_l(Z_{l-1} + X W_l), and join([Z_1, Z_2, Z_3])."""
    f = [Masked(nn.Linear(2, 5), nn.Tanh()), Masked(nn.Linear(5, 7), nn.Tanh()), Masked(nn.Linear(7, 11))]
    W = [nn.Linear(2, 5, bias=False), nn.Linear(2, 7, bias=False)]
    join = Masked(nn.Linear(5 + 7 + 11, 13))
    X = torch.randn(3, 17, 2)
    Z = [f[0](X)]
    Z.append(f[1](Z[0] + X @ W[0].weight.T if every else Z[0]))
    Z.append(f[2](Z[1] + X @ W[1].weight.T if every else Z[1]))
    expected = torch.cat(Z, dim=2) @ join.rowwise[0].weight.T + join.rowwise[0].bias if side_by_side else Z[2]
    connected = ConnectedLayers([[one] for one in f], W if every else [], [join] if side_by_side else [], (2, 5, 7, 11))
    torch.testing.assert_close(connected(X), expected)
