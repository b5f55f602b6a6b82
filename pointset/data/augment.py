"""Augmentations of a batch: `augmentation(points [B, n, d], generator, mask=None, columns=Columns()) -> points`.

All random numbers come from the `torch.Generator`; features (d > 3) do not change how many are drawn. The mask [B, n]
is True at real points; padded rows come out as zeros. Distances are in the unit of the points.

Only coordinates change, not features, unless `columns` says that they have a direction. Normals are transformed with
the shape: the map x -> A x takes a normal v to A^-T v, scaled to unit length; numbers of neighbourhoods are turned.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from pointset.configuration import Checked, Neighbourhoods, NonNegative, Positive, Share
from pointset.data.axes import Axis as Axis
from pointset.data.neighbourhoods import WIDTHS, turned_numbers
from pointset.data.ragged import zero_padding
from pointset.inputs import check_clouds

Augmentation = Callable[..., Tensor]
"""A function of `points`, `generator`, `mask` and `columns`, which returns changed points; see above."""


class Columns(NamedTuple):
    """Which numbers of a point, beside its coordinates, turn with the shape."""

    normals: bool = False
    """Columns 3 to 5 are unit normals."""
    neighbourhoods: Neighbourhoods = "none"
    """The last columns are numbers of this kind; see `pointset.data.neighbourhoods`."""


NO_COLUMNS = Columns()


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

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        place = points[..., :3]
        noise = normal(place.shape, points, generator).mul_(self.sigma).clamp_(-self.clip, self.clip)
        return _rows(points, noise.add_(place))


@dataclass(frozen=True)
class Shift(Change):
    """Move each cloud by a vector uniform on [-limit, limit]^3; default of PointNet++'s released code."""

    limit: NonNegative = 0.1
    """The largest move along an axis, in the units of the points."""

    def _changed(self, points: Tensor, generator: Generator, mask: Tensor | None, columns: Columns) -> Tensor:
        offsets = uniform((len(points), 1, 3), -self.limit, self.limit, points, generator)
        return _rows(points, points[..., :3] + offsets)


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


def turned_by_one_of(
    matrices: Tensor,
    points: Tensor,
    generator: Generator,
    mask: Tensor | None = None,
    *,
    columns: Columns = NO_COLUMNS,
) -> Tensor:
    """The sets [B, n, d], each turned about the origin by one of the matrices [k, 3, 3], chosen at random."""
    chosen = torch.randint(len(matrices), (len(points),), generator=generator)
    return turned(points, matrices[chosen].to(points), columns)


def turned(points: Tensor, matrices: Tensor, columns: Columns = NO_COLUMNS) -> Tensor:
    """The sets [B, n, d], turned about the origin by rotations [B, 3, 3], with what turns with them."""
    inverse = matrices.mT
    changed = _rows(points, points[..., :3] @ inverse, points[..., 3:6] @ inverse if columns.normals else None)
    if width := WIDTHS[columns.neighbourhoods]:
        numbers = turned_numbers(points[..., -width:], matrices, columns.neighbourhoods)
        changed = torch.cat([changed[..., :-width], numbers], dim=2)
    return changed


def _rows(points: Tensor, places: Tensor, normals: Tensor | None = None) -> Tensor:
    """The points [B, n, d] with new coordinates and, if given, new normals."""
    if points.shape[2] == 3:
        return places
    changed = [places] if normals is None else [places, normals]
    return torch.cat([*changed, points[..., 3 * len(changed) :]], dim=2)


def turns_about(axis: int, angles: Tensor) -> Tensor:
    """Rotations [B, 3, 3] about one axis by angles [B], of column vectors; row vectors times them turn back."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrices = torch.eye(3, dtype=angles.dtype, device=angles.device).repeat(len(angles), 1, 1)
    matrices[:, first, first] = matrices[:, second, second] = angles.cos()
    matrices[:, second, first] = angles.sin()
    matrices[:, first, second] = -angles.sin()
    return matrices


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
