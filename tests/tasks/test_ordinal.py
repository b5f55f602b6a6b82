"""Losses of ordered classes: by hand, against scipy and torch, and their general properties."""

import math

import pytest
import torch
from scipy.special import expit, xlogy
from torch.nn.functional import cross_entropy

from pointset.tasks.ordinal import (
    OrderedThresholds,
    soft_label_loss,
    soft_labels,
    threshold_loss,
    threshold_prediction,
    threshold_probabilities,
    threshold_targets,
)

LABELS = torch.tensor([0, 3, 1, 2, 3])


def test_targets_are_one_up_to_the_class():
    assert threshold_targets(torch.tensor([0, 2, 3]), 4).tolist() == [[0, 0, 0], [1, 1, 0], [1, 1, 1]]


def test_threshold_loss_is_the_sum_of_binary_cross_entropies():
    logits = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    above = (LABELS[:, None] > torch.arange(3)).double().numpy()
    shares = expit(logits.numpy())
    expected = -(xlogy(above, shares) + xlogy(1 - above, 1 - shares)).sum() / 5
    assert float(threshold_loss(logits, LABELS)) == pytest.approx(expected)


def test_losses_are_finite_for_large_logits():
    logits = torch.tensor([[1e4, -1e4, 1e4]], requires_grad=True)
    threshold_loss(logits, torch.tensor([0])).backward()
    assert torch.isfinite(logits.grad).all()


def test_probabilities_by_hand():
    """p(y > 0) = 3/4, p(y > 1) = 1/5: classes 1/4, 11/20, 1/5."""
    logits = torch.tensor([[math.log(3), -math.log(4)]])
    assert threshold_probabilities(logits)[0].tolist() == pytest.approx([1 / 4, 11 / 20, 1 / 5])
    assert threshold_prediction(logits).tolist() == [1]


def test_prediction_is_the_median_class():
    logits = OrderedThresholds(6, 5)(3 * torch.randn(200, 6))
    below = threshold_probabilities(logits).cumsum(dim=1)
    assert torch.equal(threshold_prediction(logits), (below < 0.5).sum(dim=1))
    assert set(threshold_prediction(logits).tolist()) > {0, 4}


def test_probabilities_of_ordered_thresholds_decrease():
    """For any parameters, logits do not increase with k, so no class has a negative probability."""
    torch.manual_seed(0)
    head = OrderedThresholds(6, 5)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(4 * torch.randn_like(parameter))
        logits = head(10 * torch.randn(300, 6))
    assert logits.shape == (300, 4)
    assert (logits.diff(dim=1) <= 0).all()
    probabilities = threshold_probabilities(logits)
    assert (probabilities >= 0).all()
    assert probabilities.sum(dim=1).tolist() == pytest.approx([1.0] * 300, abs=1e-5)


def test_thresholds_start_one_apart_around_zero():
    head = OrderedThresholds(2, 5)
    assert head(torch.zeros(1, 2))[0].tolist() == pytest.approx([1.5, 0.5, -0.5, -1.5])
    assert OrderedThresholds(2, 2)(torch.zeros(1, 2)).tolist() == [[0.0]]


def test_ordered_thresholds_learn_an_order():
    """Classes are the integer parts of a number; the score must learn its direction, the thresholds their places."""
    torch.manual_seed(0)
    X = torch.rand(400, 3) * 4
    labels = X[:, 1].long()
    head = OrderedThresholds(3, 4)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        threshold_loss(head(X), labels).backward()
        optimizer.step()
    assert (threshold_prediction(head(X)) == labels).double().mean() > 0.9


def test_soft_labels_by_hand():
    """Class 1 of 4 at temperature 1 / log 2: (1/2, 1, 1/2, 1/4) / (9/4)."""
    found = soft_labels(torch.tensor([1]), 4, 1 / math.log(2))
    assert found[0].tolist() == pytest.approx([2 / 9, 4 / 9, 2 / 9, 1 / 9])


def test_soft_labels_fall_with_the_distance_and_sum_to_one():
    found = soft_labels(LABELS, 6, 0.8)
    assert found.sum(dim=1).tolist() == pytest.approx([1.0] * 5)
    assert torch.equal(found.argmax(dim=1), LABELS)
    for row, label in zip(found, LABELS.tolist(), strict=True):
        assert (row[: label + 1].diff() > 0).all()
        assert (row[label:].diff() < 0).all()


def test_soft_labels_are_one_hot_at_low_and_uniform_at_high_temperature():
    logits = torch.randn(5, 4)
    assert float(soft_label_loss(logits, LABELS, 1e-3)) == pytest.approx(float(cross_entropy(logits, LABELS)))
    assert soft_labels(LABELS, 4, 1e6).flatten().tolist() == pytest.approx([0.25] * 20, abs=1e-5)
