"""Out-of-distribution shapes: the distance of a shape to the training shapes of a model.

A classifier that was trained on furniture gives an airplane a confident class of furniture. What the last layer gets of
the airplane, however, is far from what it got of the training shapes: the distance d is the Mahalanobis distance to
the nearest class mean under one covariance for all classes (Lee et al., arXiv 1807.03888, of the last layer alone and
without their change of the input). The covariance is s^2 I plus a part of low rank, as in probabilistic principal
component analysis (Tipping and Bishop 1999), so that the statistics of a model take less than 100 kB:

    d^2(x) = min_c |x - m_c|^2 - |W^T (x - m_c)|^2, divided by its median over held-out training shapes

with orthogonal columns of W [width, k], shorter than 1: the directions in which training shapes of a class differ. A
prediction needs a probability of 50 % times max(1, d), or it has low confidence: beyond d = 2 every shape is out of
distribution.
scripts/experiments/out_of_distribution.py computes the statistics and measures what they detect.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors.torch import load, save
from torch import Tensor

from pointset.runs import records
from pointset.zoo.pretrained import REINSTALL

FILE = "out_of_distribution.safetensors"
"""Beside the weights."""


@dataclass(frozen=True, eq=False)
class TrainingDistribution:
    """Class means and the covariance of training shapes, to which shapes have a distance."""

    means: Float[Tensor, "classes width"]
    """Of the embeddings of each class's training shapes; an embedding is the input of the model's last linear layer."""
    directions: Float[Tensor, "width k"]
    """W: eigenvectors u of the covariance with eigenvalues l > s^2, times sqrt(1 - s^2 / l)."""
    median: float
    """Of the squared distances of held-out training shapes, before the division by it."""

    def distances(self, embeddings: Float[Tensor, "N width"]) -> Float[Tensor, " N"]:
        """Return the distance d of each shape, in double precision on the CPU; 1 is typical of held-out shapes."""
        X, M, W = (tensor.detach().cpu().double() for tensor in (embeddings, self.means, self.directions))
        squares = torch.cdist(X, M).square() - torch.cdist(X @ W, M @ W).square()
        return (squares.amin(dim=1).clamp(min=0) / self.median).sqrt()

    def save(self, folder: Path) -> None:
        """Write the statistics beside a model's weights, in 16 bits."""
        arrays = {"means": self.means.half(), "directions": self.directions.half().contiguous()}
        records.write(folder / FILE, save(arrays | {"median": torch.tensor(self.median)}))


def load_distribution(folder: Path) -> TrainingDistribution | None:
    """Return the statistics beside the weights of a trained model of the package; None if it has none."""

    def parse(content: bytes) -> TrainingDistribution:
        arrays = load(content)
        return TrainingDistribution(arrays["means"], arrays["directions"], float(arrays["median"]))

    file = folder / FILE
    return records.parse(file, parse, "statistics of training shapes", REINSTALL) if file.exists() else None
