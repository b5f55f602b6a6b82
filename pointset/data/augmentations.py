"""Augmentations of a batch: `augmentation(points [B, n, d], generator, mask=None, columns=Columns()) -> points`.

All random numbers come from the `torch.Generator`; features (d > 3) do not change how many are drawn. The mask [B, n]
is True at real points; padded rows come out as zeros. Distances are in the unit of the points. Only coordinates change,
not features, unless `columns` says that they have a direction. Normals are transformed with the shape: the map x -> A x
takes a normal v to A^-T v, scaled to unit length; local features are turned.

Imperfections are what scans have and CAD models lack: points of the background, missing parts, uneven density. The
number of points stays: lost points are replaced by random points that are left, so a network sees some points twice.
Afterwards each cloud has its earlier mean and standard deviation again, because a normalisation would have centred and
scaled it as it then is. Normals and features go with their points.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from pointset.configuration import Checked, NonNegative, Positive, PositiveShare, Share
from pointset.data.axes import Axis
from pointset.data.ragged import zero_padding
from pointset.data.turns import NO_COLUMNS, Columns, rotation_matrices, turned, turns_about, with_places
from pointset.errors import PointsetError, quoted
from pointset.inputs import check_clouds

Augmentation = Callable[..., Tensor]
"""A function of `points`, `generator`, `mask` and `columns`, which returns changed points; see above."""


THINNEST = 1 / 16
"""The smallest share of a cloud's points that `thin` leaves."""


class Change(Checked):
    """Base class of augmentations that checks the arguments and pads with zeros."""

    def __call__(
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, columns: Columns = NO_COLUMNS
    ) -> Tensor:
        """Change the sets [B, n, d]."""
        check_clouds(points, mask, features=True)
        return zero_padding(self._changed(points, generator, mask, columns), mask)

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Scale(Change):
    """Multiply each cloud by a factor uniform on [low, high]; defaults of PointNet++'s released code."""

    low: Positive = 0.8
    """The smallest factor."""
    high: Positive = 1.25
    """The largest."""
    anisotropic: bool = False
    """One factor per axis, as in the released code of Deep Sets, instead of one per cloud."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        factors = uniform((len(points), 1, 3 if self.anisotropic else 1), self.low, self.high, points, generator)
        turned = torch.nn.functional.normalize(points[..., 3:6] / factors, dim=2) if columns.normals else None
        return with_places(points, points[..., :3] * factors, turned)


@dataclass(frozen=True)
class Jitter(Change):
    """Add normal noise to every coordinate, clipped; defaults of PointNet's released code.

    The paper (arXiv 1612.00593, section 5.1) uses a standard deviation of 0.02 and does not mention clipping.
    """

    sigma: NonNegative = 0.01
    """Standard deviation, in the units of the points."""
    clip: NonNegative = 0.05
    """Largest move of a coordinate."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        place = points[..., :3]
        noise = normal(place.shape, points, generator).mul_(self.sigma).clamp_(-self.clip, self.clip)
        return with_places(points, noise.add_(place))


@dataclass(frozen=True)
class Shift(Change):
    """Move each cloud by a vector uniform on [-limit, limit]^3; default of PointNet++'s released code."""

    limit: NonNegative = 0.1
    """The largest move along an axis, in the units of the points."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        offsets = uniform((len(points), 1, 3), -self.limit, self.limit, points, generator)
        return with_places(points, points[..., :3] + offsets)


@dataclass(frozen=True)
class RotateUp(Change):
    """Turn each cloud about the up axis by an angle uniform on [-degrees, degrees]."""

    up: Axis = "z"
    """The axis that points up."""
    degrees: NonNegative = 180.0
    """The largest angle."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        limit = math.radians(self.degrees)
        angles = uniform((len(points),), -limit, limit, points, generator)
        return turned(points, turns_about("xyz".index(self.up), angles), columns)


