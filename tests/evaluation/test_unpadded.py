"""Training and evaluation on sets of several sizes: the results of padding, without padding."""

import numpy as np
import pytest
import torch
from torch import nn
from toy import numbers

import pointset
from pointset.data.batches import Batch
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
from pointset.data.ragged import pad_sets
from pointset.nn.fast import packing
from pointset.training.recipe import Recipe
from pointset.zoo import predicting
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.predicting import forward

RECIPE = Recipe(epochs=3, batch_size=4, learning_rate=3e-3, validation=0.3)


@pytest.fixture(autouse=True)
def packed_though_small(monkeypatch):
    monkeypatch.setattr(packing, "RUN", 0)


@pytest.fixture(scope="module")
def train() -> PointSets:
    """Two classes of 9 clouds each, one flatter than the other, of 1 to 40 points."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 41, size=18)
    points = rng.standard_normal((sizes.sum(), 3)).astype(np.float32)
    labels = np.arange(18) % 2
    points[np.repeat(labels, sizes) == 1, 2] *= 0.1
    names = [f"cloud{number}" for number in range(18)]
    offsets = np.concatenate([[0], sizes.cumsum()])
    return PointSets(
        Pool(points, names, labels, ["full", "flat"], "as released", offsets=offsets), DataOptions(points=30)
    )


def small(name: str = "isab3-pma", dropout: float = 0.0) -> nn.Module:
    return pointset.create_model(name, classes=2, dim=8, heads=2, dropout=dropout)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dropout"), [("isab3-pma", 0.0), ("isab3-max", 0.5), ("rffp-mean", 0.0)])
def test_training_gives_what_padding_gives(name, dropout, train, monkeypatch):
    calls = []
    watched = SetClassifier.packed
    monkeypatch.setattr(SetClassifier, "packed", lambda *arguments: calls.append(1) or watched(*arguments))
    found = pointset.fit(small(name, dropout), train, RECIPE, progress=False)
    assert calls
    logits = pointset.evaluate(found.model, train).logits
    taken = len(calls)
    monkeypatch.setattr(predicting, "_packs", lambda model: False)
    expected = pointset.fit(small(name, dropout), train, RECIPE, progress=False)
    assert len(calls) == taken
    # Adam divides small gradients by their size, rounding included; other dropout would move weights by 0.02.
    torch.testing.assert_close(weights(found.model), weights(expected.model), rtol=0.0, atol=2e-3)
    for row, other in zip(numbers(found.history), numbers(expected.history), strict=True):
        assert row == pytest.approx(other, abs=1e-3)
    np.testing.assert_allclose(logits, pointset.evaluate(found.model, train).logits, atol=1e-5)


def ragged() -> Batch:
    generator = torch.Generator().manual_seed(0)
    points, mask = pad_sets([torch.randn(size, 3, generator=generator) for size in (4, 9, 2)])
    return Batch(points, mask, torch.tensor([0, 1, 1]))


class Shifted(SetClassifier):
    """A user-defined forward method that calls ours."""

    def forward(self, points, mask=None):
        return super().forward(points, mask) + 1.0


class Flagged(nn.Module):
    """A user-defined model with another meaning of `packed`."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = True

    def forward(self, points, mask):
        return points.sum(dim=1)


def test_a_user_defined_forward_is_called():
    ours, batch = small(), ragged()
    shifted = Shifted(list(ours.encoder), ours.pool, ours.head)
    with torch.no_grad():
        torch.testing.assert_close(forward(shifted, *batch[:2]), forward(ours, *batch[:2]) + 1.0)
    assert torch.equal(forward(Flagged(), *batch[:2]), batch.points.sum(dim=1))


def test_hooks_on_a_model_are_called():
    model, seen = small(), []
    model.register_forward_hook(lambda *arguments: seen.append(arguments[2].shape))
    forward(model, *ragged()[:2])
    assert seen == [(3, 2)]


def test_sets_of_one_size_take_the_usual_way(monkeypatch):
    monkeypatch.setattr(SetClassifier, "packed", None)
    points = torch.ones(2, 5, 3)
    assert forward(small(), points, None).shape == (2, 2)
