"""Constrained softmax: the point of the simplex below upper bounds that is nearest to the softmax."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_watched
from pointset.nn.simplex.bounds import gradient_of_shares, leave_no_choice, upper_bounds
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.rows import single_or_double

STEPS = 30
"""Of Newton's method, before sorting takes over."""

VANISHING = 1e-30
"""Exponentials that sum to less are too coarse to share by: logarithms take over, by sorting."""


def constrained_softmax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*rows n"]:
    """argmin_p KL(p | softmax(z)) over the simplex with p <= u: p_i = min(a exp(z_i), u_i), the row summing to 1.

    So the keys in U get their bounds, and the others share what is left, 1 - sum_U u, as in a softmax of their own.
    Martins and Kreutzer, "Learning what's easy: fully differentiable neural easy-first taggers" (EMNLP
    2017). With m the mean of a gradient g over the keys that are not in U, weighted by p, dL/dz = p (g - m)
    there and dL/du = g - m on U, both 0 elsewhere.

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 but for rounding, p is u.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.

    Raises:
        BoundsError: a bound is negative, or those of a row sum to less than 1 (see `bounds`).
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = single_or_double(z)
    if mask is not None:
        scores = torch.where(mask, scores, 0)
    u = upper_bounds(upper, scores, mask)
    if is_watched():
        return _closed_form(scores, u).to(z.dtype)
    return below_bounds(scores, u, _solve, _free).to(z.dtype)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """What is free: p where p < u, else 0."""
    return (u - p).sign() * p


def _solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    p, no_choice = _by_newton(z, u), leave_no_choice(u, dim=0)
    if no_choice.any():
        p = torch.where(no_choice, u, p)
    return p, torch.ge(p, u, out=torch.empty_like(p))


def _by_newton(z: Tensor, u: Tensor) -> Tensor:
    """By Newton's method, z and u [n, r] keys first.

    The sum of min(a exp(z), u) is concave and piecewise linear in the factor a: from the left every step stays left,
    and once two steps see as many free keys, the last was exact.
    """
    exponentials = (z - z.amax(dim=0, keepdim=True)).exp_()
    factor, free = 1 / exponentials.sum(dim=0, keepdim=True), torch.empty_like(z)
    enough, count = 8 * torch.finfo(z.dtype).eps, None
    for _ in range(STEPS):
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
    """By sorting, z and u [..., n]; differentiable in both."""
    with torch.no_grad():
        held = _held(z, u) | leave_no_choice(u)
    left = (1 - torch.where(held, u, 0).sum(dim=-1, keepdim=True)).clamp(min=0)
    shares = torch.softmax(z.masked_fill(held, torch.finfo(z.dtype).min), dim=-1)
    return gradient_of_shares(torch.where(held, u, (left * shares).minimum(u)), ~held)


def _held(z: Tensor, u: Tensor) -> Tensor:
    """Which keys get their bound: those whose ratio u / exp(z) is below the factor a, found in order of the ratio.

    At a = u_k / exp(z_k) the row sums to the bounds so far and a times the exponentials of the rest. As long as that is
    below 1, a is larger. In logarithms, so that no exponential vanishes.
    """
    ratios, order = (u.log() - z).sort(dim=-1)
    sums = u.gather(-1, order).cumsum(dim=-1)
    rest = z.gather(-1, order).flip(-1).logcumsumexp(dim=-1).flip(-1)
    rest = torch.nn.functional.pad(rest, (0, 1), value=-torch.inf)[..., 1:]  # in this order for the exporter: n > 0
    below = (1 - sums).log() > ratios + rest
    # In place of a rank, which would need another sort: a key is held if its ratio is no larger than the last one's.
    count = below.sum(dim=-1, keepdim=True)
    last = ratios.gather(-1, (count - 1).clamp(min=0))
    return (u.log() - z <= last) & (count > 0)