@dataclass(frozen=True)
class RotateAny(Change):
    """Turn each cloud by a rotation uniform on SO(3): a unit quaternion of uniform direction."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        return turned(points, rotation_matrices(normal((len(points), 4), points, generator)), columns)


@dataclass(frozen=True)
class Drop(Change):
    """Random point dropout of PointNet++: replace a random share of each cloud's points by its first point.

    The released code uses a `most` of 0.875, and repeats the first point so that clouds keep their size. A network
    that averages over points therefore counts that point many times; a recipe's `points` gives sets that are
    smaller.
    """

    most: Share = 0.875
    """The share is uniform on [0, most]."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        share = uniform((len(points), 1, 1), 0.0, self.most, points, generator)
        dropped = uniform((*points.shape[:2], 1), 0.0, 1.0, points, generator) < share
        if mask is None or not points.numel():
            first = points[:, :1]
        else:
            first = points.take_along_dim(mask.to(torch.uint8).argmax(dim=1)[:, None, None], dim=1)
        return torch.where(dropped, first, points)


@dataclass(frozen=True)
class Compose:
    """Several augmentations, one after the other."""

    steps: tuple[Augmentation, ...]
    """Augmentations, in the order in which they are applied."""

    def __call__(
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, columns: Columns = NO_COLUMNS
    ) -> Tensor:
        """Apply the steps in order to [B, n, d]."""
        for step in self.steps:
            points = step(points, generator, mask, columns=columns)
        return points


def uniform(shape: Sequence[int], low: float, high: float, like: Tensor, generator: Generator) -> Tensor:
    """Numbers uniform on [low, high), in the type of given points and on their device."""
    numbers = torch.rand(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype)
    return (low + (high - low) * numbers).to(like.device)


