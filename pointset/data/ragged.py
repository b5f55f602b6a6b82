"""Batch sets of different sizes, padded with zeros, with a mask of the real points."""

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex

import torch
from torch import Tensor

SETS_AT_ONCE = 16
"""Number of sets per batch of `batches_of_one_size`, if all sets have the same size."""


def zero_padding(points: Tensor, mask: Tensor | None) -> Tensor:
    """Return the points [B, n, d] with zeros in padded rows, where the mask [B, n] is False."""
    return points if mask is None else points.masked_fill(~mask.unsqueeze(2), 0.0)


def mask_of(sizes: Tensor) -> Tensor | None:
    """Return the mask bool [B, n] for sets of these sizes [B], True at real points; None if all sizes are equal."""
    if not len(sizes) or sizes.min() == sizes.max():
        return None
    return torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]


def pad_rows(rows: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor | None]:
    """Split rows [S, ...] into B consecutive sets, whose sizes [B] add up to S, and pad the sets with zeros.

    The sets returned are [B, n, ...], where n is the largest size. The mask is bool [B, n], True at real points, or
    None if all sets have the same size.
    """
    mask = mask_of(sizes)
    if mask is None:
        return rows.reshape(len(sizes), int(sizes.max()) if len(sizes) else 0, *rows.shape[1:]), None
    padded = rows.new_zeros(*mask.shape, *rows.shape[1:])
    padded[mask] = rows
    return padded, mask


def pad_sets(sets: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    """Stack sets [n_i, d] of several sizes, padded with zeros.

    Args:
        sets: at least one tensor [n_i, d], all with the same d.

    Returns:
        The sets [B, n, d], where n is the largest n_i, and the mask bool [B, n], True at real points, or None if all
            n_i are equal.

    Example:
        >>> points, mask = pointset.data.pad_sets([torch.ones(5, 3), torch.ones(4, 3)])
        >>> points.shape, mask.sum(dim=1)
        (torch.Size([2, 5, 3]), tensor([5, 4]))
    """
    return pad_rows(torch.cat(list(sets)), torch.tensor([len(points) for points in sets], device=sets[0].device))


def collate(items: Sequence[tuple[Tensor, int]]) -> tuple[Tensor, Tensor | None, Tensor]:
    """Batch items of `PointSets`: the `collate_fn` for a `torch.utils.data.DataLoader`.

    Args:
        items: B pairs of points [n_i, d] and a label.

    Returns:
        Points [B, n, d], padded with zeros; the mask bool [B, n], True at real points, or None if all sets have the
            same size; and labels int64 [B].

    Example:
        >>> loader = torch.utils.data.DataLoader(train, batch_size=4, shuffle=True, collate_fn=pointset.data.collate)
        >>> points, mask, labels = next(iter(loader))
        >>> points.shape, mask, labels.shape
        (torch.Size([4, 32, 3]), None, torch.Size([4]))
    """
    return *pad_sets([points for points, _ in items]), torch.tensor([label for _, label in items])


def batches_of_one_size(points: Tensor, mask: Tensor | None) -> Iterator[Tensor]:
    """Yield batches [b, n, d] without padding, in the order of the sets. An empty set becomes a point at the origin."""
    if mask is None:
        yield from points.split(SETS_AT_ONCE)
        return
    for cloud, real in zip(points, mask, strict=True):
        yield (cloud[real] if real.any() else cloud.new_zeros(1, cloud.shape[1]))[None]


class PaddedSets(Tensor):
    """Sets of several sizes, [N, n, d], padded with zeros. An integer index returns a set without its padding.

    Results of operations are plain tensors.
    """

    sizes: list[int]

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def of(cls, points: Tensor, sizes: list[int]) -> "PaddedSets":
        """Return padded sets [N, n, d] with their sizes before padding."""
        sets = points.as_subclass(cls)
        sets.sizes = sizes
        return sets

    def __getitem__(self, index: Any) -> Tensor:
        """Return one set without padding, [size, d], for an integer. Any other index applies to the padded tensor."""
        plain = self.as_subclass(Tensor)
        is_integer = isinstance(index, SupportsIndex) and not isinstance(index, bool) and not getattr(index, "ndim", 0)
        return plain[index][: self.sizes[index]] if is_integer else plain[index]
