"""Entmax-1.5: half way between softmax and sparsemax."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_traced
from pointset.nn.simplex.gradients import on_simplex
from pointset.nn.simplex.rows import single_or_double

STEPS = 30
"""Maximum number of Newton steps; if a row needs more, sorting takes over."""


def entmax15(z: Float[Tensor, "*rows n"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "*rows n"]:
    """argmax_p p.z + H(p) over the simplex, with H the Tsallis entropy of order 1.5: 4/3 sum_i (p_i - p_i^1.5).

    The solution is p_i = max(z_i / 2 - tau, 0)^2, with tau so that sum(p) = 1: the smaller root of a quadratic equation
    on the support. Its Jacobian is Diag(s) - s s^T / sum(s) with s = sqrt(p). Source: Peters, Niculae and Martins,
    "Sparse sequence-to-sequence models" (arXiv 1905.05702).

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
    return on_simplex(scores, mask, _by_newton, _root).to(z.dtype)


def _root(p: Tensor) -> Tensor:
    """The square root of p, computed so that it is differentiable at 0 and fast on a CPU."""
    return p * p.clamp(min=torch.finfo(p.dtype).tiny).rsqrt()


def _by_newton(z: Tensor) -> Tensor:
    """The weights by Newton's method; z is [n, r], keys first.

    It solves |max(z / 2 - tau, 0)| = 1 for tau. The norm is convex in tau, so steps that start to the left of the
    solution stay to the left of it, and nearly linear, so about five steps reach the solution up to rounding.
    """
    shifted = (z - z.amax(dim=0, keepdim=True)) / 2
    tau = shifted.mean(dim=0, keepdim=True).sub_(len(z) ** -0.5).clamp_(min=-1)
    enough = 8 * torch.finfo(z.dtype).eps
    for _ in range(STEPS):
        above = (shifted - tau).relu_()
        total = above.sum(dim=0, keepdim=True)
        squares = above.square_().sum(dim=0, keepdim=True)
        step = (squares - squares.sqrt()) / total
        tau += step
        if (step.abs() <= enough).all():
            return shifted.sub_(tau).relu_().square_()
    return _closed_form(z.T).T


def _closed_form(z: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights by sorting; z is [..., n]. Differentiable."""
    if mask is not None:
        z = z.masked_fill(~mask, torch.finfo(torch.float32).min)
    halves = z / 2
    shifted = halves - halves.detach().amax(dim=-1, keepdim=True)
    with torch.no_grad():
        support = shifted > _sorted_threshold(shifted)
    size = support.sum(dim=-1, keepdim=True)
    mean = torch.where(support, shifted, 0).sum(dim=-1, keepdim=True) / size
    spread = torch.where(support, shifted - mean, 0).square().sum(dim=-1, keepdim=True)
    tau = mean - ((1 - spread) / size).sqrt()
    p = torch.where(support, (shifted - tau).clamp(min=0).square(), 0)
    return p if mask is None else p * mask


def _sorted_threshold(z: Tensor) -> Tensor:
    """The threshold [..., 1] of halved scores z [..., n], whose largest is 0.

    Each size of the support gives a candidate; the last one that does not exceed the smallest score of its support is
    the threshold.
    """
    descending = z.sort(dim=-1, descending=True).values.clamp(min=-2)  # a key at or below -1 has weight 0
    size = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype, device=z.device)
    mean = descending.cumsum(dim=-1) / size
    spread = (descending.square().cumsum(dim=-1) - size * mean.square()).clamp(min=0)
    candidates = mean - ((1 - spread) / size).clamp(min=0).sqrt()
    last = (candidates <= descending).sum(dim=-1, keepdim=True) - 1
    return candidates.gather(-1, last)
