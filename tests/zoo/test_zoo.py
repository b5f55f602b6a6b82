"""Models are determined by their names, seeds and specs."""

import pytest
import torch
from small_models import CLASSES, model_of
from torch import nn

import pointset


def test_the_seed_decides_the_weights_and_global_state_does_not():
    before = torch.random.get_rng_state()
    first, again, other = (pointset.create_model("isab16-pma", dim=16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    for (name, mine), theirs in zip(first.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs), name
    assert not torch.equal(first.head[2].weight, other.head[2].weight)


@pytest.mark.parametrize(
    ("name", "width"),
    [("max", 16), ("max+mean", 32), ("aggr.softmax", 16), ("aggr.set2set", 32), ("aggr.quantile", 48)],
)
def test_symmetric_poolings_share_encoder_and_decoder(name, width):
    """Rows of a comparison differ only in the pooling, and in the first layer after it, which depends on the width."""
    model = model_of(f"isab3-{name}")
    usual = model_of("isab3-max")
    assert str(model.encoder) == str(usual.encoder)
    for mine, theirs in zip(model.encoder.parameters(), usual.encoder.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert [type(layer) for layer in model.head] == [type(layer) for layer in usual.head]
    assert [tuple(layer.weight.shape) for layer in model.head if isinstance(layer, nn.Linear)] == [
        (16, width),
        (CLASSES, 16),
    ]
