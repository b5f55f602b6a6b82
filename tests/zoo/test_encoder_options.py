"""Options that connect the layers of an encoder, for every encoder."""

import pytest
import torch
from torch import nn

import pointset
from pointset.nn import LayerNorm, registry
from pointset.nn.norms import BatchNorm, NoNorm

pointset.list_models()  # also enters the parts that POINTSET_PARTS names
ENCODERS = [part.listed for part in registry.parts("encoder") if part.layered]
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
