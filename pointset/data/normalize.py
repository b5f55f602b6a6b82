"""Normalisations of batches of point clouds, `points [B, n, 3]`.

A mask [B, n] is True at real points. Padded rows are ignored and become zeros. Except for "none", the result does not
depend on the scale of a shape, up to rounding.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.data.axes import Axis
from pointset.data.ragged import zero_padding
from pointset.data.rotations import NO_COLUMNS, Columns, rotate
from pointset.errors import PointsetError, quoted
from pointset.inputs import check_clouds

STANDARDIZED = 1e-4
"""Tolerance of `is_standardized` per coordinate, for the rounding of float32."""


def normalize_points(points: Tensor, how: str, mask: Tensor | None = None, *, up: Axis = "z") -> Tensor:
    """Normalise each cloud of a batch.

    Args:
        points: [B, n, 3] floating.
        how: "unit-sphere", "standardize", "center-standardize", "principal-axes", "upright-axes" or "none".
        mask: bool [B, n], True at real points; None when all are real.
        up: the axis that points up, about which "upright-axes" rotates.

    Returns:
        [B, n, 3]. A cloud without extent or without real points becomes zeros (except with "none"). A cloud that is not
            finite becomes NaN.

    Raises:
        PointsetError: `how` is unknown (the message lists the known names), or `points` or `mask` has a wrong type or
            shape.

    Example:
        >>> points = pointset.data.normalize_points(torch.tensor(X[:2]), "unit-sphere")
        >>> points.norm(dim=2).amax(dim=1).round(decimals=6).tolist()
        [1.0, 1.0]
    """
    check_clouds(points, mask)
    return normalize_rows(points, how, mask, up=up)


def normalize_rows(
    rows: Tensor, how: str, mask: Tensor | None = None, columns: Columns = NO_COLUMNS, up: Axis = "z"
) -> Tensor:
    """Normalise points [B, n, d] as `normalize_points` does. The features of `columns` rotate with the set.

    "principal-axes" rotates centred clouds so that the eigenvectors of their covariance become x, y and z, in the order
    of increasing eigenvalues. "upright-axes" rotates only about the axis `up`. The longer horizontal axis becomes y, or
    z if y points up. The signs of y and z make the sum of the cubes of these coordinates positive, and the sign of x
    makes the change of axes a rotation. If an axis or its sign is nearly undetermined, a small change of a shape can
    rotate the result: see `half_turns`.
    """
    if how not in NORMALIZATIONS:
        raise PointsetError(f"normalize must be one of {', '.join(NORMALIZATIONS)}, got {quoted(how)}")
    rows = torch.cat([NORMALIZATIONS[how](rows[..., :3], mask), rows[..., 3:]], dim=2)
    return rotate(rows, _rotation_to_axes(rows[..., :3], _about(how, up)), columns) if how in ABOUT else rows


def unit_sphere(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """Move the mean to the origin and scale the farthest point to distance 1 (PointNet, arXiv 1612.00593, sec. 5.1)."""
    return _normalized(points, mask, (1,), _radius)


def standardize(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """Subtract one mean and divide by one (population) standard deviation per cloud, over all its 3n numbers.

    This follows the released code of Deep Sets (arXiv 1703.06114) and the Set Transformer (arXiv 1810.00825), without
    clipping coordinates beyond 100 times the mean absolute coordinate. One mean for all axes moves a cloud only along
    (1, 1, 1): a centred cloud stays centred, but an off-centre cloud stays off-centre in general.
    """
    return _normalized(points, mask, (1, 2), _deviation)


def center_standardize(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """Move the mean point to the origin and divide by one (population) standard deviation over all 3n numbers.

    The result equals `standardize` of the centred cloud.
    """
    return _normalized(points, mask, (1,), _deviation)


def is_standardized(points: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return bool [B], True for clouds of [B, n, 3] that `standardize` does not change, up to rounding."""
    change = (standardize(points, mask) - zero_padding(points, mask)).abs()
    return change.amax((1, 2)) <= STANDARDIZED if points.numel() else torch.ones(len(points), dtype=torch.bool)


def log_size(points: Tensor) -> Tensor:
    """Return the log of the root mean square distance of points [B, n, 3] from their mean, float64 [B].

    A cloud without extent gets the log of the smallest positive number.
    """
    exact = points.double()
    squares = (exact - exact.mean(1, keepdim=True)).square().sum(2).mean(1)
    return squares.clamp(min=torch.finfo(torch.float64).tiny).log() / 2


