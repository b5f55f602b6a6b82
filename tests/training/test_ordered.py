"""Classes with an order: losses and predictions by hand, and the metric of ranks on the way through a run."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import pointset
from pointset.training.objectives import ordered_losses
from pointset.zoo.classifiers import ranked

GRADES = ["0 new", "1 used", "2 worn", "3 broken"]


@pytest.fixture(scope="module")
def sets() -> pointset.PointSets:
    """Forty clouds, flatter with each grade."""
    X = np.random.default_rng(0).normal(size=(40, 24, 3)) * [[[1, 1, 4.0 ** -(row % 4)]] for row in range(40)]
    return pointset.from_arrays(X, [row % 4 for row in range(40)], GRADES, normalize="center-standardize")


def test_losses_follow_their_formulas() -> None:
    output, label = torch.tensor([[0.5, 2.0, -1.0]]), torch.tensor([1])
    shares = [math.exp(-1), 1.0, math.exp(-1)]
    logs = output[0].log_softmax(0)
    soft = -sum(share / sum(shares) * float(log) for share, log in zip(shares, logs, strict=True))
    assert float(ordered_losses(output, label, "soft")) == pytest.approx(soft)
    passed, not_passed = 1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(3.0))  # t = 1.5, -3; class 1 passes the first
    thresholds = -(math.log(passed) + math.log(1 - not_passed)) / 2
    assert float(ordered_losses(output, label, "thresholds")) == pytest.approx(thresholds)


def test_as_many_classes_are_passed_as_thresholds() -> None:
    output = torch.randn(500, 6, generator=torch.Generator().manual_seed(0))
    logits = ranked(output)
    assert logits.shape == output.shape
    assert torch.equal(logits.argmax(dim=1), (output.diff(dim=1) > 0).sum(dim=1))
    assert not torch.equal(logits.argmax(dim=1), output.argmax(dim=1))


@pytest.mark.parametrize("ordered", ["soft", "thresholds"])
def test_a_run_is_loaded_with_the_predictions_that_it_was_tested_with(ordered, sets, tmp_path: Path) -> None:
    recipe = pointset.Recipe(epochs=60, learning_rate=1e-2, ordered=ordered, batch_size=10)
    model = pointset.create_model("rff-mean", classes=4, dim=16, dropout=0.0)
    pointset.fit(model, sets, recipe, run=tmp_path / "run", progress=False)
    result = pointset.evaluate(model, sets)
    assert result.rank_error == np.abs(result.predictions - sets.labels.numpy()).mean()
    assert result.rank_error < 0.5
    loaded, description = pointset.load_run(tmp_path / "run")
    assert description["recipe"]["ordered"] == ordered
    assert np.array_equal(pointset.evaluate(loaded, sets).logits, result.logits)


def test_the_estimator_takes_it(sets) -> None:
    classifier = pointset.PointSetClassifier("rff-mean", ordered="thresholds", epochs=1, dim=8, random_state=0)
    assert classifier.fit(list(sets.points.numpy()), sets.labels.numpy()).model_.by_thresholds
