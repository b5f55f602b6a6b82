"""Normalisations of point clouds: pure functions on batches, `points [B, n, 3]` to the same shape.

A mask [B, n] is True at real points: padded rows neither count nor survive, they come out as zeros.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from pointset.errors import PointsetError


def normalize_points(points: Tensor, how: str, mask: Tensor | None = None) -> Tensor:
    """Normalise every cloud of a batch on its own.

    Args:
        points: [B, n, 3] floating.
        how: one of `NORMALIZATIONS`: "unit-sphere", "standardize" or "none".
        mask: bool [B, n], True at real points; None when all are.

    Returns:
        [B, n, 3]. A cloud without extent, or with no real point, gives zeros (except under "none").

    Raises:
        PointsetError: `how` is unknown; the known names are listed.
    """
    return normalization(how)(points, mask)


def normalization(how: str) -> Callable[[Tensor, Tensor | None], Tensor]:
    """The function behind a name; see `normalize_points`."""
    if how not in NORMALIZATIONS:
        raise PointsetError(f"no normalisation is called {how!r}: choose one of {', '.join(NORMALIZATIONS)}")
    return NORMALIZATIONS[how]


def unit_sphere(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mean of the points at the origin, the farthest at distance 1 (PointNet, arXiv 1612.00593, sec. 5.1)."""
    centred = _zero_padding(_away_from_zero(points, mask, dims=(1,)), mask)
    centred = _zero_padding(centred - centred.sum(1, keepdim=True) / _count(points, mask), mask)
    radius = torch.linalg.vector_norm(centred, dim=2, keepdim=True).amax(1, keepdim=True)
    return centred / torch.where(radius > 0, radius, 1)


def standardize(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """One scalar mean and one scalar (population) deviation per cloud, over all its 3n numbers.

    As in the released code of Deep Sets (arXiv 1703.06114) and the Set Transformer (arXiv 1810.00825),
    without their clipping of coordinates beyond 100 times the mean absolute one.
    """
    numbers = 3 * _count(points, mask)
    centred = _zero_padding(_away_from_zero(points, mask, dims=(1, 2)), mask)
    centred = _zero_padding(centred - centred.sum((1, 2), keepdim=True) / numbers, mask)
    deviation = (centred.square().sum((1, 2), keepdim=True) / numbers).sqrt()
    return centred / torch.where(deviation > 0, deviation, 1)


def unchanged(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """The points as they are, padded rows as zeros."""
    return _zero_padding(points, mask)


NORMALIZATIONS: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "unit-sphere": unit_sphere,
    "standardize": standardize,
    "none": unchanged,
}


def _away_from_zero(points: Tensor, mask: Tensor | None, dims: tuple[int, ...]) -> Tensor:
    """Points seen from their lowest corner: a constant cloud is exactly zero, a distant one keeps digits."""
    real = points if mask is None else points.masked_fill(~mask.unsqueeze(2), torch.inf)
    return points - real.amin(dims, keepdim=True)


def _zero_padding(points: Tensor, mask: Tensor | None) -> Tensor:
    return points if mask is None else points.masked_fill(~mask.unsqueeze(2), 0.0)


def _count(points: Tensor, mask: Tensor | None) -> Tensor | int:
    """Real points per cloud, at least 1: [B, 1, 1], or one number for all."""
    return max(points.shape[1], 1) if mask is None else mask.sum(1).clamp(min=1)[:, None, None]
