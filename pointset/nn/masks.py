"""Masks and masked statistics: mask [B, n] is True where a row is a real element, False where it is padding.

`None` means that all rows are real; a `Packed` describes packed (concatenated) sets X [N, d]. The result for an empty
set (no True at all) is zero everywhere, never NaN.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.packing import Layout, Packed

StatisticName = Literal["max", "min", "mean", "sum", "deviation"]


def masked_max(X: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 d"]:
    """Largest value of each feature over the real rows; 0 for an empty set."""
    if isinstance(mask, Packed):
        return mask.each_set(masked_max, X)
    if mask is None:
        return _largest(X)
    return _largest(X.masked_fill(~mask.unsqueeze(-1), float("-inf"))).masked_fill(~non_empty(mask), 0.0)


def _largest(X: Float[Tensor, "B n d"]) -> Float[Tensor, "B 1 d"]:
    """Largest value of each feature; the gradient goes to one of several equal values, as in the released networks."""
    if torch.is_grad_enabled() and X.requires_grad:  # amax would share the gradient among equal values: one more pass
        return X.max(dim=1, keepdim=True).values
    return X.amax(dim=1, keepdim=True)


def masked_sum(X: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 d"]:
    """Sum of each feature over the real rows; 0 for an empty set."""
    if isinstance(mask, Packed):
        return mask.each_set(masked_sum, X)
    return zero_padded_rows(X, mask).sum(dim=1, keepdim=True)


def masked_mean(X: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 d"]:
    """Mean of each feature over the real rows; 0 for an empty set."""
    if isinstance(mask, Packed):
        return mask.each_set(masked_mean, X)
    if mask is None:
        return X.mean(dim=1, keepdim=True)
    count = mask.sum(dim=1).clamp(min=1).to(X.dtype)
    return masked_sum(X, mask) / count[:, None, None]


def masked_deviation(X: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B 1 d"]:
    """Standard deviation of each feature over the real rows (divided by n, not n - 1); about 0 for a single row.

    1e-6 is added to the variance, because the square root is not differentiable at 0.
    """
    if isinstance(mask, Packed):
        return mask.each_set(masked_deviation, X)
    return (masked_mean((X - masked_mean(X, mask)).square(), mask) + 1e-6).sqrt()


STATISTICS: dict[StatisticName, Callable[[Tensor, Layout | None], Tensor]] = {
    "max": masked_max,
    "min": lambda X, mask: -masked_max(-X, mask),
    "mean": masked_mean,
    "sum": masked_sum,
    "deviation": masked_deviation,
}
"""Statistics of each feature of a set by name, (X, mask) -> [B, 1, d]."""


def zero_padded_rows(X: Float[Tensor, "*rows d"], mask: Layout | None) -> Float[Tensor, "*rows d"]:
    """X with padded rows set to zero, whatever their values (even NaN)."""
    return X if mask is None or isinstance(mask, Packed) else X.masked_fill(~mask.unsqueeze(-1), 0.0)


def non_empty(mask: Layout, device: torch.device | None = None) -> Bool[Tensor, "B 1 1"]:
    """True for each set that has a real element. On the device of the mask; for packed sets on `device`."""
    if isinstance(mask, Packed):
        return torch.tensor(mask.lengths, device=device).ne(0)[:, None, None]
    return mask.any(dim=1)[:, None, None]


def full_mask(X: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None) -> Bool[Tensor, "B n"]:
    """The mask, or an all-True mask if it is None."""
    return torch.ones(X.shape[:2], dtype=torch.bool, device=X.device) if mask is None else mask
