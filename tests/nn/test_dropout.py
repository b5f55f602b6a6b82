"""Dropout with 16-bit random numbers: rate, scale, seeds, and no effect in evaluation."""

import math

import pytest
import torch

from pointset.nn.dropout import Dropout, random_words


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.83])
def test_dropout_drops_its_rate_and_keeps_the_mean(rate):
    torch.manual_seed(0)
    kept = Dropout(rate)(torch.ones(7, 101, 503))
    count = kept.numel()
    assert abs((kept == 0).float().mean() - rate) < 5 * math.sqrt(rate * (1 - rate) / count) + 2**-16
    assert kept[kept > 0].unique() == pytest.approx(1 / (1 - rate), rel=1e-4)


def test_neighbours_are_independent():
    """Four numbers come from one draw of the generator, but must be independent."""
    torch.manual_seed(1)
    words = random_words(400_003).double()
    assert len(words) == 400_003
    for lag in (1, 2, 3, 4):
        pairs = torch.stack([words[:-lag], words[lag:]])
        assert abs(torch.corrcoef(pairs)[0, 1]) < 5 / math.sqrt(len(words))
    counts = torch.bincount((words.long() + 2**15) // 4096, minlength=16).double()
    expected = len(words) / 16
    assert ((counts - expected) ** 2 / expected).sum() < 45  # chi squared at 15 degrees: 45 has p < 0.0001


def test_evaluation_mode_drops_nothing_and_a_seed_repeats_the_draws():
    layer, X = Dropout(0.3), torch.randn(3, 5)
    assert layer.eval()(X) is X
    layer.train()
    torch.manual_seed(7)
    first = layer(X)
    torch.manual_seed(7)
    assert torch.equal(layer(X), first)


@pytest.mark.slow
def test_a_training_step_can_be_compiled():
    """Rate and scale are also right in a compiled step, and only kept numbers have gradients."""
    layer = torch.compile(Dropout(0.25), backend="aot_eager", fullgraph=True)
    X = torch.ones(40, 503, requires_grad=True)
    torch.manual_seed(0)
    kept = layer(X)
    kept.sum().backward()
    assert abs((kept == 0).float().mean() - 0.25) < 5 * math.sqrt(0.25 * 0.75 / X.numel())
    assert kept.detach()[kept > 0].unique() == pytest.approx(4 / 3, rel=1e-6)
    assert torch.equal(X.grad, kept.detach())
