"""Counting the different characters of a set of images (Set Transformer, arXiv 1810.00825, section 5.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.tasks.images import PIXELS, ImageProblem, Images
from pointset.tasks.set_problem import SetBatch, fully_connected, parts_of, row_model
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

LEAST, MOST = 6, 10
"""Smallest and largest number of images in a set."""
NEGLIGIBLE = -16.0
"""Below this output, its exponential is smaller than the rounding error of float32 at 1."""


def rate_of(output: Float[Tensor, "B 1"]) -> Float[Tensor, " B"]:
    """Return the positive rate of a Poisson distribution, softplus(output)."""
    return F.softplus(output[:, 0])


def poisson_loss(output: Float[Tensor, "B 1"], counts: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Negative log likelihood: rate - count log(rate) + log(count!)."""
    x = output[:, 0]
    # log(log(1 + e^x)) equals x up to rounding for small e^x, where computing it would give -inf.
    log_rate = torch.where(x < NEGLIGIBLE, x, F.softplus(x.clamp(min=NEGLIGIBLE)).log())
    return (rate_of(output) - counts * log_rate + torch.lgamma(counts + 1.0)).mean()


@dataclass(frozen=True)
class Counting(ImageProblem):
    """Predict the number c of different classes in a set of n images, n uniform in 6 ... 10, c uniform in 1 ... n.

    First c classes are drawn, then one image of each, and n - c more images of these classes. An image may occur twice.
    As in the paper, a model "encoder + pooling" predicts the rate of a Poisson distribution of c; the predicted count
    is the rate, rounded. A pooling by statistics is followed by FC(d, ReLU) and FC(1), PMA by FC(1).
    """

    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting different characters"
    measured: ClassVar[Sequence[Metric]] = (
        Metric("accuracy", higher_is_better=True),
        Metric("accuracy of the mode", higher_is_better=True),
        Metric("MAE", higher_is_better=False),
    )
    rows: ClassVar[Sequence[str]] = ("rFF + mean", "rFF + sum", "SAB + PMA")
    most: ClassVar[int] = MOST
    test_seed: ClassVar[int] = 0xC0

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row: [B, n, pixels] -> [B, 1]."""
        dim = options.dim

        def last(width: int) -> nn.Module:
            if parts_of(model)[1].startswith("pma"):
                return nn.Linear(width, 1)
            return nn.Sequential(fully_connected(width, dim), nn.ReLU(), nn.Linear(dim, 1))

        body = row_model(model, dim, options, seed, last)
        return SetClassifier([self.embedding(dim, seed), *body.encoder], body.pool, body.head, PIXELS)

    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets, padded to MOST; the target has the number of classes and, for pictures, the labels."""
        sizes = torch.randint(LEAST, MOST + 1, (count,), generator=generator)
        most = sizes.clamp(max=images.classes)
        classes = (torch.rand(count, generator=generator, dtype=torch.float64) * most).long() + 1
        # The first c positions have different classes, the others random ones of these.
        order = torch.rand(count, images.classes, generator=generator).topk(min(MOST, images.classes), dim=1).indices
        again = torch.rand(count, MOST, generator=generator, dtype=torch.float64) * classes[:, None]
        position = torch.arange(MOST)
        labels = order.gather(1, torch.where(position < classes[:, None], position, again.long()))  # [count, MOST]
        mask = torch.arange(MOST) < sizes[:, None]
        X = images.pixels[images.draw(labels, generator)] * mask[:, :, None]
        return SetBatch(X, mask, {"count": classes, "labels": labels.masked_fill(~mask, -1)})

    def loss(self, output: Float[Tensor, "B 1"], batch: SetBatch) -> Float[Tensor, ""]:
        return poisson_loss(output, batch.target["count"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Accuracies of predictions and of modes, and the mean absolute error of the predictions."""
        counts = torch.cat([batch.target["count"] for batch in batches])
        rates = rate_of(torch.cat([*outputs]))
        predicted, modes = rates.round().long(), rates.floor().long()  # the mode of a Poisson distribution
        return {
            "accuracy": float((predicted == counts).double().mean()),
            "accuracy of the mode": float((modes == counts).double().mean()),
            "MAE": float((predicted - counts).abs().double().mean()),
        }
