"""The effects of the options of a model."""

import pytest
import torch
from small_models import CLASSES, FEW, model_of
from torch import nn
from toy import normal

import pointset
from pointset.zoo.names import NEIGHBOURHOODS, used_options

CHANGED = {
    "dim": 20,
    "heads": 2,
    "layers": 5,
    "form": "paper",
    "scale": "head",
    "norm": "set",
    "dropout": 0.3,
    "pool_seeds": "mean",
    "initial": "xavier",
    "temperature": 2.0,
    "trained_temperature": True,
    "attention_dropout": 0.3,
    "weights": "sparsemax",
    "pool_weights": "entmax15",
    "head": "rff",
    "head_dim": 24,
    "head_norm": "batch",
    "pooled_dropout": 0.1,
    "score": "bilinear",
}
CHANGED_WITH = [
    ("prenorm", True, {"norm": "layer"}),
    ("score_layers", 2, {"score": "additive"}),
    ("bound", 1.5, {"weights": "csparsemax"}),
    ("coverage", "heads", {"weights": "csparsemax"}),
]
"""Options that change something beside others only."""


def what_it_is(name: str, options: dict) -> tuple:
    """Everything in which two models can differ: structure, weights, and outputs in training."""
    model = model_of(name, **options).train()
    torch.manual_seed(0)
    logits = model(normal(5, 9, 3))
    return logits.tolist(), [(key, value.shape) for key, value in model.state_dict().items()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FEW if "rff-" in name or not name.endswith(("-mean", "-pma"))])
def test_used_options_are_those_that_change_the_model(name):
    plain = what_it_is(name, {})
    changing = {option for option, value in CHANGED.items() if what_it_is(name, {option: value}) != plain}
    for option, value, other in CHANGED_WITH:
        if what_it_is(name, {**other, option: value}) != what_it_is(name, other):
            changing |= {option}
    # Numbers of neighbourhoods need more points; of torch-geometric's aggregations, two use heads.
    untested = NEIGHBOURHOODS | ({"heads"} if "aggr" in name else set())
    assert used_options(name) - untested == changing - untested


def test_prenorm_does_not_take_the_size_of_a_cloud_away():
    """As layer norms of raw coordinates would."""
    model, X = model_of("isab5-max", norm="layer", prenorm=True), normal(2, 9, 3)
    assert (model(3 * X) - model(X)).abs().max() > 1e-3


def test_weights_of_the_pooling_are_not_those_of_the_layer_after_it():
    pool = model_of("rff-pma2", pool_weights="sparsemax").pool
    assert [set(block.mab.multihead.weights.names) for block in (pool.pma, pool.sab)] == [{"sparsemax"}, {"softmax"}]


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_the_head_has_the_width_the_norm_and_the_rates_that_are_asked_for(norm):
    options = {"head_dim": 24, "head_norm": norm, "pooled_dropout": 0.0, "dropout": 0.25}
    head = model_of("rff-max", **options).head
    linear = [one for one in head if isinstance(one, nn.Linear)]
    assert [(one.in_features, one.out_features) for one in linear] == [(16, 24), (24, CLASSES)]
    assert (linear[0].bias is None) == (norm == "batch")  # which would take it away again
    assert [one.p for one in head if isinstance(one, nn.Dropout)] == [0.0, 0.25]
    names = [type(one).__name__ for one in head]
    assert ("LayerNorm" in names, "BatchNorm" in names) == (norm == "layer", norm == "batch")


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
