"""Out-of-fold predictions: folds, temperatures, intervals, and the one-standard-error rule."""

import numpy as np
import pytest
import torch
from statsmodels.stats.proportion import proportion_confint

from pointset.data.groups import Grouping
from pointset.training.out_of_fold import (
    accuracy_interval,
    assess,
    draw_folds,
    out_of_fold_temperature,
    select_candidate,
)

LABELS = torch.arange(16) // 8
EACH = np.arange(len(LABELS))


def logits_of(*, wrong: int = 0, margin: float = 3.0) -> torch.Tensor:
    """Logits that are right by a margin, but for the first shapes."""
    logits = margin * torch.eye(2)[LABELS]
    logits[:wrong] *= -1
    return logits


@pytest.mark.parametrize(
    ("svm", "network", "best"),
    [(4, 4, "ensemble"), (3, 3, "ensemble"), (0, 4, "svm"), (4, 0, "network"), (1, 0, "network")],
)
def test_another_candidate_is_selected_if_its_log_loss_is_smaller_by_a_standard_error(svm, network, best):
    wrong = {"svm": svm, "network": network, "ensemble": 4}
    logits = {name: logits_of(wrong=count) for name, count in wrong.items()}
    assert select_candidate(logits, LABELS, EACH, "ensemble")[0] == best


def test_the_standard_error_counts_groups():
    logits = {"network": logits_of(), "ensemble": logits_of(wrong=4)}
    assert select_candidate(logits, LABELS, EACH, "ensemble")[0] == "network"
    groups = np.repeat([0, 1], [4, 12])  # all errors are of one group
    name, reason = select_candidate(logits, LABELS, groups, "ensemble")
    assert (name, reason) == ("ensemble", "no other log loss is smaller by more than one standard error")


def test_candidates_are_compared_on_the_same_shapes():
    logits = {"svm": logits_of(), "network": logits_of(), "ensemble": logits_of()}
    logits["ensemble"][8:12] *= -1
    logits["network"][6:] = torch.nan  # on its shapes the ensemble is right
    assert select_candidate(logits, LABELS, EACH, "ensemble")[0] == "ensemble"
    logits["network"][:] = torch.nan
    assert "no shape can be held out" in select_candidate(logits, LABELS, EACH, "ensemble")[1]


def test_a_temperature_is_fitted_only_if_predictions_are_better_than_class_frequencies():
    assert out_of_fold_temperature(logits_of(wrong=2), LABELS, EACH) is not None
    assert out_of_fold_temperature(logits_of(wrong=8), LABELS, EACH) is None, "half of the shapes are wrong"
    labels = torch.tensor([0] * 12 + [1] * 4)
    frequent = torch.zeros(16, 2)
    frequent[:, 0] = 2.0  # the most frequent class for every shape
    assert out_of_fold_temperature(frequent, labels, EACH) is None
    assert out_of_fold_temperature(torch.full((16, 2), torch.nan), labels, EACH) is None


def test_groups_are_dropped_if_a_fold_would_leave_a_class_without_training_shapes():
    labels = torch.tensor([0, 0, 0, 0, 0, 0, 1, 1])
    grouping = Grouping(np.array([0, 1, 2, 3, 4, 5, 4, 5]), "given")  # some seeds put groups 4 and 5 into one fold
    drawn = [draw_folds(grouping, labels, seed) for seed in range(20)]
    assert {bool(used) for used, _ in drawn} == {True, False}
    assert all(len(labels[folds != fold].unique()) == 2 for _, folds in drawn for fold in range(5))
    two = Grouping(np.array([0, 0, 1, 1, 2, 2, 3, 3]), "given")
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    used, folds = draw_folds(two, labels, 0)
    assert used is two
    assert folds[::2].equal(folds[1::2])


def test_mean_class_accuracy_is_the_mean_over_the_classes_that_are_evaluated():
    labels, logits = torch.tensor([0] * 12 + [1] * 4), torch.zeros(16, 3)
    logits[:, 0] = 1.0
    found = assess("svm", logits, labels, EACH, 2.0)
    assert (found.accuracy, found.mean_class_accuracy, found.tested) == (0.75, 0.5, 16)
    assert found.low < 0.75 < found.high


def test_the_interval_counts_that_fits_share_shapes():
    """A share of 0.8 of 100 shapes varies as the mean of 99 independent shapes, and 2.25 times as much."""
    low, high = accuracy_interval((torch.arange(100) < 80).float(), np.arange(100), trained=80)
    assert (low, high) == pytest.approx(proportion_confint(0.8 * 44, 44, method="wilson"))


def test_the_interval_of_groups_without_errors_is_like_that_of_one_error():
    """Few errors do not tell whether those of one group stand together: the interval must not jump at none."""
    groups = np.arange(128) // 4
    (low, high), (lower, higher) = (accuracy_interval((torch.arange(128) >= n).float(), groups, 102) for n in (0, 1))
    assert high == 1
    assert abs(low - lower) < 0.03
    assert abs(high - higher) < 0.03
