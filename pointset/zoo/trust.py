"""Probabilities that hold for foreign shapes too: a temperature for each shape, higher far from the training shapes.

A classifier that knows only furniture is sure that an airplane is a piece of furniture, and one temperature for all
shapes cannot change that. So the temperature rises with d², the squared Mahalanobis distance of what the last layer
gets to the nearest class's mean under one covariance for all classes: Lee et al., arXiv 1807.03888, of the last layer
alone and without their change of the input; the covariance is shrunk (Ledoit and Wolf 2004), since units that are
always 0 in training would otherwise count for nothing. A temperature by the density of the training shapes is the idea
of Tomani et al., arXiv 2302.05118, who use nearest neighbours in several layers.
"""

from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from safetensors.torch import load, save
from torch import Tensor

from pointset.runs import records
from pointset.zoo.pretrained import REINSTALL, TrustFigures

LEAST_PROBABILITY = 0.5
"""A prediction with a smaller probability is not to be trusted: the others together have a larger one."""
TRUST_FILE = "trust.safetensors"
"""Beside the weights."""


@dataclass(frozen=True, eq=False)
class Trust:
    """Factors of a model's temperature: max(1, d² / median) ** exponent."""

    means: Float[Tensor, "classes width"]
    """Of the rows of each class's training shapes; a row is the input of the model's last linear layer."""
    precision: Float[Tensor, "width width"]
    """Inverse of the covariance, which all classes share."""
    median: float
    """Of d² over held-out shapes: nearer shapes keep the temperature."""
    exponent: float
    """Fitted to held-out shapes that are corrupted, turned, and put together of two classes."""

    def distances(self, rows: Float[Tensor, "N width"]) -> Float[Tensor, " N"]:
        """d² of each row, in double precision on the CPU."""
        X, M, P = (tensor.detach().cpu().double() for tensor in (rows, self.means, self.precision))
        return ((X @ P * X).sum(dim=1)[:, None] - 2 * X @ P @ M.T + (M @ P * M).sum(dim=1)).amin(dim=1).clamp(min=0)

    def novelty(self, rows: Float[Tensor, "N width"]) -> Float[Tensor, " N"]:
        """d² of each row, divided by that of a typical held-out shape."""
        return self.distances(rows) / self.median

    def factors(self, novelty: Float[Tensor, " N"]) -> Float[Tensor, "N 1"]:
        """The factor of each temperature, at least 1."""
        return novelty.clamp(min=1).pow(self.exponent)[:, None]

    def save(self, folder: Path) -> None:
        """Write the means and the precision beside a model's weights."""
        records.write(folder / TRUST_FILE, save({"means": self.means, "precision": self.precision}))


def load_trust(figures: TrustFigures, folder: Path) -> Trust:
    """What the card of a trained model and the file beside its weights say."""

    def parse(content: bytes) -> Trust:
        arrays = load(content)
        return Trust(arrays["means"], arrays["precision"], figures.median, figures.exponent)

    return records.parse(folder / TRUST_FILE, parse, "means", REINSTALL)
