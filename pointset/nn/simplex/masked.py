"""Masks, data types and upper bounds for all functions from scores to weights."""

from collections.abc import Callable

import torch
from torch import Tensor

from pointset.inputs import InputError
from pointset.nn.fast.tiles import have_values

SLACK = {torch.float64: 1e-9, torch.float32: 1e-4}
"""How far the sum of a row's bounds may be below 1, by data type: the rounding error of about a thousand bounds."""


def single_or_double(z: Tensor) -> Tensor:
    """Convert scores to float32, unless they are float64."""
    return z if z.dtype == torch.float64 else z.float()


def on_simplex(
    z: Tensor, mask: Tensor | None, weigh: Callable[..., Tensor], upper: Tensor | float | None = None
) -> Tensor:
    """Return the weights p [..., n] of scores z [..., n].

    Args:
        z: scores of any floating type.
        mask: True at real keys, broadcastable to z, or None if all keys are real.
        weigh: differentiable function of scores [..., n], and of bounds if there are any, that returns weights.
        upper: upper bounds, at least 0 and broadcastable to z, or None.

    Raises:
        InputError: a bound is negative, or the bounds of a row's real keys sum to less than 1. Compiled, exported or
            transformed code does not check this. There, the weights of such a row are its bounds.
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = single_or_double(z)
    bounds = () if upper is None else (_checked_bounds(upper, scores, mask),)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(torch.float32).min if upper is None else 0.0)
    p = weigh(scores, *bounds)
    return (p if mask is None else p * mask).to(z.dtype)  # rows without a real key become 0


def leave_no_choice(u: Tensor) -> Tensor:
    """Return True for rows whose bounds sum to at most 1, up to rounding, so that every weight is at its bound."""
    return u.detach().sum(dim=-1, keepdim=True) <= 1 + 8 * torch.finfo(u.dtype).eps


def gradient_of_shares(p: Tensor, free: Tensor) -> Tensor:
    """Return the weights p [..., n]. Rows without a free weight get the gradient of p / sum(p).

    A weight is free if it is neither 0 nor at its bound. As in all other rows, adding a constant to dL/dp of such a row
    then does not change its dL/dz.
    """
    total = p.sum(dim=-1, keepdim=True)
    scale = total.detach() / total.clamp(min=torch.finfo(p.dtype).tiny)
    return torch.where(free.any(dim=-1, keepdim=True), p, p * scale)


def _checked_bounds(upper: Tensor | float, z: Tensor, mask: Tensor | None) -> Tensor:
    """Return the bounds for scores z [..., n], with 0 at padded keys; see `on_simplex`."""
    given = torch.as_tensor(upper, device=z.device)
    u = given.to(z.dtype).expand(z.shape)
    if mask is not None:
        u = torch.where(mask, u, 0)
    if not z.numel() or not have_values(z, u):
        return u
    sums = u.detach().sum(dim=-1)
    if mask is not None:
        sums = sums.masked_fill(~mask.expand(u.shape).any(dim=-1), 1)
    smallest, lowest = torch.stack((sums.min(), u.detach().min())).tolist()
    if not lowest >= 0:
        raise InputError(f"upper bounds of weights must be at least 0, got {lowest:.6g}: clamp them to 0")
    if not smallest >= 1 - SLACK.get(given.dtype, 1e-2):
        wanted = "the upper bounds of each row's real keys must sum to at least 1"
        raise InputError(f"{wanted}, got a sum of {smallest:.6g}: raise the bounds")
    return u
