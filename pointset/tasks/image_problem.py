"""What counting and anomaly detection have in common: sets of images, embedded one by one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import check
from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.tasks.images import Images, Split, load_images
from pointset.tasks.set_problem import EMBEDDING, SetBatch, SetProblem, fully_connected, seeded

TEST_BATCHES, TEST_BATCH = 8, 250


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
