"""Problems on sets of images, from the Set Transformer (arXiv 1810.00825): counting classes, and finding the anomaly.

The images are scikit-learn's handwritten digits. A model first embeds each image separately. Training and test sets
have no common images.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.data.batches import epoch_generator
from pointset.tasks.set_problem import (
    EMBEDDING,
    SetBatch,
    SetProblem,
    fully_connected,
    parts_of,
    row_model,
    seeded,
)
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

Split = Literal["train", "test"]
PIXELS, CLASSES = 64, 10
"""Number of pixels of an image, 8 x 8, and number of digits."""
TEST_EVERY = 5
"""One in TEST_EVERY images of a class is a test image."""
SPLIT_SEED = 0x1D
TEST_BATCHES, TEST_BATCH = 8, 250
FEWEST, MOST = 6, 10
"""Minimum and maximum number of images in a set of `Counting`."""
MEMBERS = 7
"""Number of images of the common class in a set of `Anomaly`."""
NEGLIGIBLE = -16.0
"""Below this output, exp(output) is smaller than the rounding error of float32 at 1."""


@dataclass(frozen=True)
class Images:
    """The images of one split, with their classes."""

    pixels: Float[Tensor, "N pixels"]
    """Grey values in [0, 1], flattened row by row."""
    labels: Int[Tensor, " N"]

    @cached_property
    def by_class(self) -> tuple[Int[Tensor, "classes most"], Int[Tensor, " classes"]]:
        """The indices of the images of each class, padded with zeros, and the number of images of each class."""
        rows_by_label = [(self.labels == label).nonzero()[:, 0] for label in range(CLASSES)]
        counts = torch.tensor([len(rows) for rows in rows_by_label])
        return nn.utils.rnn.pad_sequence(rows_by_label, batch_first=True), counts

    def draw(self, labels: Int[Tensor, "B n"], generator: torch.Generator) -> Float[Tensor, "B n pixels"]:
        """Return a random image for each class in `labels`."""
        rows, counts = self.by_class
        random = torch.rand(labels.shape, generator=generator, dtype=torch.float64)
        return self.pixels[rows[labels, (random * counts[labels]).long()]]


@cache
def digits(split: Split) -> Images:
    """Return the handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels in ten classes.

    A fifth of each class is in the test split. Source: Alpaydin and Kaynak, "Optical recognition of handwritten
    digits", UCI.
    """
    from sklearn.datasets import load_digits

    loaded = load_digits()
    pixels, labels = torch.from_numpy(loaded.data / 16.0).float(), torch.from_numpy(loaded.target).long()
    held_out, random = torch.zeros(len(labels), dtype=torch.bool), np.random.default_rng(SPLIT_SEED)
    for label in labels.unique().tolist():
        rows = (labels == label).nonzero()[:, 0]
        held_out[rows[random.permutation(len(rows))[: len(rows) // TEST_EVERY]]] = True
    chosen = held_out == (split == "test")
    return Images(pixels[chosen], labels[chosen])


class Embedding(nn.Module):
    """Embedding of each image of a set by FC(d, ReLU), FC(d): [B, n, pixels] -> [B, n, d]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.rowwise = fully_connected(PIXELS, dim, dim)

    def forward(self, X: Float[Tensor, "B n pixels"], mask: Bool[Tensor, "B n"] | None = None) -> Tensor:
        """Return the embedded images. Padding is embedded too, and later modules mask it."""
        return self.rowwise(X)


class ImageProblem(SetProblem):
    """Base class of problems on sets of digits."""

    test_seed: ClassVar[int]

    @abstractmethod
    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets of `images`."""

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        return self.draw_sets(digits("train"), count, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        images = digits("test")
        generators = (epoch_generator(self.test_seed, batch) for batch in range(TEST_BATCHES))
        return [self.draw_sets(images, TEST_BATCH, generator) for generator in generators]

    def embedding(self, dim: int, seed: int) -> Embedding:
        return seeded(seed, lambda: Embedding(dim), EMBEDDING)


class Counting(ImageProblem):
    """Predict the number c of different classes in a set of n images; n is uniform in 6 ... 10, and c in 1 ... n.

    First, c classes are drawn, then one image of each, and n - c further images of these classes. An image may occur
    twice. As in section 5.2 of the paper, a model "encoder + pooling" predicts the rate of a Poisson distribution of c.
    The predicted count is the rounded rate. After PMA, the head is FC(1). After other poolings, it is FC(d, ReLU)
    followed by FC(1).
    """

    name = "counting"
    title = "Counting different characters"
    metrics = (
        Metric("accuracy", higher_is_better=True),
        Metric("accuracy of the mode", higher_is_better=True),
        Metric("MAE", higher_is_better=False),
    )
    rows = ("rFF + mean", "rFF + sum", "SAB + PMA")
    largest = MOST
    test_seed = 0xC0

    def build(self, row: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row of the comparison, which maps [B, n, pixels] to [B, 1]."""
        dim = options.dim
        hidden = () if parts_of(row)[1].startswith("pma") else (dim,)
        body = row_model(row, dim, options, seed, lambda width: fully_connected(width, *hidden, 1))
        return SetClassifier([self.embedding(dim, seed), *body.encoder], body.pool, body.head, PIXELS)

    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets, padded to MOST images. Targets are numbers of classes and, for figures, the labels."""
        sizes = torch.randint(FEWEST, MOST + 1, (count,), generator=generator)
        classes = (torch.rand(count, generator=generator, dtype=torch.float64) * sizes).long() + 1
        # The first c positions have different classes, and the other positions random ones among these.
        order = torch.rand(count, CLASSES, generator=generator).topk(MOST, dim=1).indices
        again = torch.rand(count, MOST, generator=generator, dtype=torch.float64) * classes[:, None]
        position = torch.arange(MOST)
        labels = order.gather(1, torch.where(position < classes[:, None], position, again.long()))  # [count, MOST]
        mask = position < sizes[:, None]
        X = images.draw(labels, generator) * mask[:, :, None]
        return SetBatch(X, mask, {"count": classes, "labels": labels.masked_fill(~mask, -1)})

    def loss(self, output: Float[Tensor, "B 1"], batch: SetBatch) -> Float[Tensor, ""]:
        return poisson_loss(output, batch.target["count"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Return the accuracies of rounded rates and of Poisson modes, and the mean absolute error of rounded rates."""
        counts = torch.cat([batch.target["count"] for batch in batches])
        rates = F.softplus(torch.cat([*outputs])[:, 0])
        predicted, modes = rates.round().long(), rates.floor().long()  # the mode of a Poisson distribution
        return {
            "accuracy": float((predicted == counts).double().mean()),
            "accuracy of the mode": float((modes == counts).double().mean()),
            "MAE": float((predicted - counts).abs().double().mean()),
        }


