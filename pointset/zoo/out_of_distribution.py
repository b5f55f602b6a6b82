"""Out-of-distribution shapes: the distance of a shape to the training shapes of a model.

A classifier of furniture can predict a class of furniture for an airplane with a large probability. However, the input
x of its last layer is then far from the inputs for training shapes. The distance d of a shape is the Mahalanobis
distance of x to the nearest class mean m_c, with one covariance for all classes (Lee et al., arXiv 1807.03888, but for
the last layer only and without perturbed inputs). The covariance is s^2 I plus a matrix of low rank, as in
probabilistic principal component analysis (Tipping and Bishop 1999), so the statistics of a model take less than 100
kB. The squared distance is

    d^2(x) = min_c |x - m_c|^2 - |W^T (x - m_c)|^2, divided by its median over held-out training shapes

The columns of W [width, k] are orthogonal and shorter than 1: they are the directions in which training shapes of a
class differ. A prediction has low confidence if its probability is less than 50 % times max(1, d). This includes every
prediction with d > 2. scripts/experiments/out_of_distribution.py computes the statistics and measures which shapes are
detected.
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
"""File name of the statistics, in the folder of the weights."""


@dataclass(frozen=True, eq=False)
class TrainingDistribution:
    """Class means and covariance of the training shapes, from which the distance of a shape is computed."""

    means: Float[Tensor, "classes width"]
    """Mean of each class's training shapes at the input of the model's last linear layer."""
    directions: Float[Tensor, "width k"]
    """W: eigenvectors u of the covariance with eigenvalues l > s^2, times sqrt(1 - s^2 / l)."""
    median: float
    """Median of the squared distances of held-out training shapes. All squared distances are divided by this median."""

    def distances(self, embeddings: Float[Tensor, "N width"]) -> Float[Tensor, " N"]:
        """Return the distance d of each shape, in double precision on the CPU; held-out shapes have the median 1."""
        X, M, W = (tensor.detach().cpu().double() for tensor in (embeddings, self.means, self.directions))
        squares = torch.cdist(X, M).square() - torch.cdist(X @ W, M @ W).square()
        return (squares.amin(dim=1).clamp(min=0) / self.median).sqrt()

    def save(self, folder: Path) -> None:
        """Write the statistics in 16 bits to the folder of a model's weights."""
        arrays = {"means": self.means.half(), "directions": self.directions.half().contiguous()}
        records.write(folder / FILE, save(arrays | {"median": torch.tensor(self.median)}))


def load_distribution(folder: Path) -> TrainingDistribution | None:
    """Return the statistics in the folder of a trained model of the package, or None if it has none."""

    def parse(content: bytes) -> TrainingDistribution:
        arrays = load(content)
        return TrainingDistribution(arrays["means"], arrays["directions"], float(arrays["median"]))

    file = folder / FILE
    return records.parse(file, parse, "statistics of training shapes", REINSTALL) if file.exists() else None
