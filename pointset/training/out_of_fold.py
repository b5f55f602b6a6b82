"""Out-of-fold predictions of candidates: folds, temperatures, accuracies with intervals, and model selection.

Predictions are logits [N, classes], with NaN for shapes without an out-of-fold prediction.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.groups import Grouping, Groups, alone, number_groups
from pointset.data.splitting import assign_folds
from pointset.evaluation.calibration import fit_temperature

FOLDS = 5


@dataclass(frozen=True)
class Candidate:
    """A classifier, and its accuracy on out-of-fold predictions."""

    name: str
    accuracy: float
    low: float
    """Lower bound of the 95 % confidence interval for new shapes (see `accuracy_interval`). The upper bound is
    `high`."""
    high: float
    mean_class_accuracy: float
    log_loss: float | None
    """The log loss at the best temperature, or None without an out-of-fold prediction."""
    tested: int
    """Number of out-of-fold predictions."""
    seconds: float
    """CPU seconds of this process for the out-of-fold predictions."""
    chosen: bool = False


def predicted(logits: Tensor) -> Tensor:
    """Return bool [N], True for shapes that have out-of-fold logits."""
    return logits.isfinite().all(dim=1)


def draw_folds(grouping: Grouping, labels: Tensor, seed: int) -> tuple[Grouping, Tensor]:
    """Return the groups that are used, and the fold of each shape [N], -1 for shapes that are not held out.

    Groups are ignored if, with groups, a class would have no training shape for one of the folds.
    """
    folds = torch.from_numpy(assign_folds(grouping.groups, labels.tolist(), seed, FOLDS))
    classes = len(labels.unique())
    if grouping and any(len(labels[folds != fold].unique()) < classes for fold in range(FOLDS)):
        return draw_folds(alone(len(labels)), labels, seed)
    return grouping, folds


def out_of_fold_temperature(logits: Tensor, labels: Tensor, groups: Groups) -> float | None:
    """Return the temperature of the smallest log loss, or None if this loss is not below that of class frequencies."""
    tested = predicted(logits)
    if not tested.any():
        return None
    temperature = fit_temperature(logits[tested].numpy(), labels[tested].numpy(), groups=groups[tested.numpy()])
    shares = labels[tested].bincount().double() / int(tested.sum())
    of_frequencies = -float(torch.special.xlogy(shares, shares).sum())
    loss = nn.functional.cross_entropy(logits[tested].double() / temperature, labels[tested])
    return temperature if float(loss) < of_frequencies else None


def log_losses(logits: Tensor, labels: Tensor, groups: Groups) -> Tensor:
    """Return the log loss of each shape. All shapes have the same temperature, the best one."""
    temperature = out_of_fold_temperature(logits, labels, groups) or 1.0
    return nn.functional.cross_entropy(logits / temperature, labels, reduction="none")


def assess(name: str, logits: Tensor, labels: Tensor, groups: Groups, seconds: float) -> Candidate:
    """Return the candidate with these out-of-fold logits."""
    tested = predicted(logits)
    if not tested.any():
        return Candidate(name, 0.0, 0.0, 1.0, 0.0, None, 0, seconds)
    logits, labels, groups, count = logits[tested], labels[tested], groups[tested.numpy()], int(tested.sum())
    correct = (logits.argmax(dim=1) == labels).float()
    low, high = accuracy_interval(correct, groups, len(tested) * (1 - 1 / FOLDS))
    of_classes = [float(correct[labels == label].mean()) for label in labels.unique()]
    loss = float(log_losses(logits, labels, groups).mean())
    return Candidate(name, float(correct.mean()), low, high, float(np.mean(of_classes)), loss, count, seconds)


def select_candidate(logits: Mapping[str, Tensor], labels: Tensor, groups: Groups, usual: str) -> tuple[str, str]:
    """Return the name of the candidate that the one-standard-error rule selects, and the reason.

    The candidate `usual` is selected unless the mean log loss of another one is smaller by more than one standard error
    of the difference, computed over groups (Breiman et al. 1984, "Classification and Regression Trees", section 3.4.3).
    """
    tested = torch.stack([predicted(values) for values in logits.values()]).all(dim=0)
    if not tested.any():
        return usual, "no shape can be held out to compare the candidates"
    own = groups[tested.numpy()]
    losses = {name: log_losses(values[tested], labels[tested], own) for name, values in logits.items()}
    gains = {}
    for name, values in losses.items():
        mean, error = mean_with_error(losses[usual] - values, own)
        gains[name] = 0.0 if name == usual else mean - error
    best = max(gains, key=gains.__getitem__)
    if gains[best] > 0:
        return best, f"its log loss is smaller than that of {usual} by more than one standard error"
    return usual, "no other log loss is smaller by more than one standard error"


def mean_with_error(values: Tensor, groups: Groups) -> tuple[float, float]:
    """Return the mean and its standard error if shapes of a group are correlated. One group has an infinite error."""
    mean = values.double().mean()
    sums = np.bincount(number_groups(groups.tolist()), weights=(values - mean).numpy())
    if len(sums) < 2:
        return float(mean), float("inf")
    return float(mean), float(np.linalg.norm(sums) * np.sqrt(len(sums) / (len(sums) - 1)) / len(values))


def accuracy_interval(correct: Tensor, groups: Groups, trained: float) -> tuple[float, float]:
    """Return the 95 % Wilson confidence interval of the accuracy on new shapes, for models fitted to `trained` shapes.

    The interval uses an effective number of shapes, at which independent shapes have the same variance as the groups.
    One more group of the usual size, with errors only, is added, because few errors do not show how errors cluster. The
    fits of the folds vary and share training shapes, so the variance is multiplied by 1 + tested / trained, which is
    2.25 for five folds (Nadeau and Bengio 2003, "Inference for the generalization error").
    """
    from statsmodels.stats.proportion import proportion_confint  # takes a second

    count, mean = len(correct), float(correct.mean())
    sums = np.bincount(number_groups(groups.tolist()), weights=correct.numpy() - mean)
    usual = count / len(sums)  # shapes per group
    grouped = (float(np.square(sums).sum()) + usual**2) * len(sums) / max(len(sums) - 1, 1)  # variance of the sum
    single = count * mean * (1 - mean) + usual
    effective = count * min(1.0, single / grouped) / (1 + count / trained)
    low, high = proportion_confint(mean * effective, effective, method="wilson")
    return float(low), float(high)
