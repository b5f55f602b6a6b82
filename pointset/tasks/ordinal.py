"""Ordered classes 0 < 1 < ... < K - 1: losses that know that 3 is nearer to 4 than to 9.

Two ways. *Thresholds*: K - 1 logits, the k-th of "the class is above k", each a question of yes or no (Frank and Hall,
"A simple approach to ordinal classification", ECML 2001; as one network, Cao, Mirjalili and Raschka,
arXiv 1901.07884). *Soft labels*: K logits, whose target puts some probability on the neighbours of the true class
(Diaz and Marathe, "Soft labels for ordinal regression", CVPR 2019).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn


def threshold_targets(labels: Int[Tensor, " B"], classes: int) -> Float[Tensor, "B K-1"]:
    """1 where the class is above k, for k = 0 ... K - 2, else 0."""
    return (labels[:, None] > torch.arange(classes - 1, device=labels.device)).float()


def threshold_loss(logits: Float[Tensor, "B K-1"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Binary cross entropy, summed over the thresholds, mean over the batch.

        l = - sum_k [y > k] log s(z_k) + [y <= k] log(1 - s(z_k)),   s the logistic function

    Args:
        logits: z_k, of "the class is above k".
        labels: y, from 0 to K - 1.
    """
    targets = threshold_targets(labels, logits.shape[1] + 1).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1).mean()


def threshold_probabilities(logits: Float[Tensor, "B K-1"]) -> Float[Tensor, "B K"]:
    """Of each class: p(y = k) = p(y > k - 1) - p(y > k), with p(y > -1) = 1 and p(y > K - 1) = 0.

    They sum to 1; none is negative where the logits do not rise with k, as those of `OrderedThresholds` never do.
    """
    above = torch.sigmoid(logits)
    ones, zeros = torch.ones_like(above[:, :1]), torch.zeros_like(above[:, :1])
    return torch.cat([ones, above], dim=1) - torch.cat([above, zeros], dim=1)


def threshold_prediction(logits: Float[Tensor, "B K-1"]) -> Int[Tensor, " B"]:
    """How many thresholds are passed with a probability above a half: the median class, where no logit rises with k."""
    return (logits > 0).sum(dim=1)


class OrderedThresholds(nn.Module):
    """K - 1 logits of one score and thresholds that are in order by construction: no answer contradicts another.

        z_k = w^T x - t_k,   t_0 = b,   t_k = t_{k-1} + softplus(d_k)

    So p(y > k) never rises with k. At the start the thresholds are one apart and their middle is at 0.
    """

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1, bias=False)
        self.first = nn.Parameter(torch.tensor([-(classes - 2) / 2]))
        self.gaps = nn.Parameter(torch.full((classes - 2,), 1.0).expm1().log())  # softplus of it is 1

    def forward(self, X: Float[Tensor, "B width"]) -> Float[Tensor, "B K-1"]:
        """Return the logits, of "the class is above k"."""
        thresholds = torch.cat([self.first, F.softplus(self.gaps)]).cumsum(dim=0)
        return self.score(X) - thresholds


def soft_labels(labels: Int[Tensor, " B"], classes: int, temperature: float = 1.0) -> Float[Tensor, "B K"]:
    """softmax_i(-|i - y| / temperature) for labels y in 0 ... K - 1; a small temperature makes hard labels."""
    distances = (labels[:, None] - torch.arange(classes, device=labels.device)).abs()
    return torch.softmax(-distances / temperature, dim=1)


def soft_label_loss(
    logits: Float[Tensor, "B K"], labels: Int[Tensor, " B"], temperature: float = 1.0
) -> Float[Tensor, ""]:
    """Cross entropy between soft labels and the logits' softmax, mean over the batch.

    Args:
        logits: of the classes.
        labels: y, from 0 to K - 1.
        temperature: of the soft labels.
    """
    return F.cross_entropy(logits, soft_labels(labels, logits.shape[1], temperature).to(logits.dtype))
