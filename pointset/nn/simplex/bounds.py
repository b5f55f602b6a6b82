"""Upper bounds of weights: their validation, and the rows that they determine completely."""

import torch
from torch import Tensor

from pointset.errors import PointsetError

SLACK = {torch.float64: 1e-9, torch.float32: 1e-4}
"""By data type, how far below 1 the sum of a row's bounds may be: the rounding error of about a thousand bounds."""


class BoundsError(PointsetError, ValueError):
    """Upper bounds that no weights on the simplex satisfy."""


def leave_no_choice(u: Tensor, dim: int = -1) -> Tensor:
    """True for the rows whose bounds sum to 1 up to rounding, or to less: every weight is then at its bound."""
    return u.detach().sum(dim=dim, keepdim=True) <= 1 + 8 * torch.finfo(u.dtype).eps


def gradient_of_shares(p: Tensor, free: Tensor) -> Tensor:
    """The weights p [..., n] unchanged; rows without a free weight get the gradient of p / sum(p) (see `gradients`)."""
    total = p.sum(dim=-1, keepdim=True)
    scale = total.detach() / total.clamp(min=torch.finfo(p.dtype).tiny)
    return torch.where(free.any(dim=-1, keepdim=True), p, p * scale)


def refuse_too_little(u: Tensor, mask: Tensor | None, slack: float) -> None:
    """Raise a BoundsError if a bound is negative, or the bounds of a row sum to less than 1 - slack."""
    sums = u.sum(dim=-1)
    if mask is not None:
        sums = sums.masked_fill(~mask.expand(u.shape).any(dim=-1), 1)
    smallest, lowest = torch.stack((sums.min(), u.min())).tolist()
    if not lowest >= 0:
        raise BoundsError(f"upper bounds of weights must be at least 0, got {lowest:.6g}: clamp them to 0")
    if not smallest >= 1 - slack:
        raise BoundsError(
            f"the upper bounds of each row's real keys must sum to at least 1, got a sum of {smallest:.6g}: "
            "raise the bounds"
        )
