"""Problems on sets of images, of scikit-learn's digits or a folder such as Omniglot: counting and anomaly detection.

Set Transformer (arXiv 1810.00825), sections 5.2 and 5.4. The odd image of an anomaly is called the stranger.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.configuration import check
from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.runs.files import require_file
from pointset.tasks.set_problem import EMBEDDING, SetBatch, SetProblem, fully_connected, parts_of, row_model, seeded
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

Split = Literal["train", "test"]
TEST_EVERY = 5
"""One of this many images, or classes, is for tests."""
SPLIT_SEED = 0x1D
TEST_BATCHES, TEST_BATCH = 8, 250
SIDE = 28
"""Images of a folder are scaled to SIDE x SIDE."""


@dataclass(frozen=True)
class Images:
    """The images of one split, with their classes."""

    pixels: Float[Tensor, "N pixels"]
    """Grey values in [0, 1], flattened row by row."""
    labels: Int[Tensor, " N"]
    side: int

    @property
    def classes(self) -> int:
        """The number of classes; labels start at 0."""
        return int(self.labels.max()) + 1

    def draw(self, labels: Int[Tensor, "B n"], generator: torch.Generator) -> Int[Tensor, "B n"]:
        """Indices of random images of the given classes."""
        rows, counts = self.by_class
        random = torch.rand(labels.shape, generator=generator, dtype=torch.float64)
        return rows[labels, (random * counts[labels]).long()]

    @cached_property
    def by_class(self) -> tuple[Int[Tensor, "classes most"], Int[Tensor, " classes"]]:
        """The indices of the images of each class, padded with zeros, and the number of images of each class."""
        rows_by_label = [(self.labels == label).nonzero()[:, 0] for label in range(self.classes)]
        counts = torch.tensor([len(rows) for rows in rows_by_label])
        return nn.utils.rnn.pad_sequence(rows_by_label, batch_first=True), counts


@lru_cache(maxsize=4)
def load_images(data: str, split: Split) -> Images:
    """The images of a split: the digits, or those of a folder; see `digits` and `characters`."""
    return digits(split) if data == "digits" else characters(Path(data), split)


def digits(split: Split) -> Images:
    """The handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels in ten classes.

    A fifth of each class is for tests. Source: Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI.
    """
    from sklearn.datasets import load_digits

    loaded = load_digits()
    pixels, labels = torch.from_numpy(loaded.data / 16.0).float(), torch.from_numpy(loaded.target).long()
    held_out, random = torch.zeros(len(labels), dtype=torch.bool), np.random.default_rng(SPLIT_SEED)
    for label in labels.unique().tolist():
        rows = (labels == label).nonzero()[:, 0]
        held_out[rows[random.permutation(len(rows))[: len(rows) // TEST_EVERY]]] = True
    chosen = held_out == (split == "test")
    return Images(pixels[chosen], labels[chosen], side=8)


def characters(folder: Path, split: Split) -> Images:
    """Drawn characters from a folder alphabet/character/*.png at any depth, such as Omniglot's images_background.

    A fifth of the characters is for tests; they do not occur in training. Images must be dark on light, like
    Omniglot's, and are inverted.
    """
    folders = sorted({path.parent for path in folder.rglob("*.png")})
    if len(folders) < 2 * TEST_EVERY:
        raise PointsetError(
            f"{folder} has {len(folders)} characters with images, too few: give a folder that has "
            "alphabet/character/*.png, such as Omniglot's images_background, unpacked"
        )
    order = np.random.default_rng(SPLIT_SEED).permutation(len(folders))
    tests = {folders[index] for index in order[: len(folders) // TEST_EVERY]}
    kept = [character for character in folders if (character in tests) == (split == "test")]
    files = [(path, label) for label, character in enumerate(kept) for path in sorted(character.glob("*.png"))]
    pixels = torch.stack([1.0 - read_image(path, SIDE) for path, _ in files])
    return Images(pixels, torch.tensor([label for _, label in files]), side=SIDE)


def read_image(path: Path, side: int) -> Float[Tensor, " pixels"]:
    """Read an image: its central square, scaled to side x side, grey values in [0, 1]."""
    from PIL import Image, ImageOps

    try:
        require_file(path)
        image = Image.open(path).convert("RGBA")
    except OSError as error:
        raise PointsetError(f"{path} is not a readable image ({error}): restore it or remove it") from error
    # Behind transparent pixels, whose own colour is often that of the ink.
    paper = Image.new("RGBA", image.size, "white")
    grey = Image.alpha_composite(paper, image).convert("L")
    return torch.from_numpy(np.asarray(ImageOps.fit(grey, (side, side)), np.float32) / 255).flatten()


class Embedding(nn.Module):
    """Embeds each image of a set in a row: [B, n, pixels] -> [B, n, d].

    Images of up to 8 x 8 pixels: FC(d, ReLU), FC(d). Larger images: Conv(d, 3 x 3, stride 2, ReLU) x 3, FC(d).
    """

    def __init__(self, side: int, dim: int) -> None:
        super().__init__()
        self.rowwise = fully_connected(side**2, dim, dim) if side <= 8 else _convolutions(side, dim)

    def forward(self, X: Float[Tensor, "B n pixels"], mask: Bool[Tensor, "B n"] | None = None) -> Tensor:
        """Return the rows; padding is embedded too, later modules mask it."""
        return self.rowwise(X.flatten(0, 1)).unflatten(0, X.shape[:2])


def _convolutions(side: int, dim: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Unflatten(1, (1, side, side))]
    for before in (1, dim, dim):
        layers += [nn.Conv2d(before, dim, 3, stride=2, padding=1), nn.ReLU()]
        side = (side + 1) // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(dim * side**2, dim))


@dataclass(frozen=True)
class ImageProblem(SetProblem):
    """Base class of set problems whose elements are images, embedded one by one.

    `data` is "digits" (scikit-learn's; training and test images are disjoint), or a folder alphabet/character/*.png,
    such as Omniglot's (github.com/brendenlake/omniglot; training and test characters are disjoint).
    """

    data: str = "digits"
    test_seed: ClassVar[int]

    def __post_init__(self) -> None:
        check("data", self.data, str)
        if self.data != "digits" and not Path(self.data).is_dir():
            raise PointsetError(
                f"the folder {self.data} does not exist: give digits, or a folder that has alphabet/character/*.png"
            )

    def describe(self) -> dict[str, Any]:
        images = {split: load_images(self.data, split) for split in get_args(Split)}
        return {split: {"images": len(own.labels), "classes": own.classes} for split, own in images.items()}

    def embedding(self, dim: int, seed: int) -> Embedding:
        side = load_images(self.data, "train").side
        return seeded(seed, lambda: Embedding(side, dim), EMBEDDING)

    @property
    def inputs(self) -> int:
        return load_images(self.data, "train").side ** 2

    @abstractmethod
    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets of these images."""

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        return self.draw_sets(load_images(self.data, "train"), count, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        images = load_images(self.data, "test")
        generators = (epoch_generator(self.test_seed, batch) for batch in range(TEST_BATCHES))
        return [self.draw_sets(images, TEST_BATCH, generator) for generator in generators]


LEAST, MOST = 6, 10
"""Smallest and largest number of images in a set."""
NEGLIGIBLE = -16.0
"""Below this output, its exponential is smaller than the rounding error of float32 at 1."""


def rate_of(output: Float[Tensor, "B 1"]) -> Float[Tensor, " B"]:
    """The positive rate of a Poisson distribution, softplus(output)."""
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
        """The model of a row: [B, n, pixels] -> [B, 1]."""
        dim = options.dim

        def last(width: int) -> nn.Module:
            if parts_of(model)[1].startswith("pma"):
                return nn.Linear(width, 1)
            return nn.Sequential(fully_connected(width, dim), nn.ReLU(), nn.Linear(dim, 1))

        body = row_model(model, dim, options, seed, last)
        return SetClassifier([self.embedding(dim, seed), *body.encoder], body.pool, body.head, self.inputs)

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


MEMBERS = 7
"""Number of images of a set that have something in common; the set has one more, the stranger."""


class ElementScorer(SetClassifier):
    """One logit for each element, from its row and the pooled set: head([z_i, pool(Z)]), Z = encoder(X). Equivariant.

    The pooling gives [B, k, width], and the head takes rows [..., d + k * width] to [..., 1].
    """

    def forward(
        self, X: Float[Tensor, "B n inputs"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "*rows 1"]:
        """Return logits [B, n, 1]; those of padding are minus infinity."""
        Z = self.encode(X, mask)
        pooled = self.pool(Z, mask).flatten(1)[:, None].expand(-1, Z.shape[1], -1)
        logits = self.head(torch.cat([Z, pooled], dim=2))
        return logits if mask is None else logits.masked_fill(~mask[:, :, None], float("-inf"))


@dataclass(frozen=True)
class Anomaly(ImageProblem):
    """Find the one image of a set that differs from the other seven.

    A set has seven images of one class and one of another, of the `data` of `ImageProblem`. The paper has faces of
    CelebA, which may not be redistributed: seven share two attributes, one has neither.

    A model is "encoder + pooling" with a row-wise head FC(d, ReLU), FC(1) of the concatenation of each element's row
    and the pooled row; the loss is the cross entropy of the eight logits. Area under the ROC curve and average
    precision are computed over all elements of the test sets, with the probability of an element within its set as its
    score; chance is 0.5 and 0.125.
    """

    name: ClassVar[str] = "anomaly"
    title: ClassVar[str] = "Set anomaly detection"
    measured: ClassVar[Sequence[Metric]] = (
        Metric("AUROC", higher_is_better=True),
        Metric("AUPR", higher_is_better=True),
        Metric("accuracy", higher_is_better=True),
    )
    rows: ClassVar[Sequence[str]] = ("rFF + mean", "rFF + max", "rFFp-max + max", "rFF + PMA", "SAB + max", "SAB + PMA")
    most: ClassVar[int] = MEMBERS + 1
    test_seed: ClassVar[int] = 0xA0

    def build(self, model: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """The model of a row: [B, 8, pixels] -> [B, 8, 1]."""
        dim = options.dim

        def scoring_head(width: int) -> nn.Module:
            return nn.Sequential(fully_connected(dim + width, dim), nn.ReLU(), nn.Linear(dim, 1))

        body = row_model(model, dim, options, seed, scoring_head)
        assert isinstance(body.head, nn.Sequential)
        head = body.head[1:]  # without the first layer, which flattens the rows of each set
        return ElementScorer([self.embedding(dim, seed), *body.encoder], body.pool, head, self.inputs)

    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets in random order; the target has the index of the stranger and, for pictures, the labels."""
        common, other = torch.rand(count, images.classes, generator=generator).topk(2, dim=1).indices.unbind(1)
        strangers = torch.randint(0, MEMBERS + 1, (count,), generator=generator)
        is_stranger = torch.arange(MEMBERS + 1) == strangers[:, None]
        labels = torch.where(is_stranger, other[:, None], common[:, None])
        return SetBatch(images.pixels[images.draw(labels, generator)], None, {"stranger": strangers, "labels": labels})

    def loss(self, output: Float[Tensor, "*rows 1"], batch: SetBatch) -> Float[Tensor, ""]:
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
