"""Images as elements of sets: the digits of scikit-learn, or a folder of images."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.tasks.rows import fully_connected

Split = Literal["train", "test"]
TEST_SHARE = 5
"""One of this many images, or classes, is for tests."""
SPLIT_SEED = 0x1D
SIDE = 28
"""Images of a folder are scaled to SIDE x SIDE."""


@dataclass(frozen=True)
class Images:
    """The images of one split, with their classes."""

    pixels: Float[Tensor, "N pixels"]
    """Values in [0, 1], flattened in the order channel, row, column."""
    labels: Int[Tensor, " N"]
    channels: int
    side: int

    @property
    def classes(self) -> int:
        """The number of classes; labels start at 0."""
        return int(self.labels.max()) + 1

    def describe(self) -> dict[str, int]:
        """The numbers of images and classes."""
        return {"images": len(self.labels), "classes": self.classes}

    def by_class(self) -> tuple[Int[Tensor, "classes most"], Int[Tensor, " classes"]]:
        """The indices of the images of each class, padded with zeros, and the number of images of each class."""
        places = [(self.labels == label).nonzero()[:, 0] for label in range(self.classes)]
        counts = torch.tensor([len(found) for found in places])
        return nn.utils.rnn.pad_sequence(places, batch_first=True), counts

    def part(self, chosen: Bool[Tensor, " N"]) -> "Images":
        """A subset of the images; classes without images are removed, the others renumbered from 0."""
        labels = self.labels[chosen].unique(return_inverse=True)[1]
        return Images(self.pixels[chosen], labels, self.channels, self.side)


@lru_cache(maxsize=2)
def digits(split: Split) -> Images:
    """The handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels in ten classes.

    A fifth of each class is for tests. Source: Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI.
    """
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = torch.from_numpy(found.data / 16.0).float()
    whole = Images(pixels, torch.from_numpy(found.target).long(), channels=1, side=8)
    return whole.part(held_out(len(pixels), whole.labels) == (split == "test"))


def held_out(count: int, labels: Int[Tensor, " N"]) -> Bool[Tensor, " N"]:
    """True for the test images: a random fifth of each class, the same in every run."""
    chosen = torch.zeros(count, dtype=torch.bool)
    random = np.random.default_rng(SPLIT_SEED)
    for label in labels.unique().tolist():
        places = (labels == label).nonzero()[:, 0]
        chosen[places[random.permutation(len(places))[: len(places) // TEST_SHARE]]] = True
    return chosen


@lru_cache(maxsize=2)
def characters(folder: Path, split: Split) -> Images:
    """Drawn characters from a folder alphabet/character/*.png at any depth, such as Omniglot's images_background.

    A fifth of the characters is for tests; they do not occur in training. Images must be dark on light, like
    Omniglot's, and are inverted.

    Raises:
        PointsetError: there are too few characters, or a file is not an image.
    """
    found = sorted({path.parent for path in folder.rglob("*.png")})
    if len(found) < 2 * TEST_SHARE:
        raise PointsetError(
            f"{folder} has {len(found)} characters with images, too few to count: give a folder that has "
            "alphabet/character/*.png, such as Omniglot's images_background, unpacked"
        )
    order = np.random.default_rng(SPLIT_SEED).permutation(len(found))
    tests = {found[place] for place in order[: len(found) // TEST_SHARE]}
    kept = [character for character in found if (character in tests) == (split == "test")]
    files = [(path, label) for label, character in enumerate(kept) for path in sorted(character.glob("*.png"))]
    pixels = torch.stack([1.0 - read_image(path, SIDE, channels=1) for path, _ in files])
    return Images(pixels, torch.tensor([label for _, label in files]), channels=1, side=SIDE)


def read_image(path: Path, side: int, channels: int) -> Float[Tensor, " pixels"]:
    """Read an image: its central square, scaled to side x side, values in [0, 1], with one or three channels.

    Raises:
        PointsetError: the file is missing or not an image.
    """
    from matplotlib.image import imread

    try:
        read = np.asarray(imread(path))
    except (OSError, ValueError, SyntaxError) as error:
        raise PointsetError(f"{path} is not a readable image ({error}): restore it or remove it") from error
    values = torch.from_numpy(read.astype(np.float32) / (255.0 if read.dtype == np.uint8 else 1.0))
    values = values[..., None] if values.dim() == 2 else values  # [height, width, 1, 3 or 4]
    if values.shape[2] == 4:  # transparent pixels become white: their own colour is often that of the ink
        values = 1 - (1 - values[..., :3]) * values[..., 3:]
    height, width = values.shape[:2]
    square = min(height, width)
    top, left = (height - square) // 2, (width - square) // 2
    image = values[top : top + square, left : left + square].permute(2, 0, 1)[None]
    image = F.interpolate(image, size=(side, side), mode="bilinear", antialias=True)[0].clamp(0.0, 1.0)
    return (image.mean(dim=0, keepdim=True) if channels == 1 else image.expand(3, -1, -1)).flatten()


class Embedding(nn.Module):
    """Embeds each image of a set in a row: [B, n, pixels] -> [B, n, d].

    Images of up to 8 x 8 pixels: FC(d, ReLU), FC(d). Larger images: Conv(d, 3 x 3, stride 2, ReLU) x 3, FC(d).
    """

    def __init__(self, channels: int, side: int, dim: int) -> None:
        super().__init__()
        small = side <= 8
        self.rowwise = fully_connected(channels * side**2, dim, dim) if small else _convolutions(channels, side, dim)

    def forward(self, X: Float[Tensor, "B n pixels"], mask: Bool[Tensor, "B n"] | None = None) -> Tensor:
        """Return the rows; padding is embedded too, later modules mask it."""
        return self.rowwise(X)


def _convolutions(channels: int, side: int, dim: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Unflatten(1, (channels, side, side))]
    for before in (channels, dim, dim):
        layers += [nn.Conv2d(before, dim, 3, stride=2, padding=1), nn.ReLU()]
        side = (side + 1) // 2
    layers += [nn.Flatten(), nn.Linear(dim * side**2, dim)]
    return nn.Sequential(EachElement(nn.Sequential(*layers)))


class EachElement(nn.Module):
    """Applies a module for batches [N, .] to the elements of sets [B, n, .]."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, X: Float[Tensor, "B n _"]) -> Float[Tensor, "B n d"]:
        """Return one row for each element."""
        return self.module(X.flatten(0, 1)).unflatten(0, X.shape[:2])


def find_folder(data: str, name: str, help_text: str) -> Path:
    """The folder of a dataset of images.

    Args:
        data: a path, or `name` for the folder of that name in POINTSET_HOME.
        name: name of the dataset.
        help_text: how to get the dataset, for the error.

    Raises:
        PointsetError: the folder does not exist.
    """
    from pointset.data.catalogue.home import home

    folder = home() / name if data == name else Path(data).expanduser()
    if not folder.is_dir():
        raise PointsetError(f"there is no folder {folder}: {help_text}")
    return folder
