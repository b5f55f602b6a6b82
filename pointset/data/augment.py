"""Augmentations of a batch: `augmentation(points [B, n, d], generator, mask=None, normals=False) -> points`.

All random numbers come from the `torch.Generator`; features (d > 3) do not change how many are drawn. The mask [B, n]
is True at real points; padded rows come out as zeros. Distances are in the unit of the points.

Only coordinates change, not features. But with `normals=True`, columns 3 to 5 are unit normals, which are transformed
with the shape: the map x -> A x takes a normal v to A^-T v, scaled to unit length.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from pointset.configuration import Checked, NonNegative, Positive, Share
from pointset.data.axes import Axis as Axis
from pointset.data.ragged import zero_padding
from pointset.inputs import check_clouds

Augmentation = Callable[..., Tensor]
"""A function of `points`, `generator`, `mask` and `normals`, which returns changed points; see above."""


class Change(Checked):
    """Base class of augmentations that checks the arguments and pads with zeros."""

    def __call__(
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, normals: bool = False
    ) -> Tensor:
        """Change [B, n, d]; with `normals`, columns 3 to 5 are normals."""
        check_clouds(points, mask, features=True)
        return zero_padding(self._changed(points, generator, mask, normals), mask)

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
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

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
        factors = uniform((len(points), 1, 3 if self.anisotropic else 1), self.low, self.high, points, generator)
        turned = torch.nn.functional.normalize(points[..., 3:6] / factors, dim=2) if normals else None
        return _rows(points, points[..., :3] * factors, turned)


@dataclass(frozen=True)
class Jitter(Change):
    """Add normal noise to every coordinate, clipped; defaults of PointNet's released code.

    The paper (arXiv 1612.00593, section 5.1) uses a standard deviation of 0.02 and does not mention clipping.
    """

    sigma: NonNegative = 0.01
    """Standard deviation, in the units of the points."""
    clip: NonNegative = 0.05
    """Largest move of a coordinate."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
        place = points[..., :3]
        noise = normal(place.shape, points, generator).mul_(self.sigma).clamp_(-self.clip, self.clip)
        return _rows(points, noise.add_(place))


@dataclass(frozen=True)
class Shift(Change):
    """Move each cloud by a vector uniform on [-limit, limit]^3; default of PointNet++'s released code."""

    limit: NonNegative = 0.1
    """The largest move along an axis, in the units of the points."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
        offsets = uniform((len(points), 1, 3), -self.limit, self.limit, points, generator)
        return _rows(points, points[..., :3] + offsets)


@dataclass(frozen=True)
class RotateUp(Change):
    """Turn each cloud about the up axis by an angle uniform on [-degrees, degrees]."""

    up: Axis = "z"
    """The axis that points up."""
    degrees: NonNegative = 180.0
    """The largest angle."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
        limit = math.radians(self.degrees)
        angles = uniform((len(points), 1), -limit, limit, points, generator)
        turned = self._turned(points[..., 3:6], angles) if normals else None
        return _rows(points, self._turned(points[..., :3], angles), turned)

    def _turned(self, vectors: Tensor, angles: Tensor) -> Tensor:
        # A rotation about y acts on (z, x) as one about z acts on (x, y): both pairs are right-handed.
        first, second, height = (0, 1, 2) if self.up == "z" else (2, 0, 1)
        a, b, cosine, sine = vectors[..., first], vectors[..., second], angles.cos(), angles.sin()
        turned = torch.empty_like(vectors)
        turned[..., first] = cosine * a - sine * b
        turned[..., second] = sine * a + cosine * b
        turned[..., height] = vectors[..., height]
        return turned


@dataclass(frozen=True)
class RotateAny(Change):
    """Turn each cloud by a rotation uniform on SO(3): a unit quaternion of uniform direction."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
        rotations = rotation_matrices(normal((len(points), 4), points, generator)).transpose(1, 2)
        turned = points[..., 3:6] @ rotations if normals else None
        return _rows(points, points[..., :3] @ rotations, turned)


@dataclass(frozen=True)
class Drop(Change):
    """Random point dropout of PointNet++: replace a random share of each cloud's points by its first point.

    The released code uses a `most` of 0.875, and repeats the first point so that clouds keep their size. A network
    that averages over points therefore counts that point many times; a recipe's `points` gives sets that are
    smaller.
    """

    most: Share = 0.875
    """The share is uniform on [0, most]."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, normals: bool) -> Tensor:
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
        self, points: Tensor, generator: Generator, mask: Tensor | None = None, *, normals: bool = False
    ) -> Tensor:
        """Apply the steps in order to [B, n, d]."""
        for step in self.steps:
            points = step(points, generator, mask, normals=normals)
        return points


def turned_by_one_of(
    matrices: Tensor, points: Tensor, generator: Generator, mask: Tensor | None = None, *, normals: bool = False
) -> Tensor:
    """The sets [B, n, d], each turned about the origin by one of the matrices [k, 3, 3], chosen at random."""
    chosen = torch.randint(len(matrices), (len(points),), generator=generator)
    return _rows(points, points[..., :3] @ matrices[chosen].to(points).mT)


def _rows(points: Tensor, places: Tensor, normals: Tensor | None = None) -> Tensor:
    """The points [B, n, d] with new coordinates and, if given, new normals."""
    if points.shape[2] == 3:
        return places
    changed = [places] if normals is None else [places, normals]
    return torch.cat([*changed, points[..., 3 * len(changed) :]], dim=2)


def rotation_matrices(quaternions: Tensor) -> Tensor:
    """Rotation matrices [B, 3, 3] of quaternions [B, 4] (w, x, y, z), which are normalised first; none may be zero."""
    w, x, y, z = torch.nn.functional.normalize(quaternions, dim=1).unbind(1)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)


def uniform(shape: Sequence[int], low: float, high: float, like: Tensor, generator: Generator) -> Tensor:
    """Numbers uniform on [low, high), in the type of given points and on their device."""
    numbers = torch.rand(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype)
    return (low + (high - low) * numbers).to(like.device)


def normal(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """Standard normal numbers, in the type of given points and on their device."""
    return torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=like.dtype).to(like.device)
