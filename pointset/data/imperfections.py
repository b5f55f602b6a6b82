"""Augmentations that give clouds of CAD models the imperfections of scans: background, missing parts, uneven density.

Clouds keep their number of points: copies of random remaining points replace the removed ones. Each cloud is then moved
and scaled to its former mean and standard deviation, because a scan is normalised with its imperfections. Points keep
their normals and features.
"""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pointset.configuration import NonNegative, PositiveShare, Share
from pointset.data.ragged import zero_padding
from pointset.data.rotations import Columns
from pointset.data.transforms import Transform, normal, uniform

THINNEST = 1 / 16
"""Minimum share of a cloud's points that `Thin` keeps."""


class _Imperfection(Transform):
    """Base class: after the change, each cloud gets its original mean and standard deviation back."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        if not points.numel():
            return points
        real = torch.ones(points.shape[:2], dtype=torch.bool, device=points.device) if mask is None else mask
        changed = self._imperfect(points, real, generator)
        (mean, deviation), (new_mean, new_deviation) = _moments(points, real), _moments(changed, real)
        tiny = torch.finfo(points.dtype).tiny
        places = (changed[..., :3] - new_mean) * (deviation / new_deviation.clamp(min=tiny)) + mean
        return zero_padding(torch.cat([places, changed[..., 3:]], dim=2), real)

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        raise NotImplementedError


@dataclass(frozen=True)
class Background(_Imperfection):
    """Replace a random share of the points by points uniform in a cube around the cloud.

    The cube is centred at the mean of the cloud, and half of its side is the distance of the farthest point from there,
    as for "background" of ModelNet40-C (arXiv 2201.12296). A replaced point keeps its normal and features.
    """

    most: Share = 0.1
    """The share is uniform on [0, most]."""
    probability: PositiveShare = 0.2
    """Probability that a cloud is changed."""

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
    """Remove the points on one side of a random plane, at most the share `most` of all points."""

    most: Share = 0.5
    """The share that is removed is uniform on [0, most]."""
    probability: PositiveShare = 0.3
    """Probability that a cloud is changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        heights = _heights(points, real, generator)
        kept = 1 - _share(points, self.most, self.probability, generator)
        return _with_share(points, kept, heights, real, generator)


@dataclass(frozen=True)
class Uneven(_Imperfection):
    """Draw the points again, with replacement, so that their density falls along a random direction.

    The logarithm of the density falls by a number uniform on [0, most] per standard deviation of the cloud.
    """

    most: NonNegative = 1.5
    """Maximum fall of the logarithm of the density per standard deviation."""
    probability: PositiveShare = 0.2
    """Probability that a cloud is changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        steepness = _share(points, self.most, self.probability, generator)
        logits = (-steepness * _heights(points, real, generator)).masked_fill(~real, -torch.inf)
        drawn = _drawn(points, (logits - logits.amax(dim=1, keepdim=True)).exp().nan_to_num(), generator)
        return torch.where(steepness[..., None] > 0, drawn, points)


@dataclass(frozen=True)
class Thin(_Imperfection):
    """Keep a random subset of the points. The size of the subset is uniform on a logarithmic scale."""

    least: PositiveShare = THINNEST
    """Minimum share of the points that is kept."""
    probability: PositiveShare = 0.5
    """Probability that a cloud is changed."""

    def _imperfect(self, points: Tensor, real: Tensor, generator: Generator) -> Tensor:
        kept = self.least ** _share(points, 1.0, self.probability, generator)
        order = uniform(real.shape, 0.0, 1.0, points, generator)
        return _with_share(points, kept, order, real, generator)


def _share(points: Tensor, most: float, probability: float, generator: Generator) -> Tensor:
    """Return shares [B, 1]: with this probability uniform on [0, most], otherwise 0."""
    numbers = uniform((len(points), 1), probability - 1, probability, points, generator)
    return most / probability * numbers.clamp(min=0)


def _moments(points: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Return the means [B, 1, 3] of clouds, and the standard deviations [B, 1, 1] of all their coordinates."""
    count = real.sum(dim=1).clamp(min=1)[:, None, None]
    mean = zero_padding(points[..., :3], real).sum(dim=1, keepdim=True) / count
    squares = zero_padding(points[..., :3] - mean, real).square().sum(dim=(1, 2), keepdim=True)
    return mean, (squares / (3 * count)).sqrt()


def _heights(points: Tensor, real: Tensor, generator: Generator) -> Tensor:
    """Return coordinates [B, n] along a random direction, relative to the mean, in standard deviations."""
    direction = torch.nn.functional.normalize(normal((len(points), 3, 1), points, generator), dim=1)
    mean, deviation = _moments(points, real)
    return ((points[..., :3] - mean) @ direction / deviation.clamp(min=torch.finfo(points.dtype).tiny))[..., 0]


def _with_share(points: Tensor, share: Tensor, order: Tensor, real: Tensor, generator: Generator) -> Tensor:
    """Keep the share [B, 1] of the points [B, n, d] with the lowest `order` [B, n], and copy them over the others."""
    ranks = order.masked_fill(~real, torch.inf).argsort(dim=1).argsort(dim=1)
    kept = ranks < (share * real.sum(dim=1, keepdim=True)).ceil()
    return torch.where(kept[..., None], points, _drawn(points, kept.to(points), generator))


def _drawn(points: Tensor, weights: Tensor, generator: Generator) -> Tensor:
    """Draw n points [B, n, d] of each cloud, with replacement and probabilities proportional to weights [B, n]."""
    sums = weights.cumsum(dim=1)
    numbers = uniform(weights.shape, 0.0, 1.0, points, generator) * sums[:, -1:]
    rows = torch.searchsorted(sums, numbers, right=True).clamp(max=max(weights.shape[1] - 1, 0))
    return points.take_along_dim(rows[..., None], dim=1)
