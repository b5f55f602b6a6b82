"""Masks and masked statistics: mask [B, n] is True where a row is a real element, False where it is padding.

`None` means that all rows are real. The statistics of an empty set (a mask without True) are 0, never NaN.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

Mask = Bool[Tensor, "B n"]
PADDING_MASKS = ("key_padding_mask", "src_key_padding_mask", "padding_mask")
"""Names of torch's masks that are True at padded rows. The masks of this package are True at real rows."""
Statistic = Literal["max", "mean"]


def masked_max(X: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
    """Return the maximum of each feature over the real rows, or 0 for an empty set."""
    if mask is None:
        return _largest(X)
    return _largest(X.masked_fill(~mask.unsqueeze(-1), float("-inf"))).masked_fill(~non_empty(mask), 0.0)


def _largest(X: Float[Tensor, "B n d"]) -> Float[Tensor, "B 1 d"]:
    """Return the maximum of each feature. Of several equal maxima, one gets the gradient, as in published code."""
    if torch.is_grad_enabled() and X.requires_grad:  # amax splits the gradient, in one more pass
        return X.max(dim=1, keepdim=True).values
    return X.amax(dim=1, keepdim=True)


def masked_sum(X: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
    """Return the sum of each feature over the real rows, or 0 for an empty set."""
    return zero_padded_rows(X, mask).sum(dim=1, keepdim=True)


def masked_mean(X: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 d"]:
    """Return the mean of each feature over the real rows, or 0 for an empty set."""
    if mask is None:
        return X.mean(dim=1, keepdim=True)
    count = mask.sum(dim=1).clamp(min=1).to(X.dtype)
    return masked_sum(X, mask) / count[:, None, None]


STATISTICS: dict[Statistic, Callable[[Tensor, Mask | None], Tensor]] = {"max": masked_max, "mean": masked_mean}
"""Functions (X, mask) -> [B, 1, d] by name, which return a statistic of each feature of a set."""


def zero_padded_rows(X: Float[Tensor, "B n d"], mask: Mask | None) -> Float[Tensor, "B n d"]:
    """Set padded rows to zero, even if they are NaN."""
    return X if mask is None else X.masked_fill(~mask.unsqueeze(-1), 0.0)


def non_empty(mask: Mask) -> Bool[Tensor, "B 1 1"]:
    """Return True for each set with a real element."""
    return mask.any(dim=1)[:, None, None]


def full_mask(X: Float[Tensor, "B n d"], mask: Mask | None) -> Mask:
    """Return the mask, or one that is True everywhere instead of None."""
    return torch.ones(X.shape[:2], dtype=torch.bool, device=X.device) if mask is None else mask
