"""Batch sets of different sizes, padded with zeros, with a mask of the real points."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pointset.errors import PointsetError


def zero_padding(points: Tensor, mask: Tensor | None) -> Tensor:
    """The points [B, n, d] with zeros in padded rows, where the mask [B, n] is False."""
    return points if mask is None else points.masked_fill(~mask.unsqueeze(2), 0.0)


def mask_of(sizes: Tensor) -> Tensor | None:
    """Mask bool [B, n] of sets of the sizes [B], n the largest, True at real points; None if all have one size."""
    if not len(sizes) or sizes.min() == sizes.max():
        return None
    return torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]


def pad_rows(rows: Tensor, sizes: Tensor, value: float = 0) -> tuple[Tensor, Tensor | None]:
    """Split concatenated rows [S, ...] into sets of the sizes [B], with sum S, and pad them with a value.

    Returns as `pad_sets`.
    """
    largest = int(sizes.max()) if len(sizes) else 0
    mask, shape = mask_of(sizes), (len(sizes), largest, *rows.shape[1:])
    if mask is None:
        return rows.reshape(shape), None
    padded = rows.new_full(shape, value)
    padded[mask] = rows
    return padded, mask


def pad_sets(sets: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    """Stack sets of different sizes, padded with zeros.

    Args:
        sets: B tensors [n_i, d] of one type, d at least 3; n_i = 0 is allowed.

    Returns:
        points [B, n, d] with n the largest n_i and zeros in the padded rows, and mask bool [B, n], True at
        real points, or None when all sets have one size.

    Raises:
        PointsetError: `sets` is empty, or a set is not [n_i, d].

    Example:
        >>> points, mask = pointset.data.pad_sets([torch.ones(2, 3), torch.ones(4, 3)])
        >>> points.shape, mask.sum(dim=1)
        (torch.Size([2, 4, 3]), tensor([2, 4]))
    """
    if not sets:
        raise PointsetError("sets must hold at least one set, got none")
    for index, points in enumerate(sets):
        width = sets[0].shape[-1] if sets[0].dim() == 2 and sets[0].shape[1] > 3 else 3
        if points.dim() != 2 or points.shape[1] != width:
            raise PointsetError(f"set {index} must be [n, {width}], got {list(points.shape)}")
    return pad_rows(torch.cat(list(sets)), torch.tensor([len(points) for points in sets], device=sets[0].device))
