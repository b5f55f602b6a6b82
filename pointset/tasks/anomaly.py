"""Set anomaly detection: find the odd one out of eight images (Set Transformer, arXiv 1810.00825, section 5.4).

The odd image is called the stranger.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.comparison.metric import Metric
from pointset.configuration import check
from pointset.data.batches import epoch_generator
from pointset.tasks.celeba import CELEBA, FaceSets
from pointset.tasks.images import Embedding, Images, Split, digits, find_folder
from pointset.tasks.rows import EMBEDDING, fully_connected, row_model, seeded
from pointset.tasks.set_problem import SetBatch, SetProblem
from pointset.zoo.options import ModelOptions

MEMBERS = 7
"""Number of images of a set that have something in common; the set has one more, the stranger."""
TEST_SEED = 0xA0
TEST_BATCHES, TEST_BATCH = 8, 250


class SetsOfEight(Protocol):
    """Draws random sets of images."""

    channels: int
    side: int

    def __call__(self, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets of MEMBERS + 1 images; the target has the index of the stranger, and data for pictures."""

    def describe(self) -> dict[str, int]:
        """The number of images, and further counts."""


class ElementScorer(nn.Module):
    """One logit for each element, from its row and the pooled set: head([z_i, pool(Z)]), Z = encoder(X). Equivariant.

    Args:
        embedding: module from elements [B, n, inputs] to rows [B, n, d].
        encoder: equivariant modules, called in turn as `module(Z, mask)`.
        pool: module from [B, n, d] to [B, k, width].
        head: module from rows [..., d + k * width] to [..., 1].
        inputs: numbers per element.
    """

    def __init__(
        self, embedding: nn.Module, encoder: Sequence[nn.Module], pool: nn.Module, head: nn.Module, inputs: int
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.encoder = nn.ModuleList([embedding, *encoder])
        self.pool = pool
        self.head = head

    def forward(
        self, X: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n 1"]:
        """Return logits [B, n, 1]; those of padding are minus infinity."""
        Z = X
        for module in self.encoder:
            Z = module(Z, mask)
        pooled = self.pool(Z, mask).flatten(1)[:, None].expand(-1, Z.shape[1], -1)
        logits = self.head(torch.cat([Z, pooled], dim=2))
        return logits if mask is None else logits.masked_fill(~mask[:, :, None], float("-inf"))


@dataclass(frozen=True)
class Anomaly(SetProblem):
    """Find the one image of a set that differs from the other seven.

    `data` is "digits" (scikit-learn's: seven images of one class and one of another; training and test images are
    disjoint), "celeba" (in POINTSET_HOME) or a folder with CelebA. With CelebA, sets are built as in the paper: seven
    faces have both of two attributes, one has neither.

    A model is "encoder + pooling" with a row-wise head FC(d, ReLU), FC(1) of the concatenation of each element's row
    and the pooled row; the loss is the cross entropy of the eight logits. Area under the ROC curve and average
    precision are computed over all elements of the test sets, with the probability of an element within its set as its
    score; chance is 0.5 and 0.125.
    """

    data: str = "digits"

    name: ClassVar[str] = "anomaly"
    title: ClassVar[str] = "Set anomaly detection"
    measured: ClassVar[Sequence[Metric]] = (
        Metric("AUROC", higher_is_better=True),
        Metric("AUPR", higher_is_better=True),
        Metric("accuracy", higher_is_better=True),
    )
    rows: ClassVar[Sequence[str]] = ("rFF + mean", "rFF + max", "rFFp-max + max", "rFF + PMA", "SAB + max", "SAB + PMA")
    most: ClassVar[int] = MEMBERS + 1
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("data", self.data, str)
        if self.data != "digits":
            find_folder(self.data, "celeba", CELEBA)

    def sets(self, split: Split) -> SetsOfEight:
        """The source of the sets of a split."""
        return make_sets(self.data, split)

    def describe(self) -> dict[str, Any]:
        """The number of images, and further counts, of both splits."""
        return {split: self.sets(split).describe() for split in ("train", "test")}

    def model(self, row: str, options: ModelOptions, seed: int) -> nn.Module:
        """The model of a row: [B, 8, pixels] -> [B, 8, 1]."""
        sets, dim = self.sets("train"), options.dim
        body = row_model(row, dim, options, seed, lambda width: scoring_head(dim + width, options))
        embedding = seeded(seed, lambda: Embedding(sets.channels, sets.side, dim), EMBEDDING)
        assert isinstance(body.head, nn.Sequential)
        head = body.head[1:]  # without the first layer, which flattens the rows of each set
        return ElementScorer(embedding, list(body.encoder), body.pool, head, sets.channels * sets.side**2)

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """Sets of images for training."""
        return self.sets("train")(count, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        """2,000 sets of images for tests."""
        make = self.sets("test")
        return [make(TEST_BATCH, epoch_generator(TEST_SEED, batch)) for batch in range(TEST_BATCHES)]

    def loss(self, output: Float[Tensor, "B n 1"], batch: SetBatch) -> Float[Tensor, ""]:
        """Cross entropy over the elements of each set."""
        return F.cross_entropy(output[:, :, 0], batch.target["stranger"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Area under the ROC curve and average precision over elements; accuracy over sets."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        logits = torch.cat([output[:, :, 0] for output in outputs])
        strangers = torch.cat([batch.target["stranger"] for batch in batches])
        is_stranger = F.one_hot(strangers, logits.shape[1]).flatten().numpy()
        scores = logits.double().softmax(dim=1).flatten().numpy()
        return {
            "AUROC": float(roc_auc_score(is_stranger, scores)),
            "AUPR": float(average_precision_score(is_stranger, scores)),
            "accuracy": float((logits.argmax(dim=1) == strangers).double().mean()),
        }


def scoring_head(width: int, options: ModelOptions) -> nn.Module:
    """The head from the concatenation of an element and the pooled row to one logit."""
    return nn.Sequential(fully_connected(width, options.dim), nn.ReLU(), nn.Linear(options.dim, 1))


class StrangerSets:
    """Sets of seven images of one class and one of another, in random order."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.channels, self.side = images.channels, images.side
        self.places, self.counts = images.by_class()

    def describe(self) -> dict[str, int]:
        """The numbers of images and classes."""
        return self.images.describe()

    def __call__(self, count: int, generator: torch.Generator) -> SetBatch:
        """Draw `count` sets; the target has the index of the stranger and, for pictures, the labels."""
        common, other = torch.rand(count, self.images.classes, generator=generator).topk(2, dim=1).indices.unbind(1)
        strangers = torch.randint(0, MEMBERS + 1, (count,), generator=generator)
        is_stranger = torch.arange(MEMBERS + 1) == strangers[:, None]
        labels = torch.where(is_stranger, other[:, None], common[:, None])
        among = self.counts[labels]
        picked = (torch.rand(labels.shape, generator=generator, dtype=torch.float64) * among).long()
        X = self.images.pixels[self.places[labels, picked]]
        return SetBatch(X, None, {"stranger": strangers, "labels": labels})


@lru_cache(maxsize=2)
def make_sets(data: str, split: Split) -> SetsOfEight:
    """Sets of digits, or of the faces in a folder."""
    if data == "digits":
        return StrangerSets(digits(split))
    return FaceSets(find_folder(data, "celeba", CELEBA), split, MEMBERS)
