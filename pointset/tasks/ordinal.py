"""Losses for ordered classes 0 < 1 < ... < K - 1, in which a prediction near the true class is better than a far one.

*Thresholds*: K - 1 logits, the k-th for the binary question whether the class is above k (Frank and Hall, "A simple
approach to ordinal classification", ECML 2001; as one network, Cao, Mirjalili and Raschka, arXiv 1901.07884).
*Soft labels*: K logits, whose target gives some probability to the neighbours of the true class (Diaz and Marathe,
"Soft labels for ordinal regression", CVPR 2019).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


def threshold_targets(labels: Int[Tensor, " B"], classes: int) -> Float[Tensor, "B K-1"]:
    """For k = 0 ... K - 2: 1 if the class is above k, else 0."""
    return (labels[:, None] > torch.arange(classes - 1, device=labels.device)).float()


def threshold_loss(logits: Float[Tensor, "B K-1"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Binary cross entropy, summed over the thresholds, mean over the batch.

        l = - sum_k [y > k] log s(z_k) + [y <= k] log(1 - s(z_k)),   s the logistic function

    Args:
        logits: z_k, the logit of "the class is above k".
        labels: y, from 0 to K - 1.
    """
    targets = threshold_targets(labels, logits.shape[1] + 1).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1).mean()


def threshold_probabilities(logits: Float[Tensor, "B K-1"]) -> Float[Tensor, "B K"]:
    """The probability of each class: p(y = k) = p(y > k - 1) - p(y > k), with p(y > -1) = 1 and p(y > K - 1) = 0.

    They sum to 1. They are not negative if the logits do not increase with k, as is always so for `OrderedThresholds`.
    """
    above = torch.sigmoid(logits)
    ones, zeros = torch.ones_like(above[:, :1]), torch.zeros_like(above[:, :1])
    return torch.cat([ones, above], dim=1) - torch.cat([above, zeros], dim=1)


def threshold_prediction(logits: Float[Tensor, "B K-1"]) -> Int[Tensor, " B"]:
    """The number of thresholds with a probability above 1/2: the median class if the logits do not increase with k."""
    return (logits > 0).sum(dim=1)


class OrderedThresholds(nn.Module):
    """K - 1 logits from one score and increasing thresholds, so that the K - 1 binary predictions are consistent.

        z_k = w^T x - t_k,   t_0 = b,   t_k = t_{k-1} + softplus(d_k)

    So p(y > k) never increases with k. Initially, the thresholds are 1 apart and centred at 0.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)
        self.first = nn.Parameter(torch.tensor([-(classes - 2) / 2]))
        self.gaps = nn.Parameter(torch.full((classes - 2,), 1.0).expm1().log())  # so that softplus(gaps) is 1

    def forward(self, X: Float[Tensor, "B width"]) -> Float[Tensor, "B K-1"]:
        """Return the logits of "the class is above k"."""
        thresholds = torch.cat([self.first, F.softplus(self.gaps)]).cumsum(dim=0)
        return self.score(X) - thresholds


def soft_labels(labels: Int[Tensor, " B"], classes: int, temperature: float = 1.0) -> Float[Tensor, "B K"]:
    """softmax_i(-|i - y| / temperature) for labels y in 0 ... K - 1; nearly one-hot for a small temperature."""
    distances = (labels[:, None] - torch.arange(classes, device=labels.device)).abs()
    return torch.softmax(-distances / temperature, dim=1)


def soft_label_loss(
    logits: Float[Tensor, "B K"], labels: Int[Tensor, " B"], temperature: float = 1.0
) -> Float[Tensor, ""]:
    """Cross entropy between soft labels and the softmax of the logits, mean over the batch.

    Args:
        logits: the logits of the classes.
        labels: y, from 0 to K - 1.
        temperature: the temperature of the soft labels.
    """
    return F.cross_entropy(logits, soft_labels(labels, logits.shape[1], temperature).to(logits.dtype))