def poisson_loss(output: Float[Tensor, "B 1"], counts: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Return the negative log likelihood of the rate softplus(output): rate - count log(rate) + log(count!)."""
    x = output[:, 0]
    # For small e^x, log(log(1 + e^x)) would be computed as -inf; it equals x up to rounding.
    log_rate = torch.where(x < NEGLIGIBLE, x, F.softplus(x.clamp(min=NEGLIGIBLE)).log())
    return (F.softplus(x) - counts * log_rate + torch.lgamma(counts + 1.0)).mean()


class Anomaly(ImageProblem):
    """Find the one image of a set that differs from the other seven (section 5.4 of the paper).

    A set has seven digits of one class and one of another. The paper has faces of CelebA, which may not be
    redistributed: seven faces share two attributes, and the eighth has neither.

    A model is "encoder + pooling". The head FC(d, ReLU), FC(1) maps the encoded element and the pooled vector,
    concatenated, to a logit. The loss is the cross entropy of the eight logits. An element's score is the softmax
    probability within its set. Area under the ROC curve and average precision are computed from the scores in all test
    sets. Their chance levels are 0.5 and 0.125.
    """

    name = "anomaly"
    title = "Set anomaly detection"
    metrics = tuple(Metric(name, higher_is_better=True) for name in ("AUROC", "AUPR", "accuracy"))
    rows = ("rFF + mean", "rFF + max", "rFFp-max + max", "rFF + PMA", "SAB + max", "SAB + PMA")
    largest = MEMBERS + 1
    test_seed = 0xA0

    def build(self, row: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row of the comparison, which maps [B, 8, pixels] to [B, 8, 1]."""
        dim = options.dim
        body = row_model(row, dim, options, seed, lambda width: fully_connected(dim + width, dim, 1))
        assert isinstance(body.head, nn.Sequential)
        head = body.head[1:]  # without the first layer, which flattens the rows of each set
        return ElementScorer([self.embedding(dim, seed), *body.encoder], body.pool, head, PIXELS)

    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets of images in random order. The target has the index of the anomaly and, for figures, the labels."""
        common, other = torch.rand(count, CLASSES, generator=generator).topk(2, dim=1).indices.unbind(1)
        anomalies = torch.randint(0, MEMBERS + 1, (count,), generator=generator)
        is_anomaly = torch.arange(MEMBERS + 1) == anomalies[:, None]
        labels = torch.where(is_anomaly, other[:, None], common[:, None])
        return SetBatch(images.draw(labels, generator), None, {"anomaly": anomalies, "labels": labels})

    def loss(self, output: Float[Tensor, "*rows 1"], batch: SetBatch) -> Float[Tensor, ""]:
        """Return the cross entropy over the elements of each set."""
        return F.cross_entropy(output[:, :, 0], batch.target["anomaly"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Return area under the ROC curve and average precision over elements, and accuracy over sets."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        logits = torch.cat([output[:, :, 0] for output in outputs])
        anomalies = torch.cat([batch.target["anomaly"] for batch in batches])
        is_anomaly = F.one_hot(anomalies, logits.shape[1]).flatten().numpy()
        scores = logits.double().softmax(dim=1).flatten().numpy()
        return {
            "AUROC": float(roc_auc_score(is_anomaly, scores)),
            "AUPR": float(average_precision_score(is_anomaly, scores)),
            "accuracy": float((logits.argmax(dim=1) == anomalies).double().mean()),
        }


class ElementScorer(SetClassifier):
    """Equivariant network with the logit head([z_i, pool(Z)]) for each element i, where Z = encoder(X).

    The pooling returns [B, k, width], and the head maps rows [..., d + k * width] to [..., 1].
    """

    def forward(
        self, X: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "*rows 1"]:
        """Return logits [B, n, 1]. Those of padding are minus infinity."""
        Z = self.encode(X, mask)
        pooled = self.pool(Z, mask).flatten(1)[:, None].expand(-1, Z.shape[1], -1)
        logits = self.head(torch.cat([Z, pooled], dim=2))
        return logits if mask is None else logits.masked_fill(~mask[:, :, None], float("-inf"))
