"""Mix the shapes of a batch, and their labels: PointCutMix."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from pointset.configuration import Checked, PositiveShare


class Mixed(NamedTuple):
    """A batch in which some sets contain points of another set."""

    points: Float[Tensor, "B n d"]
    """The sets, with features. Their sizes stay the same, the order of points changes, and zero padding stays last."""
    partners: Int[Tensor, " B"]
    """For each set, the index in the batch of its partner, whose points are inserted."""
    shares: Float[Tensor, " B"]
    """Share of the points that come from the partner; 0 for an unchanged set."""


@dataclass(frozen=True)
class CutMix(Checked):
    """PointCutMix of a batch: points of one shape replace some points of another, and the labels are mixed.

    As in Zhang et al. (arXiv 2101.01461) and their released code, a share of a shape's points is replaced with
    probability 1/2. The share has the distribution Beta(1, 1), which is uniform on (0, 1). There are two differences:

    - Each shape has a separate share. In the released code, all shapes of a batch have the same share.
    - The released code inserts the points that an optimal assignment pairs with the removed ones. This takes a second
      for 1,024 points. Here variant R replaces random points by random points of the other shape. Variant K replaces
      the points nearest to a random centre by the points of the other shape nearest to this centre.
    """

    which: Literal["random", "nearest"] = "random"
    """Variant R ("random") or K ("nearest")."""
    probability: PositiveShare = 0.5
    """Probability that a shape is mixed."""

    def __call__(
        self, points: Float[Tensor, "B n d"], generator: Generator, mask: Bool[Tensor, "B n"] | None = None
    ) -> Mixed:
        """Mix the sets of a batch. The mask is True at real points, which must come first; it stays valid."""
        count, most, _ = points.shape
        partners = torch.randperm(count, generator=generator)
        chosen = torch.rand(count, generator=generator) < self.probability
        share = torch.rand(count, generator=generator)
        real = torch.ones(count, most, dtype=torch.bool) if mask is None else mask
        sizes = real.sum(dim=1)
        coming = (share * sizes).long().clamp(min=1)  # at least one, as in the released code
        chosen &= (partners != torch.arange(count)) & (sizes > 1)
        coming = torch.where(chosen, coming, 0).minimum(sizes[partners])
        removed, added = self._orders(points, points[partners], real, real[partners], generator)
        taken = torch.arange(most) < coming[:, None]
        inserted = points[partners].take_along_dim(added[..., None], dim=1)
        mixed = torch.where(taken[..., None], inserted, points.take_along_dim(removed[..., None], dim=1))
        return Mixed(torch.where(chosen[:, None, None], mixed, points), partners, coming / sizes.clamp(min=1))

    def _orders(
        self, points: Tensor, others: Tensor, mask: Tensor, other_mask: Tensor, generator: Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the orders [B, n] in which a set's points are removed and its partner's are inserted, padding last."""
        if self.which == "random":
            first, second = torch.rand((2, *mask.shape), generator=generator)
        else:
            places = (torch.rand((len(points), 1), generator=generator) * mask.sum(dim=1, keepdim=True)).long()
            centre = points[..., :3].gather(1, places[..., None].expand(-1, -1, 3))
            first, second = ((cloud[..., :3] - centre).square().sum(dim=2) for cloud in (points, others))
        first, second = first.masked_fill(~mask, torch.inf), second.masked_fill(~other_mask, torch.inf)
        return first.argsort(dim=1), second.argsort(dim=1)
