"""Images of the problems on sets of images: scikit-learn's digits, or a folder such as Omniglot."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.runs.files import require_file

Split = Literal["train", "test"]
TEST_EVERY = 5
"""One of this many images, or classes, is for tests."""
SPLIT_SEED = 0x1D
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
