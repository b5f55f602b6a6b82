"""A classifier of rows, fitted by scikit-learn and evaluated by torch."""

import warnings
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

ABSENT_LOGIT = -30.0
"""Logit of a class without a training shape, relative to the largest one."""
PENALTY, WIDTH = 30.0, 0.3
"""C of the support vector machine, and its kernel's gamma times the number of blocks of the rows. Chosen by
cross-validation on labeled_db and modelnet9_obj; see scripts/experiments/NOTES.md."""
SHARPNESS = 8.0
"""Factor from decisions of the support vector machine to logits of a pair."""


class SupportVectors(nn.Module):
    """A support vector machine with a Gaussian kernel, one class against one: fitted by `sklearn.svm.SVC`.

    Rows consist of blocks (features, the embeddings of one network, ...), each standardised and divided by the square
    root of its width, so that wide blocks do not outweigh narrow ones. Logits are divided by a temperature.
    """

    mean: Tensor
    scale: Tensor
    labels: Tensor
    temperature: Tensor
    vectors: Tensor
    coefficients: Tensor
    intercepts: Tensor
    owners: Tensor
    gamma: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.outputs = classes
        for name in ("mean", "scale", "labels", "vectors", "coefficients", "intercepts", "owners"):
            self.register_buffer(name, torch.zeros(0))  # sizes and types depend on the training shapes
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("gamma", torch.ones(()))

    def standardise(self, rows: Float[Tensor, "N width"], blocks: list[int]) -> Float[Tensor, "N width"]:
        """Learn mean and scale from training rows with blocks of these widths, and return the standardised rows."""
        deviation = rows.std(dim=0, correction=0)
        widths = torch.repeat_interleave(torch.tensor(blocks), torch.tensor(blocks)).to(rows)
        self.mean = rows.mean(dim=0)
        self.scale = torch.where(deviation > 1e-6, 1 / (deviation.clamp(min=1e-6) * widths.sqrt()), 0.0)
        return (rows - self.mean) * self.scale

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        for name, buffer in self.named_buffers(recurse=False):
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *others)

    def forward(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B classes"]:
        """Return the logits; classes that no training shape had get a very small one."""
        scores = self.scores((rows - self.mean) * self.scale) / self.temperature
        logits = scores.new_full((len(rows), self.outputs), 0.0) + scores.amax(dim=1, keepdim=True) + ABSENT_LOGIT
        return logits.index_copy(1, self.labels, scores)

    def fit(self, rows: Float[Tensor, "N width"], labels: Int[Tensor, " N"], blocks: list[int]) -> None:
        """Fit to one row and a class for each training shape; `blocks` are the widths of the blocks of a row."""
        from sklearn.svm import SVC

        standard = self.standardise(rows, blocks)
        self.labels, numbers = labels.unique(return_inverse=True)
        fitted = SVC(C=PENALTY, gamma=WIDTH / len(blocks))
        with warnings.catch_warnings():  # labels are classes, even if there are as many as shapes
            warnings.filterwarnings("ignore", "The number of unique classes")
            fitted.fit(standard.numpy(), numbers.numpy())
        sign = -1 if len(fitted.classes_) == 2 else 1  # scikit-learn turns the sign of two classes
        self.vectors = _tensor(fitted.support_vectors_)
        self.coefficients = _tensor(sign * fitted.dual_coef_)
        self.intercepts = _tensor(sign * fitted.intercept_)
        self.owners = torch.from_numpy(np.repeat(np.arange(len(fitted.n_support_)), fitted.n_support_))
        self.gamma = torch.tensor(WIDTH / len(blocks))

    def decisions(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B pairs"]:
        """Decisions of the pairs of classes (0, 1), (0, 2), ...: positive for the first class of a pair."""
        kernel = torch.exp(-self.gamma * torch.cdist(rows, self.vectors).square()).double()
        count = len(self.labels)
        # sums[b, i, r]: what the support vectors of class i add to its pair with the r-th other class
        owned = [self.owners == number for number in range(count)]
        sums = torch.stack([kernel[:, own] @ self.coefficients[:, own].T.double() for own in owned], dim=1)
        first, second = torch.triu_indices(count, count, offset=1, device=rows.device)
        return (sums[:, first, second - 1] + sums[:, second, first] + self.intercepts).to(rows.dtype)

    def scores(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B present"]:
        """Log probabilities of winning all pairs, if those are independent and logistic in their decisions.

        They order the classes at least as well as the votes of `decision_function`, and have smaller log loss.
        """
        decisions, count = SHARPNESS * self.decisions(rows), len(self.labels)
        first, second = (
            nn.functional.one_hot(pair, count).to(decisions.dtype)
            for pair in torch.triu_indices(count, count, offset=1, device=rows.device)
        )
        return nn.functional.logsigmoid(decisions) @ first + nn.functional.logsigmoid(-decisions) @ second


def _tensor(values: ndarray) -> Tensor:
    """A float32 tensor in the order in which it will be loaded, so that a product gives the same bits."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))
