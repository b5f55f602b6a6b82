"""Kernel ridge regression of rows: fitted in closed form, saved as tensors."""

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from pointset.baselines.heads import StandardRows

WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""The kernel's gamma times the number of blocks of the rows."""
PENALTIES = tuple(10.0 ** (power / 2) for power in range(-10, 3))
TRIED, MOST = 1000, 8000
"""Most training rows for the choice of width and penalty, and for the fit: time grows with their cube."""


class KernelRidge(StandardRows):
    """f(x) = sum_i a_i exp(-gamma |x - x_i|^2): kernel ridge regression, the mean of a Gaussian process.

    The width is that with the smallest squared error of leaving one shape out, over all targets, and the penalty that
    of each target; both have a closed form (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006,
    section 5.4.2).
    """

    vectors: Tensor
    coefficients: Tensor
    gamma: Tensor

    def __init__(self, outputs: int) -> None:
        super().__init__(outputs)
        self.register_buffer("vectors", torch.zeros(0))
        self.register_buffer("coefficients", torch.zeros(0, outputs, dtype=torch.float64))
        self.register_buffer("gamma", torch.ones(()))

    def forward(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B targets"]:
        """Return the numbers."""
        distances = torch.cdist(((rows - self.mean) * self.scale).double(), self.vectors.double())
        return ((-self.gamma.double() * distances.square()).exp() @ self.coefficients).to(rows.dtype)

    def fit(self, rows: Float[Tensor, "N width"], targets: Float[Tensor, "N targets"], blocks: list[int]) -> None:
        """Fit to training rows; arguments as of `Head.fit`, with numbers of mean zero in place of classes."""
        order = np.random.default_rng(0).permutation(len(rows))[:MOST]
        chosen, y = self.standardise(rows, blocks)[order].double(), targets[order].double().numpy()
        distances = torch.cdist(chosen, chosen).square().numpy()
        few = distances[:TRIED, :TRIED]
        tried = [_leave_one_out(np.exp(-width / len(blocks) * few), y[:TRIED]) for width in WIDTHS]
        best = min(range(len(WIDTHS)), key=lambda index: tried[index][0])
        gamma, penalties = WIDTHS[best] / len(blocks), tried[best][1]
        kernel = np.exp(-gamma * distances)
        solved = [
            np.linalg.solve(kernel + p * np.eye(len(y)), column) for p, column in zip(penalties, y.T, strict=True)
        ]
        self.vectors, self.gamma = chosen.float().contiguous(), torch.tensor(gamma)
        self.coefficients = torch.from_numpy(np.stack(solved, axis=1)).contiguous()


def _leave_one_out(kernel: ndarray, y: ndarray) -> tuple[float, list[float]]:
    """The smallest mean squared error over the targets [N, targets], and the penalty of each target."""
    values, vectors = np.linalg.eigh(kernel)
    errors = []
    for penalty in PENALTIES:
        inverse = (vectors / (values.clip(min=0) + penalty)) @ vectors.T
        errors.append(np.square(inverse @ y / np.diag(inverse)[:, None]).mean(axis=0))
    best = np.argmin(errors, axis=0)
    return float(np.min(errors, axis=0).mean()), [PENALTIES[index] for index in best]
