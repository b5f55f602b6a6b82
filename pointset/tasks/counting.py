"""Counting the different characters in a set of images (Set Transformer, arXiv 1810.00825, section 5.2).

Besides the paper's Poisson likelihood, two losses use that counts are ordered classes 0 < 1 < ... < K - 1:
*thresholds*, K - 1 logits, the k-th for the binary question whether the class is above k (Frank and Hall, "A simple
approach to ordinal classification", ECML 2001; as one network, Cao, Mirjalili and Raschka, arXiv 1901.07884), and
*soft labels*, K logits, whose target gives some probability to the neighbours of the true class (Diaz and Marathe,
"Soft labels for ordinal regression", CVPR 2019).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.errors import PointsetError, quoted
from pointset.tasks.images import ImageProblem, Images
from pointset.tasks.rows import fully_connected, parts_of, row_model
from pointset.tasks.set_problem import SetBatch
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

LEAST, MOST = 6, 10
"""Smallest and largest number of images in a set."""
MODELS = ("rFF + mean", "rFF + sum", "SAB + PMA")


class Head(NamedTuple):
    """A model of counts from 1 to MOST: outputs, loss and predictions."""

    outputs: int
    """Number of outputs; it differs between heads."""
    layer: Callable[[int], nn.Module]
    """Returns the last layer, given the width of its input."""
    loss: Callable[[Tensor, Tensor], Tensor]
    """The loss, from outputs [B, outputs] and counts [B]."""
    predict: Callable[[Tensor], Tensor]
    """The predicted counts [B], from outputs: mean (rounded), median or mode of the distribution."""
    mode: Callable[[Tensor], Tensor]
    """The most probable counts [B], from outputs."""


SMALL = -16.0
"""Below this output, its exponential is smaller than the rounding error of float32 at 1."""


def rate_of(output: Float[Tensor, "B 1"]) -> Float[Tensor, " B"]:
    """The positive rate of a Poisson distribution, softplus(output)."""
    return F.softplus(output[:, 0])


def poisson_loss(output: Float[Tensor, "B 1"], counts: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Negative log likelihood: rate - count log(rate) + log(count!)."""
    x = output[:, 0]
    # log(log(1 + e^x)) equals x up to rounding for small e^x, where computing it would give -inf.
    log_rate = torch.where(x < SMALL, x, F.softplus(x.clamp(min=SMALL)).log())
    return (rate_of(output) - counts * log_rate + torch.lgamma(counts + 1.0)).mean()


