"""Sparsemax: the point of the simplex that is nearest to the scores."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_watched
from pointset.nn.simplex.gradients import on_simplex
from pointset.nn.simplex.rows import single_or_double

STEPS = 30
"""Of Newton's method, before sorting takes over; it takes artificial scores to need more."""


def sparsemax(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex: p_i = max(z_i - tau, 0), with the threshold tau for which the row sums to 1.

    Martins and Astudillo, "From softmax to sparsemax" (arXiv 1602.02068), with the
    Jacobian Diag(s) - s s^T / |S|, s being 1 on the support S and 0 elsewhere.

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = single_or_double(z)
    if is_watched():
        return _closed_form(scores, mask).to(z.dtype)
    return on_simplex(scores, mask, _by_newton, torch.sign).to(z.dtype)


def _closed_form(z: Tensor, mask: Tensor | None = None) -> Tensor:
    """By sorting, z [..., n]; differentiable."""
    if mask is not None:
        z = z.masked_fill(~mask, torch.finfo(torch.float32).min)
    shifted = z - z.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        tau = _sorted_threshold(shifted)
        support = shifted > tau
    # Once more on this support: a step from the threshold that is known already loses no digits.
    above = torch.where(support, shifted - tau, 0)
    step = (above.sum(dim=-1, keepdim=True) - 1) / support.sum(dim=-1, keepdim=True)
    p = torch.where(support, above - step, 0).clamp(min=0)
    return p if mask is None else p * mask


def _sorted_threshold(z: Tensor) -> Tensor:
    """The threshold [..., 1] of z [..., n]: the k largest are the support while the last has a weight among them."""
    descending = z.sort(dim=-1, descending=True).values
    sums = descending.cumsum(dim=-1)
    ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    size = (1 + ranks * descending > sums).sum(dim=-1, keepdim=True)
    return (sums.gather(-1, size - 1) - 1) / size


def _by_newton(z: Tensor) -> Tensor:
    """By Newton's method, z [n, r] keys first.

    The sum of max(z - tau, 0) is convex and piecewise linear in tau: from the left every step stays left, and once two
    steps see the same support, the last was exact. Some five steps cost a fraction of what sorting does.
    """
    shifted = z - z.amax(dim=0, keepdim=True)
    tau, size = shifted.mean(dim=0, keepdim=True).sub_(1 / len(z)).clamp_(min=-1), None
    for _ in range(STEPS):
        above = (shifted - tau).relu_()
        total = above.sum(dim=0, keepdim=True)
        before, size = size, above.sign_().sum(dim=0, keepdim=True)
        tau += (total - 1) / size
        if before is not None and torch.equal(before, size):
            return shifted.sub_(tau).relu_()
    return _closed_form(z.T).T