def normal(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """Standard normal numbers, in the type of given points and on their device."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype).to(like.device)


class _Imperfection(Change):
    """Base class that restores mean and standard deviation."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        if not points.numel():
            return points
        real = torch.ones(points.shape[:2], dtype=torch.bool, device=points.device) if mask is None else mask
        return _refitted(self._imperfect(points, real, generator), points, real)

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Background(_Imperfection):
    """Replace a random share of the points by points uniform in a cube around the cloud.

    The cube reaches as far from the mean, along each axis, as the farthest point, as "background" of ModelNet40-C
    (arXiv 2201.12296). A replaced point keeps its normal and features.
    """

    most: Share = 0.1
    """The share is uniform on [0, most]."""
    probability: PositiveShare = 0.2
    """Share of the clouds that are changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        share = _share(points, self.most, self.probability, generator)
        replaced = uniform(points.shape[:2], 0.0, 1.0, points, generator) < share
        mean, _ = _moments(points, real)
        reach = zero_padding(points[..., :3] - mean, real).norm(dim=2).amax(dim=1)[:, None, None]
        scattered = mean + reach * uniform((*points.shape[:2], 3), -1.0, 1.0, points, generator)
        places = torch.where(replaced[..., None], scattered, points[..., :3])
        return torch.cat([places, points[..., 3:]], dim=2)


@dataclass(frozen=True)
class Crop(_Imperfection):
    """Cut the points beyond a random plane off, up to a share of all."""

    most: Share = 0.5
    """The share that is cut off is uniform on [0, most]."""
    probability: PositiveShare = 0.3
    """Share of the clouds that are changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        ranks = _heights(points, real, generator).masked_fill(~real, torch.inf).argsort(dim=1).argsort(dim=1)
        kept = (1 - _share(points, self.most, self.probability, generator)) * real.sum(dim=1, keepdim=True)
        left = ranks < kept.ceil()
        drawn = _drawn(points, left.to(points), generator)
        return torch.where(left[..., None], points, drawn)


@dataclass(frozen=True)
class Uneven(_Imperfection):
    """Draw the points again, with replacement, so that their density falls along a random direction.

    The logarithm of the density falls by a number uniform on [0, most] per standard deviation of the cloud.
    """

    most: NonNegative = 1.5
    """The steepest fall."""
    probability: PositiveShare = 0.2
    """Share of the clouds that are changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        steepness = _share(points, self.most, self.probability, generator)
        logits = (-steepness * _heights(points, real, generator)).masked_fill(~real, -torch.inf)
        drawn = _drawn(points, (logits - logits.amax(dim=1, keepdim=True)).exp().nan_to_num(), generator)
        return torch.where(steepness[..., None] > 0, drawn, points)


@dataclass(frozen=True)
class Thin(_Imperfection):
    """Leave a random part of the points, of a size uniform on a logarithmic scale."""

    least: PositiveShare = THINNEST
    """The smallest share that is left."""
    probability: PositiveShare = 0.5
    """Share of the clouds that are changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        left = self.least ** _share(points, 1.0, self.probability, generator) * real.sum(dim=1, keepdim=True)
        ranks = uniform(real.shape, 0.0, 1.0, points, generator).masked_fill(~real, torch.inf).argsort(1).argsort(1)
        kept = ranks < left.ceil()
        return torch.where(kept[..., None], points, _drawn(points, kept.to(points), generator))


def _share(points: Tensor, most: float, probability: float, generator: Generator) -> Tensor:
    """[B, 1]: 0, or with this probability a number uniform on [0, most]."""
    numbers = uniform((len(points), 1), probability - 1, probability, points, generator)
    return most / probability * numbers.clamp(min=0)


def _moments(points: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Means [B, 1, 3] and standard deviations, over all coordinates, [B, 1, 1]."""
    count = real.sum(dim=1).clamp(min=1)[:, None, None]
    mean = zero_padding(points[..., :3], real).sum(dim=1, keepdim=True) / count
    squares = zero_padding(points[..., :3] - mean, real).square().sum(dim=(1, 2), keepdim=True)
    return mean, (squares / (3 * count)).sqrt()


def _refitted(changed: Tensor, points: Tensor, real: Tensor) -> Tensor:
    """The changed clouds, moved and scaled to the moments of the points."""
    (mean, deviation), (new_mean, new_deviation) = _moments(points, real), _moments(changed, real)
    tiny = torch.finfo(points.dtype).tiny
    places = (changed[..., :3] - new_mean) * (deviation / new_deviation.clamp(min=tiny)) + mean
    return zero_padding(torch.cat([places, changed[..., 3:]], dim=2), real)


def _heights(points: Tensor, real: Tensor, generator: Generator) -> Tensor:
    """Coordinates [B, n] along a random direction, relative to the mean, in standard deviations."""
    direction = torch.nn.functional.normalize(normal((len(points), 3, 1), points, generator), dim=1)
    mean, deviation = _moments(points, real)
    return ((points[..., :3] - mean) @ direction / deviation.clamp(min=torch.finfo(points.dtype).tiny))[..., 0]


def _drawn(points: Tensor, weights: Tensor, generator: Generator) -> Tensor:
    """As many points [B, n, d] of each cloud, drawn with replacement by weights [B, n]."""
    sums = weights.cumsum(dim=1)
    numbers = uniform(weights.shape, 0.0, 1.0, points, generator) * sums[:, -1:]
    rows = torch.searchsorted(sums, numbers, right=True).clamp(max=max(weights.shape[1] - 1, 0))
    return points.take_along_dim(rows[..., None], dim=1)


class Mixed(NamedTuple):
    """A batch in which some shapes contain points of another."""

    points: Float[Tensor, "B n d"]
    """Sets of unchanged sizes, with features; the order of the points changes, and zero padding stays last."""
    partners: Int[Tensor, " B"]
    """For each set, the row of the batch from which it has points."""
    shares: Float[Tensor, " B"]
    """Share of the points that come from the partner; 0 for an unchanged set."""


@dataclass(frozen=True)
class CutMix(Checked):
    """PointCutMix of a batch: part of a shape's points is replaced by points of another, and the labels are mixed.

    After Zhang et al. (arXiv 2101.01461) and their released code: with probability 1/2, a share of a shape's points,
    Beta(1, 1) or uniform on (0, 1), is replaced. Two differences:

    - Every shape draws its own share; in the released code a batch has one.
    - The released code inserts the points that an optimal assignment gives to the removed ones, which takes a second
      for 1,024 points. Here variant R, which removes random points, inserts random ones, as an assignment would;
      variant K, which removes the points nearest to a random centre, inserts those of the other shape nearest to it.
    """

    which: Literal["random", "nearest"] = "random"
    """Variant R or K."""
    probability: PositiveShare = 0.5
    """Probability that a shape is mixed."""

    def __call__(
        self, points: Float[Tensor, "B n d"], generator: Generator, mask: Bool[Tensor, "B n"] | None = None
    ) -> Mixed:
        """Mix the sets of a batch; the mask, True at real points, stays valid: padding must come last."""
        count, most, _ = points.shape
        partners = torch.randperm(count, generator=generator)
        chosen = torch.rand(count, generator=generator) < self.probability
        share = torch.rand(count, generator=generator)
        real = torch.ones(count, most, dtype=torch.bool) if mask is None else mask
        sizes = real.sum(dim=1)
        coming = (share * sizes).long().clamp(min=1)  # at least one, as in the released code
        chosen &= (partners != torch.arange(count)) & (sizes > 1)
        coming = torch.where(chosen, coming, 0).minimum(sizes[partners])
        own, theirs = self._orders(points, points[partners], real, real[partners], generator)
        taken = torch.arange(most) < coming[:, None]
        inserted = points[partners].take_along_dim(theirs[..., None], dim=1)
        mixed = torch.where(taken[..., None], inserted, points.take_along_dim(own[..., None], dim=1))
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


AUGMENTATIONS: dict[str, Callable[[Axis], Augmentation]] = {
    "scale": lambda up: Scale(0.8, 1.25),
    # Released code of Deep Sets and the Set Transformer: one factor per axis, and a rotation of up to pi / 10.
    "stretch": lambda up: Scale(0.8, 1.25, anisotropic=True),
    "turn": lambda up: RotateUp(up, 18.0),
    "jitter": lambda up: Jitter(0.01, 0.05),
    "shift": lambda up: Shift(0.1),
    # DGCNN's released code (Wang et al., arXiv 1801.07829): one factor per axis and a shift, both wider.
    "stretch-wide": lambda up: Scale(2 / 3, 3 / 2, anisotropic=True),
    "shift-wide": lambda up: Shift(0.2),
    "drop": lambda up: Drop(0.875),
    "background": lambda up: Background(),
    "crop": lambda up: Crop(),
    "uneven": lambda up: Uneven(),
    "thin": lambda up: Thin(),
    "rotate-up": lambda up: RotateUp(up),
    "rotate-any": lambda up: RotateAny(),
}
SURROUNDINGS = {"drop", "background", "crop", "uneven", "thin"}
"""Augmentations after which points have other points around them."""
MIXINGS = {"cutmix-r": CutMix("random"), "cutmix-k": CutMix("nearest")}


def augmentation_from_names(names: Sequence[str], up: Axis = "z") -> Compose:
    """Compose named augmentations with their published defaults, such as ("scale", "jitter", "rotate-up").

    Args:
        names: keys of `AUGMENTATIONS`, in the order of application.
        up: the axis that "turn" and "rotate-up" rotate about.

    Returns:
        A function of points [B, n, d] and a generator.

    Raises:
        PointsetError: a name is unknown, or one of `MIXINGS`.

    Example:
        >>> augment = pointset.data.augmentation_from_names(("rotate-up", "jitter"), up="y")
        >>> augment(train.points[:2], torch.Generator().manual_seed(0)).shape
        torch.Size([2, 32, 3])
    """
    for name in names:
        if name in MIXINGS:
            raise PointsetError(f"augment: {name} mixes augmented shapes, put it last in a recipe")
        if name not in AUGMENTATIONS:
            known = ", ".join([*AUGMENTATIONS, *MIXINGS])
            raise PointsetError(f"augment must name any of {known}, got {quoted(name)}")
    return Compose(tuple(AUGMENTATIONS[name](up) for name in names))


def recipe_augmentations(names: Sequence[str], up: Axis = "z") -> tuple[Compose, CutMix | None]:
    """The augmentations in a recipe's `augment`, and the mixing of shapes, if the last name is one of `MIXINGS`."""
    mix = MIXINGS.get(names[-1]) if names else None
    return augmentation_from_names(names[:-1] if mix else names, up), mix
