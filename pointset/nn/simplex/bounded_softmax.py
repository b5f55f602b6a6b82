"""Constrained softmax: the point of the simplex below upper bounds that is nearest to the softmax."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.simplex.bounds import upper_bounds
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.rows import is_watched, real_scores

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
    Martins and Kreutzer, "Learning what's easy: fully differentiable neural easy-first taggers" (EMNLP 2017, section 3
    and appendix A). With m the mean of a gradient g over the keys that are not in U, weighted by p, dL/dz = p (g - m)
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
    scores = real_scores(z, mask, 0.0)
    u = upper_bounds(upper, scores, mask)
    if is_watched():
        return _by_sorting(scores, u).to(z.dtype)

    def solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        p = _by_newton(z, u)
        return p, p >= u

    return below_bounds(scores, u, solve, _free).to(z.dtype)


def _free(p: Tensor, u: Tensor) -> Tensor:
    return torch.where(p < u, p, 0)


def _by_newton(z: Tensor, u: Tensor) -> Tensor:
    """By Newton's method, z and u [n, r] keys first.

    The sum of min(a exp(z), u) is concave and piecewise linear in the factor a: from the left every step stays left,
    the keys that are held stay held, and once none joins them the last step was exact.
    """
    exponentials = (z - z.amax(dim=0, keepdim=True)).exp_()
    p = exponentials / exponentials.sum(dim=0, keepdim=True)
    count = z.new_zeros(1, z.shape[1])
    for _ in range(STEPS):
        held, before = p >= u, count
        count = held.sum(dim=0, keepdim=True, dtype=z.dtype)
        if torch.equal(count, before):
            return p
        left = (1 - torch.where(held, u, 0).sum(dim=0, keepdim=True)).clamp_(min=0)
        rest = torch.where(held, 0, exponentials).sum(dim=0, keepdim=True)
        if ((rest < VANISHING) & (count < len(z))).any():
            break
        p = torch.where(held, u, exponentials * (left / rest))
    return _by_sorting(z.T, u.T).T


def _by_sorting(z: Tensor, u: Tensor) -> Tensor:
    """By sorting, z [..., n]; differentiable in z and u."""
    with torch.no_grad():
        held = _held(z, u)
    left = (1 - torch.where(held, u, 0).sum(dim=-1, keepdim=True)).clamp(min=0)
    lowest = torch.finfo(z.dtype).min
    return torch.where(held, u, torch.minimum(left * torch.softmax(z.masked_fill(held, lowest), dim=-1), u))


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
