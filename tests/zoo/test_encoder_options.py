"""Options that connect the layers of an encoder, for every encoder."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.data.ragged import pad_sets
from pointset.nn import LayerNorm, registry
from pointset.nn.fast import packing
from pointset.nn.layers import ConnectedLayers
from pointset.nn.norms import BatchNorm, NoNorm

pointset.list_models()  # also enters the parts that POINTSET_PARTS names
ENCODERS = [part.listed for part in registry.parts("encoder") if part.layered]
EVERY, ALL = {"coordinates": "every"}, {"outputs": "all"}
CONNECTED = [EVERY, ALL, {**EVERY, **ALL, "norm": "batch", "layers": 3}]
SIZES = (9, 4, 0, 7, 1)


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=5, dim=16, dropout=0.0, **options).double()


def clouds(*sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(size, 3, generator=generator, dtype=torch.float64) for size in sizes]


def learned(model: nn.Module, logits: Tensor) -> dict[str, Tensor]:
    """Logits, gradients and batch statistics of a step, without the key bias, whose gradient is zero."""
    logits.square().sum().backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None and "key.bias" not in name}
    return {"logits": logits.detach(), **gradients, **dict(model.named_buffers())}


@pytest.mark.parametrize("options", [*CONNECTED, {"norm": "batch"}], ids=str)
@pytest.mark.parametrize("encoder", ENCODERS)
def test_padding_has_no_influence_and_packed_sets_give_what_padding_gives(encoder, options, monkeypatch):
    """In training mode, with batch statistics and gradients."""
    monkeypatch.setattr(packing, "RUN", 0)  # sets of a few points would be padded, to save time
    found, sets = [], clouds(*SIZES)
    points, mask = pad_sets(sets)
    for extra in (0, 6):
        model = model_of(f"{encoder}-max", **options).train()
        padding = torch.full((len(sets), extra, 3), torch.nan, dtype=torch.float64)
        more = torch.cat([points.masked_fill(~mask[..., None], torch.nan), padding], dim=1)
        found.append(learned(model, model(more, torch.cat([mask, padding[..., 0] == 0], dim=1))))
    model = model_of(f"{encoder}-max", **options).train()
    batch = torch.arange(len(sets)).repeat_interleave(torch.tensor(SIZES))
    found.append(learned(model, model.packed(torch.cat(sets), batch, len(sets))))
    assert any("running_mean" in name for name in found[0]) >= ("norm" in options)
    for other in found[1:]:
        assert other.keys() == found[0].keys()
        for name, value in found[0].items():
            torch.testing.assert_close(other[name], value, msg=lambda text, name=name: f"{name}: {text}")


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
