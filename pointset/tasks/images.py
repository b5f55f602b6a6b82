"""What counting and anomaly detection have in common: sets of images, embedded one by one.

The images are scikit-learn's digits, or those of a folder such as Omniglot.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.configuration import check
from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.tasks.set_problem import EMBEDDING, SetBatch, SetProblem, fully_connected, seeded

Split = Literal["train", "test"]
TEST_EVERY = 5
"""One of this many images, or classes, is for tests."""
SPLIT_SEED = 0x1D
SIDE = 28
"""Images of a folder are scaled to SIDE x SIDE."""
TEST_BATCHES, TEST_BATCH = 8, 250


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
    pixels = torch.stack([1.0 - read_image(path) for path, _ in files])
    return Images(pixels, torch.tensor([label for _, label in files]), side=SIDE)


def read_image(path: Path) -> Float[Tensor, " pixels"]:
    """The central square of an image, scaled to SIDE x SIDE, grey values in [0, 1]."""
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as image:
            grey = ImageOps.fit(image.convert("L"), (SIDE, SIDE))
    except OSError as error:
        raise PointsetError(f"{path} is not a readable image ({error}): restore it or remove it") from error
    return torch.from_numpy(np.asarray(grey, np.float32) / 255).flatten()


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
