"""PointCutMix: replace part of a shape's points by points of another shape of the batch, and mix the labels.

After Zhang et al. (arXiv 2101.01461) and their released code: with probability 1/2, a share of a shape's points,
Beta(1, 1) or uniform on (0, 1), is replaced. Two differences:

- Every shape draws its own share; in the released code a batch has one.
- The released code computes an optimal assignment between the two clouds and inserts the points assigned to the removed
  ones. This takes a second for two clouds of 1,024 points, and is left out. In variant R, which removes random points,
  the inserted points are random too, as with an assignment. In variant K, which removes the points nearest to a random
  centre, the inserted points are those of the other shape nearest to the same centre.
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
from pointset.inputs import check_clouds


class Mixed(NamedTuple):
    """A batch in which some shapes contain points of another."""

    points: Float[Tensor, "B n d"]
    """Sets of unchanged sizes, with features; the order of the points changes, and zero padding stays last."""
    partners: Int[Tensor, " B"]
    """For each set, the row of the batch from which it has points."""
    shares: Float[Tensor, " B"]
    """Share of the points that come from the partner; 0 for an unchanged set."""


@dataclass(frozen=True)
class CutMix:
    """PointCutMix of a batch; see the module docstring."""

    which: Literal["random", "nearest"] = "random"
    """Variant R or K."""
    probability: float = 0.5
    """Probability that a shape is mixed."""

    def __post_init__(self) -> None:
        check("which", self.which, Literal["random", "nearest"])
        check("probability", self.probability, Annotated[float, Meta(ge=0, le=1, description="from 0 to 1")])

    def __call__(
        self, points: Float[Tensor, "B n d"], generator: Generator, mask: Bool[Tensor, "B n"] | None = None
    ) -> Mixed:
        """Mix the sets of a batch; the mask, True at real points, stays valid: padding must come last."""
        check_clouds(points, mask, features=True)
        count, most, _ = points.shape
        partners = torch.randperm(count, generator=generator)
        chosen = torch.rand(count, generator=generator) < self.probability
        share = torch.rand(count, generator=generator)
        if mask is None:
            sizes = torch.full((count,), most)
            real = points.new_ones(count, most, dtype=torch.bool)
        else:
            sizes, real = mask.sum(dim=1), mask
        coming = (share * sizes).long().clamp(min=1)  # at least one, as in the released code
        chosen &= (partners != torch.arange(count)) & (sizes > 1)
        coming = torch.where(chosen, coming, 0).minimum(sizes[partners])
        own, theirs = self._orders(points, points[partners], real, real[partners], generator)
        taken = torch.arange(most) < coming[:, None]
        mixed = torch.where(taken[..., None], _in_order(points[partners], theirs), _in_order(points, own))
        return Mixed(torch.where(chosen[:, None, None], mixed, points), partners, coming / sizes.clamp(min=1))

    def _orders(
        self, own: Tensor, theirs: Tensor, real: Tensor, really: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """Index orders [B, n] in which points of one set are removed and points of the other inserted; padding last."""
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
    """The augmentations in a recipe's `augment`: those of single shapes, and the mixing of shapes (or None).

    Args:
        names: keys of `AUGMENTATIONS`, then at most one of `MIXINGS`.
        up: the axis that "turn" and "rotate-up" rotate about.

    Raises:
        PointsetError: a name is unknown, or a mixing is not last.
    """
    for count, name in enumerate(names, start=1):
        if name not in (*AUGMENTATIONS, *MIXINGS):
            known = ", ".join((*AUGMENTATIONS, *MIXINGS))
            raise PointsetError(f"augment must name any of {known}, got {quoted(name)}")
        if name in MIXINGS and count < len(names):
            raise PointsetError(
                f"augment has {names[count]!r} after {name!r}, which mixes augmented shapes: put {name!r} last"
            )
    own = [name for name in names if name not in MIXINGS]
    return augmentation_from_names(own, up), MIXINGS.get(names[-1]) if names else None
