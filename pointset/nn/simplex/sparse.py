"""Sparsemax: the point of the simplex that is nearest to the scores."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.simplex.gradients import on_simplex
from pointset.nn.simplex.rows import is_watched, real_scores

STEPS = 30
"""Of Newton's method, before sorting takes over: scores that take more are made up for the purpose."""


def sparsemax(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex: p_i = max(z_i - tau, 0), with the threshold tau for which the row sums to 1.

    Martins and Astudillo, "From softmax to sparsemax" (arXiv 1602.02068): equation 2, proposition 1, algorithm 1; the
    Jacobian Diag(s) - s s^T / |S| of section 2.5, s being 1 on the support S and 0 elsewhere.

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = real_scores(z, mask, torch.finfo(torch.float32).min)
    p = _by_sorting(scores) if is_watched() else on_simplex(scores, _by_newton, _support)
    return (p if mask is None else p * mask).to(z.dtype)


def _support(p: Tensor) -> Tensor:
    return (p > 0).to(p.dtype)


def _by_newton(z: Tensor) -> Tensor:
    """By Newton's method, z [n, r] keys first.

    The sum of max(z - tau, 0) is convex and piecewise linear in tau: from the left every step stays left, and once two
    steps see the same support, the last was exact. Some five steps, where sorting would cost sixty times a softmax.
    """
    shifted = z - z.amax(dim=0, keepdim=True)
    tau, size = shifted.new_full((1, z.shape[1]), -1.0), None
    for _ in range(STEPS):
        above = (shifted - tau).relu_()
        total = above.sum(dim=0, keepdim=True)
        smaller = above.sign_().sum(dim=0, keepdim=True)
        tau += (total - 1) / smaller
        if size is not None and torch.equal(size, smaller):
            return shifted.sub_(tau).relu_()
        size = smaller
    return _by_sorting(z.T).T


def _by_sorting(z: Tensor) -> Tensor:
    """By sorting, z [..., n]; differentiable."""
    shifted = z - z.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        descending = shifted.sort(dim=-1, descending=True).values
        sums = descending.cumsum(dim=-1)
        ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
        size = (1 + ranks * descending > sums).sum(dim=-1, keepdim=True)  # of the support
        tau = (sums.gather(-1, size - 1) - 1) / size
        support = shifted > tau
    # The closed form on this support. From the threshold that is known already, so that the sum loses no digits.
    above = torch.where(support, shifted - tau, 0)
    step = (above.sum(dim=-1, keepdim=True) - 1) / support.sum(dim=-1, keepdim=True)
    return torch.where(support, above - step, 0).clamp(min=0)
