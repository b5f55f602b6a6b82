"""Upper bounds of weights: what they must be, and what is made of them."""

import torch
from torch import Tensor

from pointset.errors import PointsetError
from pointset.nn.fast.torch_private import is_watched

SLACK = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far below 1 the bounds of a row may sum, by their type: rounding, where a thousand bounds sum to 1."""


class BoundsError(PointsetError, ValueError):
    """Upper bounds that no weights can keep."""


def upper_bounds(upper: Tensor | float, z: Tensor, mask: Tensor | None) -> Tensor:
    """The bounds in the shape and type of z, 0 at padded keys.

    Args:
        upper: bounds of at least 0, broadcastable to z.
        z: scores [..., n], in the type that is computed in.
        mask: True at real keys, broadcastable to z; None if all are real.

    Raises:
        BoundsError: a bound is negative, or those of a row's real keys sum to less than 1. Not looked for in what is
            compiled or transformed, where such a row gets its bounds as weights.
    """
    given = torch.as_tensor(upper, device=z.device)
    u = given.to(z.dtype).expand(z.shape)
    if mask is not None:
        u = torch.where(mask, u, 0)
    if z.numel() and not is_watched():
        _refuse_too_little(u.detach(), mask, SLACK.get(given.dtype, 1e-2))
    return u


def leave_no_choice(u: Tensor, dim: int = -1) -> Tensor:
    """The rows whose bounds sum to 1, but for rounding, or to less; what they hold is all held."""
    return u.detach().sum(dim=dim, keepdim=True) <= 1 + 8 * torch.finfo(u.dtype).eps


def gradient_of_shares(p: Tensor, free: Tensor) -> Tensor:
    """The weights p [..., n] themselves, but where none is free with the gradient of p / sum(p) (see `gradients`)."""
    total = p.sum(dim=-1, keepdim=True)
    scale = total.detach() / total.clamp(min=torch.finfo(p.dtype).tiny)
    return torch.where(free.any(dim=-1, keepdim=True), p, p * scale)


def _refuse_too_little(u: Tensor, mask: Tensor | None, slack: float) -> None:
    sums = u.sum(dim=-1)
    if mask is not None:
        sums = sums.masked_fill(~mask.expand(u.shape).any(dim=-1), 1)
    smallest, lowest = torch.stack((sums.min(), u.min())).tolist()
    if not lowest >= 0:
        raise BoundsError(f"upper bounds of weights must be at least 0, and one is {lowest:.6g}: clamp them to 0")
    if not smallest >= 1 - slack:
        raise BoundsError(
            f"the weights of a row sum to 1, and the smallest sum of upper bounds over a row's real keys is "
            f"{smallest:.6g}: raise the bounds until every sum is at least 1"
        )
