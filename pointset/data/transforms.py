"""Augmentations of a batch of point sets.

An augmentation is called as `augmentation(points [B, n, d], generator, mask=None, columns=Columns())` and returns
points of the same shape. All random numbers come from the `torch.Generator`, and features (d > 3) do not change how
many are drawn. The mask [B, n] is True at real points, and padded rows come out as zeros. Distances are in the unit of
the points. Only coordinates change, unless `columns` names features with a direction: the map x -> A x changes a normal
v to A^-T v, scaled to unit length, and local features are rotated.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pointset.configuration import Checked, NonNegative, Positive, Share
from pointset.data.axes import Axis
from pointset.data.ragged import zero_padding
from pointset.data.rotations import NO_COLUMNS, Columns, rotate, rotation_matrices, rotations_about, with_coordinates
from pointset.inputs import check_clouds

Augmentation = Callable[..., Tensor]
"""A function of `points`, `generator`, `mask` and `columns` that returns changed points."""


class Transform(Checked):
    """Base class of augmentations, which checks the arguments and pads the result with zeros."""

    def __call__(
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, columns: Columns = NO_COLUMNS
    ) -> Tensor:
        """Return the augmented sets [B, n, d]."""
        check_clouds(points, mask, features=True)
        return zero_padding(self._apply(points, generator, mask, columns), mask)

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        raise NotImplementedError


class Compose:
    """Several augmentations, one after the other.

    Args:
        steps: augmentations, in the order of application.

    Example:
        >>> from pointset.data import Compose, Jitter, RotateUp, Stretch
        >>> augment = Compose([RotateUp(), Stretch(1.5), Jitter(0.01)])
        >>> augment
        Compose([RotateUp(up='z', degrees=180.0), Stretch(limit=1.5), Jitter(sigma=0.01, clip=0.05)])
        >>> augment(train.points[:2], torch.Generator().manual_seed(0)).shape
        torch.Size([2, 32, 3])
    """

    def __init__(self, steps: Sequence[Augmentation]) -> None:
        self.steps = tuple(steps)

    def __call__(
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, columns: Columns = NO_COLUMNS
    ) -> Tensor:
        """Apply the steps in order to sets [B, n, d]."""
        for step in self.steps:
            points = step(points, generator, mask, columns=columns)
        return points

    def __repr__(self) -> str:
        """Return the steps with their arguments."""
        return f"Compose([{', '.join(map(repr, self.steps))}])"


@dataclass(frozen=True)
class Scale(Transform):
    """Multiply each cloud by a factor uniform on [low, high]. The defaults are those of PointNet++'s released code."""

    low: Positive = 0.8
    """Minimum factor."""
    high: Positive = 1.25
    """Maximum factor."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        factors = uniform((len(points), 1, 1), self.low, self.high, points, generator)
        return _scaled(points, factors, columns)


@dataclass(frozen=True)
class Stretch(Transform):
    """Multiply each axis of each cloud by a separate factor, uniform on [1 / limit, limit].

    The limit is 1.25 in the released code of Deep Sets and of the Set Transformer, and 1.5 in that of DGCNN (Wang et
    al., arXiv 1801.07829).
    """

    limit: Positive = 1.25
    """Maximum factor."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        return _scaled(points, uniform((len(points), 1, 3), 1 / self.limit, self.limit, points, generator), columns)


@dataclass(frozen=True)
class Jitter(Transform):
    """Add clipped normal noise to every coordinate. The defaults are those of PointNet's released code.

    The paper (arXiv 1612.00593, section 5.1) uses a standard deviation of 0.02 and does not mention clipping.
    """

    sigma: NonNegative = 0.01
    """Standard deviation, in the units of the points."""
    clip: NonNegative = 0.05
    """Maximum shift of a coordinate."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        place = points[..., :3]
        noise = normal(place.shape, points, generator).mul_(self.sigma).clamp_(-self.clip, self.clip)
        return with_coordinates(points, noise.add_(place))


@dataclass(frozen=True)
class Shift(Transform):
    """Shift each cloud by a vector uniform on [-limit, limit]^3. The default is that of PointNet++'s released code."""

    limit: NonNegative = 0.1
    """Maximum shift along an axis, in the units of the points."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        offsets = uniform((len(points), 1, 3), -self.limit, self.limit, points, generator)
        return with_coordinates(points, points[..., :3] + offsets)


@dataclass(frozen=True)
class RotateUp(Transform):
    """Rotate each cloud about the up axis by an angle uniform on [-degrees, degrees]."""

    up: Axis = "z"
    """The axis that points up."""
    degrees: NonNegative = 180.0
    """Maximum angle."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        limit = math.radians(self.degrees)
        angles = uniform((len(points),), -limit, limit, points, generator)
        return rotate(points, rotations_about("xyz".index(self.up), angles), columns)


@dataclass(frozen=True)
class RotateAny(Transform):
    """Rotate each cloud by a rotation uniform on SO(3): a unit quaternion of uniform direction."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        return rotate(points, rotation_matrices(normal((len(points), 4), points, generator)), columns)


@dataclass(frozen=True)
class Drop(Transform):
    """Replace a random share of each cloud's points by the cloud's first point, as PointNet++ does.

    As in the released code, `most` is 0.875, and the first point is repeated so that clouds keep their size. A network
    that averages over points therefore counts this point many times. For smaller sets, use a recipe's `train_points`.
    """

    most: Share = 0.875
    """The share is uniform on [0, most]."""

    def _apply(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        share = uniform((len(points), 1, 1), 0.0, self.most, points, generator)
        dropped = uniform((*points.shape[:2], 1), 0.0, 1.0, points, generator) < share
        if mask is None or not points.numel():
            first = points[:, :1]
        else:
            first = points.take_along_dim(mask.to(torch.uint8).argmax(dim=1)[:, None, None], dim=1)
        return torch.where(dropped, first, points)


def _scaled(points: Tensor, factors: Tensor, columns: Columns) -> Tensor:
    """Return sets [B, n, d] times factors [B, 1, 1 or 3], with normals changed accordingly."""
    normals = torch.nn.functional.normalize(points[..., 3:6] / factors, dim=2) if columns.normals else None
    return with_coordinates(points, points[..., :3] * factors, normals)


def uniform(shape: Sequence[int], low: float, high: float, like: Tensor, generator: Generator) -> Tensor:
    """Return numbers uniform on [low, high), with the dtype and device of the points `like`."""
    numbers = torch.rand(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype)
    return (low + (high - low) * numbers).to(like.device)


def normal(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """Return standard normal numbers, with the dtype and device of the points `like`."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
