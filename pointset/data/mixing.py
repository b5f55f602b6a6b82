"""Augmentations that put two shapes of a batch together, and whose labels say how much there is of each.

PointCutMix (Zhang et al., arXiv 2101.01461, and its released code): a share of a shape's points, uniform on (0, 1) as
Beta(1, 1) is, gives way to points of another shape of the batch, with probability a half. There it is the same share
for a whole batch, here every shape has its own. There the points that come are those that an optimal assignment of the
one cloud to the other pairs with those that go; it takes a second for two clouds of 1,024 points, and is left out.
In variant R, where the points that go are random, so are those that come, as under an assignment. In variant K, where
the nearest to a random point go, those of the other shape that are nearest to that place come.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from msgspec import Meta
from torch import Generator, Tensor

from pointset.configuration import check
from pointset.data.augment import AUGMENTATIONS, Axis, Compose, augmentation_from_names
from pointset.errors import PointsetError, quoted
from pointset.inputs import check_clouds, check_kind


class Mixed(NamedTuple):
    """A batch of which some shapes hold points of another."""

    points: Float[Tensor, "B n d"]
    """Every set as large as it was, its points in another order, with their features, zeros behind them."""
    partners: Int[Tensor, " B"]
    """The row of the batch that each set has taken points from."""
    shares: Float[Tensor, " B"]
    """Of the points, those that have come; 0 in a set that is left as it was."""


@dataclass(frozen=True)
class CutMix:
    """PointCutMix of a batch; see the text of this module."""

    which: Literal["random", "nearest"] = "random"
    """Variant R or K."""
    probability: float = 0.5
    """That a shape is mixed."""

    def __post_init__(self) -> None:
        check("which", self.which, Literal["random", "nearest"])
        check("probability", self.probability, Annotated[float, Meta(ge=0, le=1, description="from 0 to 1")])

    def __call__(
        self, points: Float[Tensor, "B n d"], generator: Generator, mask: Bool[Tensor, "B n"] | None = None
    ) -> Mixed:
        """Mix the sets of a batch; the mask, True at real points, stays what it is."""
        check_clouds(points, mask, features=True)
        check_kind("generator", generator, Generator)
        count, most, _ = points.shape
        partners = torch.randperm(count, generator=generator)
        chosen = torch.rand(count, generator=generator) < self.probability
        share = torch.rand(count, generator=generator)
        if mask is None:
            sizes = torch.full((count,), most)
            real = points.new_ones(count, most, dtype=torch.bool)
        else:
            sizes, real = mask.sum(dim=1), mask
        coming = (share * sizes).long().clamp(min=1)  # one at least, as in the released code
        chosen &= (partners != torch.arange(count)) & (sizes > 1)
        coming = torch.where(chosen, coming, 0).minimum(sizes[partners])
        own, theirs = self._orders(points, points[partners], real, real[partners], generator)
        taken = torch.arange(most) < coming[:, None]
        mixed = torch.where(taken[..., None], _in_order(points[partners], theirs), _in_order(points, own))
        return Mixed(torch.where(chosen[:, None, None], mixed, points), partners, coming / sizes.clamp(min=1))

    def _orders(
        self, own: Tensor, theirs: Tensor, real: Tensor, really: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """The orders [B, n] in which points of the one set go and those of the other come; padding is last in both."""
        if self.which == "random":
            first, second = torch.rand((2, *real.shape), generator=generator)
        else:
            places = (torch.rand((len(own), 1), generator=generator) * real.sum(dim=1, keepdim=True)).long()
            centre = own[..., :3].gather(1, places[..., None].expand(-1, -1, 3))
            first, second = ((cloud[..., :3] - centre).square().sum(dim=2) for cloud in (own, theirs))
        return first.masked_fill(~real, torch.inf).argsort(dim=1), second.masked_fill(~really, torch.inf).argsort(dim=1)


def _in_order(points: Tensor, order: Tensor) -> Tensor:
    return points.gather(1, order[..., None].expand(-1, -1, points.shape[2]))


MIXINGS = {"cutmix-r": CutMix("random"), "cutmix-k": CutMix("nearest")}


def recipe_augmentations(names: Sequence[str], up: Axis = "z") -> tuple[Compose, CutMix | None]:
    """What a recipe's `augment` names: what changes each shape, and what then mixes the shapes of a batch, if any.

    Args:
        names: keys of `AUGMENTATIONS`, and perhaps one of `MIXINGS`, last.
        up: the axis that "turn" and "rotate-up" turn about.

    Raises:
        PointsetError: a name is unknown, or a mixing is not the last.
    """
    for place, name in enumerate(names, start=1):
        if name not in (*AUGMENTATIONS, *MIXINGS):
            known = ", ".join((*AUGMENTATIONS, *MIXINGS))
            raise PointsetError(f"augment must name any of {known}, got {quoted(name)}")
        if name in MIXINGS and place < len(names):
            raise PointsetError(
                f"augment has {names[place]!r} after {name!r}, which mixes what others made: put it last"
            )
    own = [name for name in names if name not in MIXINGS]
    return augmentation_from_names(own, up), MIXINGS.get(names[-1]) if names else None
