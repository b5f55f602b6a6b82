"""How many different characters are in a set of images (Set Transformer, arXiv 1810.00825, section 5.2)?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.comparison.metric import Metric
from pointset.configuration import check
from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError, quoted
from pointset.tasks.images import Embedding, Images, Split, characters, digits, find_folder
from pointset.tasks.ordinal import (
    OrderedThresholds,
    soft_label_loss,
    threshold_loss,
    threshold_prediction,
    threshold_probabilities,
)
from pointset.tasks.rows import EMBEDDING, fully_connected, parts_of, row_model, seeded
from pointset.tasks.set_problem import SetBatch, SetProblem
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

LEAST, MOST = 6, 10
"""Images in a set."""
TEST_SEED = 0xC0
TEST_BATCHES, TEST_BATCH = 8, 250
MODELS = ("rFF + mean", "rFF + sum", "SAB + PMA")
OMNIGLOT = (
    "give a folder that has alphabet/character/*.png, as --data FOLDER, or unpack Omniglot's images_background.zip and "
    "images_evaluation.zip (https://github.com/brendenlake/omniglot) into $POINTSET_HOME/omniglot; "
    "data=digits needs no files"
)


class Head(NamedTuple):
    """One way of saying a count from 1 to MOST."""

    outputs: int
    """Numbers that the model gives: no two heads have as many."""
    layer: Callable[[int], nn.Module]
    """The last layer, from its width."""
    loss: Callable[[Tensor, Tensor], Tensor]
    """Of outputs [B, outputs] and counts [B]."""
    predict: Callable[[Tensor], Tensor]
    """Counts [B] out of outputs: the middle of what the model believes."""
    mode: Callable[[Tensor], Tensor]
    """Counts [B] out of outputs: the most probable one."""


SMALL = -16.0
"""Outputs whose exponential is below the rounding of float32."""


def rate_of(output: Float[Tensor, "B 1"]) -> Float[Tensor, " B"]:
    """The rate of a Poisson distribution, positive."""
    return F.softplus(output[:, 0])


def poisson_loss(output: Float[Tensor, "B 1"], counts: Int[Tensor, " B"]) -> Float[Tensor, ""]:
    """Negative log likelihood: rate - count log(rate) + log(count!)."""
    x = output[:, 0]
    # log(log(1 + e^x)) is x to rounding where e^x is small, and finite where e^x is not.
    log_rate = torch.where(x < SMALL, x, F.softplus(x.clamp(min=SMALL)).log())
    return (rate_of(output) - counts * log_rate + torch.lgamma(counts + 1.0)).mean()


def poisson_prediction(output: Float[Tensor, "B 1"]) -> Int[Tensor, " B"]:
    """The count nearest to the rate, which is the mean."""
    return rate_of(output).round().long()


def poisson_mode(output: Float[Tensor, "B 1"]) -> Int[Tensor, " B"]:
    """The most probable count: the largest whole number that is not above the rate."""
    return rate_of(output).floor().long()


SOFTNESS = 0.5
"""Temperature of the soft labels: a count in the middle has 0.76 of the probability, each neighbour 0.10."""
HEADS = {
    "Poisson": Head(1, lambda width: nn.Linear(width, 1), poisson_loss, poisson_prediction, poisson_mode),
    "thresholds": Head(
        MOST - 1,
        lambda width: OrderedThresholds(width, MOST),
        lambda output, counts: threshold_loss(output, counts - 1),
        lambda output: threshold_prediction(output) + 1,
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
class Counting(SetProblem):
    """n images, n uniform in 6 ... 10, of c classes, c uniform in 1 ... n; say c.

    Which classes is drawn, then an image of each and n - c more of the same classes. An image may occur twice. `data`
    is "digits" (scikit-learn's; the images of the tests are not those of the training), "omniglot" (in POINTSET_HOME)
    or a folder alphabet/character/*.png (the characters of the tests are not those of the training).

    A row is "encoder + pooling", which models c as Poisson with a trained rate, as the paper does, or one of the same
    with ", thresholds" or ", soft labels" behind it (see `pointset.tasks.ordinal`), which know that no more than ten
    can be counted. Their images are embedded one by one; statistics are followed by FC(d, ReLU) and the head, PMA by
    the head.
    """

    data: str = "digits"

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
    pooled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check("data", self.data, str)
        if self.data != "digits":
            find_folder(self.data, "omniglot", OMNIGLOT)

    def sets(self, split: Split) -> "SetMaker":
        """Sets of the images of a split."""
        return make_sets(self.data, split)

    def describe(self) -> dict[str, Any]:
        """How many images of how many classes there are."""
        return {split: self.sets(split).images.describe() for split in ("train", "test")}

    def model(self, row: str, options: ModelOptions, seed: int) -> nn.Module:
        """The model of a row: [B, n, pixels] -> [B, outputs of its head]."""
        base, head = split_row(row)
        images, dim = self.sets("train").images, options.dim

        def last(width: int) -> nn.Module:
            if parts_of(base)[1].startswith("pma"):
                return head.layer(width)
            return nn.Sequential(fully_connected(width, dim), nn.ReLU(), head.layer(dim))

        body = row_model(base, dim, options, seed, last)
        embedding = seeded(seed, lambda: Embedding(images.channels, images.side, dim), EMBEDDING)
        return SetClassifier([embedding, *body.encoder], body.pool, body.head, images.pixels.shape[1])

    def zoo_name(self, row: str) -> str:
        """Of the row without its head."""
        return super().zoo_name(split_row(row)[0])

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """Sets of images for training."""
        return self.sets("train")(count, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        """2,000 sets of images for tests."""
        make = self.sets("test")
        return [make(TEST_BATCH, epoch_generator(TEST_SEED, batch)) for batch in range(TEST_BATCHES)]

    def loss(self, output: Float[Tensor, "B outputs"], batch: SetBatch) -> Float[Tensor, ""]:
        """That of the head, which the number of outputs tells."""
        return head_of(output).loss(output, batch.target["count"])

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Shares of counts that are right, and the mean absolute error of the rounded ones."""
        counts = torch.cat([batch.target["count"] for batch in batches])
        predicted = torch.cat([head_of(output).predict(output) for output in outputs])
        modes = torch.cat([head_of(output).mode(output) for output in outputs])
        return {
            "accuracy": float((predicted == counts).double().mean()),
            "accuracy of the mode": float((modes == counts).double().mean()),
            "MAE": float((predicted - counts).abs().double().mean()),
        }


def split_row(row: str) -> tuple[str, Head]:
    """The model of a row, and its head.

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


class SetMaker:
    """Sets of images of a known number of classes."""

    def __init__(self, images: Images) -> None:
        self.images = images
        self.places, self.counts = images.by_class()

    def __call__(self, count: int, generator: torch.Generator) -> SetBatch:
        """So many sets, padded to MOST; the target has the count of classes and, for pictures, the labels."""
        sizes = torch.randint(LEAST, MOST + 1, (count,), generator=generator)
        most = sizes.clamp(max=self.images.classes)
        classes = (torch.rand(count, generator=generator, dtype=torch.float64) * most).long() + 1
        chosen = self._classes(classes, generator)  # [count, MOST]
        among = self.counts[chosen]
        picked = (torch.rand(chosen.shape, generator=generator, dtype=torch.float64) * among).long()
        mask = torch.arange(MOST) < sizes[:, None]
        X = self.images.pixels[self.places[chosen, picked]] * mask[:, :, None]
        return SetBatch(X, mask, {"count": classes, "labels": chosen.masked_fill(~mask, -1)})

    def _classes(self, classes: Int[Tensor, " B"], generator: torch.Generator) -> Int[Tensor, "B most"]:
        """A class for each place: in the first c places c different ones, in the others one of these c."""
        keys = torch.rand(len(classes), self.images.classes, generator=generator)
        order = keys.topk(min(MOST, self.images.classes), dim=1).indices
        again = torch.rand(len(classes), MOST, generator=generator, dtype=torch.float64) * classes[:, None]
        place = torch.arange(MOST)
        return order.gather(1, torch.where(place < classes[:, None], place, again.long()))


@lru_cache(maxsize=2)
def make_sets(data: str, split: Split) -> SetMaker:
    """Sets of digits, or of the characters in a folder."""
    images = digits(split) if data == "digits" else characters(find_folder(data, "omniglot", OMNIGLOT), split)
    return SetMaker(images)