def threshold_loss(logits: Float[Tensor, "B K-1"], labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Binary cross entropy, summed over the thresholds, mean over the batch.

    l = - sum_k [y > k] log s(z_k) + [y <= k] log(1 - s(z_k)),   s the logistic function
    """
    targets = (labels[:, None] > torch.arange(logits.shape[1], device=labels.device)).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, targets, reduction="none").sum(dim=1).mean()


def threshold_probabilities(logits: Float[Tensor, "B K-1"]) -> Float[Tensor, "B K"]:
    """The probability of each class: p(y = k) = p(y > k - 1) - p(y > k), with p(y > -1) = 1 and p(y > K - 1) = 0.

    They sum to 1. They are not negative if the logits do not increase with k, as is always so for `OrderedThresholds`.
    """
    above = torch.sigmoid(logits)
    ones, zeros = torch.ones_like(above[:, :1]), torch.zeros_like(above[:, :1])
    return torch.cat([ones, above], dim=1) - torch.cat([above, zeros], dim=1)


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
    """Cross entropy between soft labels and the softmax of the logits, mean over the batch."""
    return F.cross_entropy(logits, soft_labels(labels, logits.shape[1], temperature).to(logits.dtype))


SOFTNESS = 0.5
"""Temperature of the soft labels: the true count gets a probability of 0.76, each neighbour 0.10 (away from the ends).
"""
HEADS = {
    "Poisson": Head(
        1,
        lambda width: nn.Linear(width, 1),
        poisson_loss,
        lambda output: rate_of(output).round().long(),
        lambda output: rate_of(output).floor().long(),
    ),
    "thresholds": Head(
        MOST - 1,
        lambda width: OrderedThresholds(width, MOST),
        lambda output, counts: threshold_loss(output, counts - 1),
        lambda output: (output > 0).sum(dim=1) + 1,
        lambda output: threshold_probabilities(output).argmax(dim=1) + 1,
    ),
    "soft labels": Head(
        MOST,
        lambda width: nn.Linear(width, MOST),
        lambda output, counts: soft_label_loss(output, counts - 1, SOFTNESS),
        lambda output: output.argmax(dim=1) + 1,
        lambda output: output.argmax(dim=1) + 1,
    ),
}


@dataclass(frozen=True)
class Counting(ImageProblem):
    """Predict the number c of classes in a set of n images, n uniform in 6 ... 10, c uniform in 1 ... n.

    First c classes are drawn, then one image of each, and n - c more images of these classes. An image may occur twice.
    For `data`, see `ImageProblem`.

    A row is "encoder + pooling", which models c as Poisson with a predicted rate, as in the paper. With ", thresholds"
    or ", soft labels" appended, the model uses that counts are at most ten. A pooling by statistics is followed by
    FC(d, ReLU) and the head, PMA by the head.
    """

    name: ClassVar[str] = "counting"
    title: ClassVar[str] = "Counting different characters"
    measured: ClassVar[Sequence[Metric]] = (
        Metric("accuracy", higher_is_better=True),
        Metric("accuracy of the mode", higher_is_better=True),
        Metric("MAE", higher_is_better=False),
    )
    rows: ClassVar[Sequence[str]] = tuple(
        row if head == "Poisson" else f"{row}, {head}" for head in HEADS for row in MODELS
    )
    most: ClassVar[int] = MOST
    test_seed: ClassVar[int] = 0xC0

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """The model of a row: [B, n, pixels] -> [B, outputs of its head]."""
        base, head = split_row(model)
        dim = options.dim

        def last(width: int) -> nn.Module:
            if parts_of(base)[1].startswith("pma"):
                return head.layer(width)
            return nn.Sequential(fully_connected(width, dim), nn.ReLU(), head.layer(dim))

        body = row_model(base, dim, options, seed, last)
        return SetClassifier([self.embedding(dim, seed), *body.encoder], body.pool, body.head, self.inputs)

    def zoo_name(self, row: str) -> str:
        """The zoo's name of a row, without its head."""
        return super().zoo_name(split_row(row)[0])

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

    def loss(self, output: Float[Tensor, "B outputs"], batch: SetBatch) -> Float[Tensor, ""]:
        """The loss of the head, which is recognised by the number of outputs."""
        return head_of(output).loss(output, batch.target["count"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Accuracies of predictions and modes, and the mean absolute error of the predictions."""
        counts = torch.cat([batch.target["count"] for batch in batches])
        predicted = torch.cat([head_of(output).predict(output) for output in outputs])
        modes = torch.cat([head_of(output).mode(output) for output in outputs])
        return {
            "accuracy": float((predicted == counts).double().mean()),
            "accuracy of the mode": float((modes == counts).double().mean()),
            "MAE": float((predicted - counts).abs().double().mean()),
        }


def split_row(row: str) -> tuple[str, Head]:
    """Split a row into the name of its model and its head.

    Raises:
        PointsetError: no head has this name.
    """
    base, _, head = row.partition(", ")
    if head and head not in HEADS:
        raise PointsetError(f"{quoted(row)} has an unknown head: choose from {', '.join(HEADS)}")
    return base, HEADS[head or "Poisson"]


def head_of(output: Float[Tensor, "B outputs"]) -> Head:
    """The head with that many outputs."""
    return next(head for head in HEADS.values() if head.outputs == output.shape[1])
