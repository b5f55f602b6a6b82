"""Options that connect the layers of an encoder, for every encoder."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.nn import LayerNorm, registry
from pointset.nn.layers import ConnectedLayers
from pointset.nn.norms import BatchNorm, NoNorm

pointset.list_models()  # also enters the parts that POINTSET_PARTS names
ENCODERS = [part.listed for part in registry.parts("encoder") if part.layered]
EVERY, ALL = {"coordinates": "every"}, {"outputs": "all"}


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=5, dim=16, dropout=0.0, **options).double()


def clouds(*sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 3, generator=generator, dtype=torch.float64) for size in sizes]


@pytest.mark.parametrize("encoder", ENCODERS)
def test_an_encoder_has_the_same_weights_with_and_without_connections(encoder):
    usual, connected = (list(model_of(f"{encoder}-max", **one).encoder.state_dict().values()) for one in ({}, EVERY))
    for mine, theirs in zip(connected, usual, strict=False):
        assert torch.equal(mine, theirs)
    assert [value.shape[1] for value in connected[len(usual) :]] == [3] * (len(connected) - len(usual))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_connected_encoders_are_one_layer_after_the_other(encoder):
    model = model_of(f"{encoder}-max", **EVERY, **ALL, norm="layer", layers=3).eval()
    (connected,) = model.encoder
    assert isinstance(connected, ConnectedLayers)
    assert len(connected.layers) >= 3
    X = rows = clouds(8)[0][None]
    outputs = []
    for number, layer in enumerate(connected.layers):
        rows = rows if not number else rows + X @ connected.coordinates[number - 1].weight.T
        for module in layer:
            rows = module(rows, None)
        outputs.append(rows)
    linear, norm, activation = connected.join
    expected = activation(norm(linear(torch.cat(outputs, dim=2))))
    assert isinstance(norm, LayerNorm)
    torch.testing.assert_close(model.encode(X), expected)


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
