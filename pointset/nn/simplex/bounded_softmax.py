"""Constrained softmax: the point of the simplex below upper bounds that is nearest to the softmax."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.simplex.gradients import gradient_of_shares, leave_no_choice, on_simplex

NEWTON_STEPS = 30
"""Maximum number of Newton steps; if a row needs more, sorting takes over."""

VANISHING = 1e-30
"""If the exponentials of the free keys sum to less than this (relative to the largest), they are too inaccurate to
divide by, and the batch is solved by sorting, which works with logarithms."""


def constrained_softmax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*rows n"]:
    """argmin_p KL(p | softmax(z)) over the simplex with p <= u: p_i = min(a exp(z_i), u_i), with a so that sum(p) = 1.

    Let U be the keys at their bound. The other keys share the rest, 1 - sum_U u, in proportion to exp(z). With g the
    gradient with respect to p, and m the mean of g over the keys outside U, weighted by p: dL/dz = p (g - m) outside
    U, dL/du = g - m on U, and both are 0 elsewhere. Source: Martins and Kreutzer, "Learning what's easy: fully
    differentiable neural easy-first taggers" (EMNLP 2017).

    Args:
        z, mask: see `sparsemax`.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 up to rounding, p is u.

    Raises:
        BoundsError: a bound is negative, or the bounds of a row sum to less than 1 (see `gradients`).
    """
    return on_simplex(z, mask, _solve, _closed_form, _free, upper)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """The gradient's rate (see `gradients`): p where p < u, else 0."""
    return (u - p).sign() * p


def _solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """The weights, and a mask that is 1 where a weight equals its bound; all [n, r], keys first."""
    p, no_choice = _by_newton(z, u), leave_no_choice(u, dim=0)
    if no_choice.any():
        p = torch.where(no_choice, u, p)
    return p, torch.ge(p, u, out=torch.empty_like(p))


def _by_newton(z: Tensor, u: Tensor) -> Tensor:
    """The weights by Newton's method; z and u are [n, r], keys first."""
    # The sum of min(a exp(z), u) is concave and piecewise linear in the factor a: steps that start to the left of the
    # solution stay there, and the last was exact if it found as many free keys as the one before.
    exponentials = (z - z.amax(dim=0, keepdim=True)).exp_()
    factor, free = 1 / exponentials.sum(dim=0, keepdim=True), torch.empty_like(z)
    enough, count = 8 * torch.finfo(z.dtype).eps, None
    for _ in range(NEWTON_STEPS):
        p = exponentials * factor
        torch.lt(p, u, out=free)
        before, count = count, free.sum(dim=0, keepdim=True)
        missing = 1 - torch.minimum(p, u).sum(dim=0, keepdim=True)
        missing *= (missing > enough) & (count > 0)
        if before is not None and torch.equal(before, count):
            return p.minimum(u)
        share = free.mul_(p).sum(dim=0, keepdim=True)
        if (share < VANISHING * factor * missing).any():
            break
        factor *= 1 + missing / share.clamp(min=torch.finfo(z.dtype).tiny)
    return _closed_form(z.T, u.T).T


def _closed_form(z: Tensor, u: Tensor) -> Tensor:
    """The weights by sorting; z and u are [..., n]. Differentiable in both."""
    with torch.no_grad():
        # At their bound are the keys whose ratio u / exp(z) is below the factor a. They are visited in order of this
        # ratio. At a = u_k / exp(z_k) the weights sum to the bounds of the keys up to k plus a times the exponentials
        # of the others; while this sum is below 1, the solution has a larger a. Logarithms keep it from underflow.
        ratios, order = (u.log() - z).sort(dim=-1)
        sums = u.gather(-1, order).cumsum(dim=-1)
        rest = z.gather(-1, order).flip(-1).logcumsumexp(dim=-1).flip(-1)
        # Pad before slicing: the exporter rejects a slice that may be empty.
        rest = torch.nn.functional.pad(rest, (0, 1), value=-torch.inf)[..., 1:]
        count = ((1 - sums).log() > ratios + rest).sum(dim=-1, keepdim=True)
        # Compare ratios instead of ranks, which would need a second sort.
        last = ratios.gather(-1, (count - 1).clamp(min=0))
        held = ((u.log() - z <= last) & (count > 0)) | leave_no_choice(u)
    left = (1 - torch.where(held, u, 0).sum(dim=-1, keepdim=True)).clamp(min=0)
    shares = torch.softmax(z.masked_fill(held, torch.finfo(z.dtype).min), dim=-1)
    return gradient_of_shares(torch.where(held, u, (left * shares).minimum(u)), ~held)
