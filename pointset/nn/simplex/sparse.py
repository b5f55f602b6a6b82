"""Sparsemax: the point of the simplex that is nearest to the scores."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_traced
from pointset.nn.simplex.gradients import on_simplex
from pointset.nn.simplex.rows import single_or_double

STEPS = 30
"""Maximum number of Newton steps; if a row needs more, which only artificial scores do, sorting takes over."""


def sparsemax(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex: p_i = max(z_i - tau, 0), with tau so that sum(p) = 1.

    Its Jacobian is Diag(s) - s s^T / |S|, where s is 1 on the support S and 0 elsewhere. Source: Martins and Astudillo,
    "From softmax to sparsemax" (arXiv 1602.02068).

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = single_or_double(z)
    if is_traced():
        return _closed_form(scores, mask).to(z.dtype)
    return on_simplex(scores, mask, _by_newton, torch.sign).to(z.dtype)


def _closed_form(z: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights by sorting; z is [..., n]. Differentiable."""
    if mask is not None:
        z = z.masked_fill(~mask, torch.finfo(torch.float32).min)
    shifted = z - z.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        tau = _sorted_threshold(shifted)
        support = shifted > tau
    # One more Newton step on this support: it removes the rounding error of tau.
    above = torch.where(support, shifted - tau, 0)
    step = (above.sum(dim=-1, keepdim=True) - 1) / support.sum(dim=-1, keepdim=True)
    p = torch.where(support, above - step, 0).clamp(min=0)
    return p if mask is None else p * mask


def _sorted_threshold(z: Tensor) -> Tensor:
    """The threshold [..., 1] of z [..., n]: the support is the largest k for which the k-th score has a weight > 0."""
    descending = z.sort(dim=-1, descending=True).values
    sums = descending.cumsum(dim=-1)
    ranks = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    size = (1 + ranks * descending > sums).sum(dim=-1, keepdim=True)
    return (sums.gather(-1, size - 1) - 1) / size


def _by_newton(z: Tensor) -> Tensor:
    """The weights by Newton's method; z is [n, r], keys first.

    The sum of max(z - tau, 0) is convex and piecewise linear in tau. Started to the left of the solution, Newton's
    method stays to the left of it; when two successive steps find the same support, the last step was exact. The usual
    five steps cost a fraction of a sort.
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