ABOUT = ("principal-axes", "upright-axes")
"""Normalisations that rotate clouds to principal axes."""


def _about(how: str, up: Axis) -> int | None:
    """Return the index of the axis about which a normalisation rotates; None if it rotates about any axis."""
    return None if how == "principal-axes" else "xyz".index(up)


def half_turns(how: str, up: Axis = "z") -> Float[Tensor, "k 3 3"]:
    """Return the rotations between all choices of signs of a normalisation's axes: the identity and half turns.

    Predictions averaged over these rotations do not depend on the rule for signs. Normalisations that do not rotate
    have only the identity.
    """
    diagonals = [[1.0, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]
    kept = {None: (0, 1, 2, 3), 2: (0, 1), 1: (0, 2)}[_about(how, up)] if how in ABOUT else (0,)
    return torch.stack([torch.diag(torch.tensor(diagonals[index])) for index in kept])


NORMALIZATIONS: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "unit-sphere": unit_sphere,
    "standardize": standardize,
    "center-standardize": center_standardize,
    **dict.fromkeys(ABOUT, center_standardize),
    "none": zero_padding,
}


def _normalized(
    points: Tensor, mask: Tensor | None, dims: tuple[int, ...], size_of: Callable[[Tensor, Tensor | int], Tensor]
) -> Tensor:
    """Return clouds minus their means over `dims`, divided by their `size_of` [B, 1, 1], or by 1 where that is 0."""
    if not points.numel():
        return points
    count = points.shape[1] if mask is None else mask.sum(1).clamp(min=1)[:, None, None]
    real = points if mask is None else points.masked_fill(~mask.unsqueeze(2), torch.inf)
    # Minus its minimum, a constant cloud is exactly zero. Scaled by a power of two, squares do not over- or underflow.
    moved = zero_padding(points - real.amin(dims, keepdim=True), mask)
    exponent = torch.frexp(moved.amax((1, 2), keepdim=True)).exponent.clamp(-126, 126)
    moved *= torch.ldexp(torch.ones_like(moved[:, :1, :1]), -exponent)
    centred = zero_padding(moved - moved.sum(dims, keepdim=True) / (3 * count if 2 in dims else count), mask)
    size = size_of(centred, count)
    return centred / torch.where(size == 0, 1, size)


def _rotation_to_axes(centred: Tensor, about: int | None) -> Tensor:
    """Return the rotations [B, 3, 3] of centred clouds to principal axes, x -> R x; see `normalize_rows`."""
    exact = centred.double().nan_to_num()
    axes = _axes(exact.mT @ exact, about)
    return _signed(axes, (exact @ axes).pow(3).sum(dim=1), about).to(centred.dtype).mT


def _axes(covariance: Tensor, about: int | None) -> Tensor:
    """Return new axes as columns [B, 3, 3], in order of increasing variance; the axis `about` stays."""
    plane = torch.tensor([axis for axis in range(3) if axis != about], device=covariance.device)
    axes = torch.eye(3).to(covariance).repeat(len(covariance), 1, 1)
    axes[:, plane[:, None], plane] = torch.linalg.eigh(covariance[:, plane[:, None], plane]).eigenvectors
    return axes


def _signed(axes: Tensor, cubes: Tensor, about: int | None) -> Tensor:
    """Return the axes with signs that make them a rotation, and the sums of `cubes` [B, 3] along y and z positive."""
    signs = torch.where(cubes < 0, -1.0, 1.0).to(axes)
    if about is not None:
        signs[:, about] = 1
    signs[:, 0] = 1  # x is never the axis that stays
    axes = axes * signs[:, None]
    axes[:, :, 0] *= torch.where(torch.linalg.det(axes) < 0, -1.0, 1.0).to(axes)[:, None]
    return axes


def _radius(centred: Tensor, count: Tensor | int) -> Tensor:
    return torch.linalg.vector_norm(centred, dim=2, keepdim=True).amax(1, keepdim=True)


def _deviation(centred: Tensor, count: Tensor | int) -> Tensor:
    return (centred.square().sum((1, 2), keepdim=True) / (3 * count)).sqrt()
