"""Layers of an encoder: its split into them, and the options that connect them."""

import pytest
import torch
from torch import nn

import pointset
from pointset.nn import LayerNorm, registry
from pointset.nn.layers import ConnectedLayers, Masked, split_layers
from pointset.nn.norms import BatchNorm, NoNorm

pointset.list_models()  # also enters the parts that POINTSET_PARTS names
ENCODERS = [part.listed for part in registry.entries("encoder") if part.make.layered]
EVERY, ALL = {"coordinates": "every"}, {"outputs": "all"}


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=5, dim=16, dropout=0.0, **options).double()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_an_encoder_has_the_same_weights_with_and_without_connections(encoder):
    usual, connected = (list(model_of(f"{encoder}-max", **one).encoder.state_dict().values()) for one in ({}, EVERY))
    for mine, theirs in zip(connected, usual, strict=False):
        assert torch.equal(mine, theirs)
    assert [value.shape[1] for value in connected[len(usual) :]] == [3] * (len(connected) - len(usual))


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("dumlp3-max", {}, BatchNorm),
        ("isab3-max", {"form": "paper"}, LayerNorm),
        ("rff-max", {"form": "paper"}, NoNorm),
    ],
)
def test_outputs_are_joined_with_the_norm_that_the_encoder_has(name, options, kind):
    (connected,) = model_of(name, **ALL, **options).encoder
    linear, norm, _ = connected.join
    assert type(norm) is kind
    assert (linear.rowwise[0].bias is None) == (kind is BatchNorm)


def test_an_encoder_without_layers_has_nothing_to_connect():
    assert not {"coordinates", "outputs"} & pointset.zoo.names.used_options("none-max")
    assert str(model_of("none-max", **EVERY, **ALL)) == str(model_of("none-max"))


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
