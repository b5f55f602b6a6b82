"""What counting and anomaly detection have in common: sets of scikit-learn's digits, embedded one by one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.data.batches import epoch_generator
from pointset.tasks.set_problem import EMBEDDING, SetBatch, SetProblem, fully_connected, seeded

Split = Literal["train", "test"]
PIXELS = 64
"""Numbers of an image of 8 x 8."""
TEST_EVERY = 5
"""One of this many images is for tests."""
SPLIT_SEED = 0x1D
TEST_BATCHES, TEST_BATCH = 8, 250


@dataclass(frozen=True)
class Images:
    """The images of one split, with their classes."""

    pixels: Float[Tensor, "N pixels"]
    """Grey values in [0, 1], flattened row by row."""
    labels: Int[Tensor, " N"]

    @property
    def classes(self) -> int:
        """The number of classes; labels start at 0."""
        return int(self.labels.max()) + 1

    def draw(self, labels: Int[Tensor, "B n"], generator: torch.Generator) -> Int[Tensor, "B n"]:
        """Return indices of random images of the given classes."""
        rows, counts = self.by_class
        random = torch.rand(labels.shape, generator=generator, dtype=torch.float64)
        return rows[labels, (random * counts[labels]).long()]

    @cached_property
    def by_class(self) -> tuple[Int[Tensor, "classes most"], Int[Tensor, " classes"]]:
        """The indices of the images of each class, padded with zeros, and the number of images of each class."""
        rows_by_label = [(self.labels == label).nonzero()[:, 0] for label in range(self.classes)]
        counts = torch.tensor([len(rows) for rows in rows_by_label])
        return nn.utils.rnn.pad_sequence(rows_by_label, batch_first=True), counts


@cache
def digits(split: Split) -> Images:
    """Return the handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels in ten classes.

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
    return Images(pixels[chosen], labels[chosen])


class Embedding(nn.Module):
    """Embeds each image of a set in a row by FC(d, ReLU), FC(d): [B, n, pixels] -> [B, n, d]."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.rowwise = fully_connected(PIXELS, dim, dim)

    def forward(self, X: Float[Tensor, "B n pixels"], mask: Bool[Tensor, "B n"] | None = None) -> Tensor:
        """Return the rows; padding is embedded too, later modules mask it."""
        return self.rowwise(X)


@dataclass(frozen=True)
class ImageProblem(SetProblem):
    """Base class of set problems whose elements are images, embedded one by one; those of the test sets are others."""

    test_seed: ClassVar[int]

    def describe(self) -> dict[str, Any]:
        images = {split: digits(split) for split in get_args(Split)}
        return {split: {"images": len(own.labels), "classes": own.classes} for split, own in images.items()}

    def embedding(self, dim: int, seed: int) -> Embedding:
        return seeded(seed, lambda: Embedding(dim), EMBEDDING)

    @abstractmethod
    def draw_sets(self, images: Images, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets of these images."""

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        return self.draw_sets(digits("train"), count, generator)

    def test_sets(self) -> Sequence[SetBatch]:
        images = digits("test")
        generators = (epoch_generator(self.test_seed, batch) for batch in range(TEST_BATCHES))
        return [self.draw_sets(images, TEST_BATCH, generator) for generator in generators]
