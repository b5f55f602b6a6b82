"""Constrained sparsemax: the point of the simplex below upper bounds that is nearest to the scores."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.simplex.gradients import gradient_of_shares, leave_no_choice, on_simplex

HALVINGS = {torch.float32: 36, torch.float64: 66}
"""Number of bisection steps by data type: then the interval is as small as the rounding error of its ends."""

ROUNDING_UNITS = 8
"""A row whose weights miss 1 by more than ROUNDING * sqrt(n) * eps is solved again by sorting."""

FAR = 2.0
"""Scores are clamped to this distance from the pivot: at distance 1 or more, a key already has its bound or 0."""


def constrained_sparsemax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex with p <= u: p_i = min(max(z_i - tau, 0), u_i), with tau so that sum(p) = 1.

    Let A be the keys with 0 < p < u and U those with p = u. With g the gradient with respect to p, and m the mean of g
    over A (0 if A is empty): dL/dz = g - m on A, dL/du = g - m on U, and both are 0 elsewhere. Source: Malaviya,
    Ferreira and Martins, "Sparse and constrained attention for neural machine translation" (arXiv 1805.08241).

    Args:
        z, mask: see `sparsemax`.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 up to rounding, p is u.

    Raises:
        BoundsError: a bound is negative, or the bounds of a row sum to less than 1 (see `gradients`).
    """
    return on_simplex(z, mask, _solve, _closed_form, _free, upper)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """The gradient's rate (see `gradients`): 1 where 0 < p < u, else 0."""
    return (u - p).sign() * p.sign()


def _solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """`_weights` with thresholds found by bisection, and by sorting for the rows that then do not sum to 1."""
    no_choice = leave_no_choice(u, dim=0)
    p, held = _weights(z, u, _bisected_threshold(z, u).masked_fill_(no_choice, -torch.inf))
    enough = ROUNDING_UNITS * len(z) ** 0.5 * torch.finfo(z.dtype).eps
    solved = ((p.sum(dim=0, keepdim=True) - 1).abs() <= enough) | no_choice
    if not solved.all():  # also where the sum is NaN
        rows = solved[0].logical_not().nonzero()[:, 0]
        near = centred(z[:, rows].T, u[:, rows].T)
        tau = sorted_threshold(near, u[:, rows].T).T.masked_fill_(no_choice[:, rows], -torch.inf)
        p[:, rows], held[:, rows] = _weights(near.T, u[:, rows], tau)
    return p, held


def _bisected_threshold(z: Float[Tensor, "n r"], u: Float[Tensor, "n r"]) -> Float[Tensor, "1 r"]:
    """The threshold tau at which the weights min(max(z - tau, 0), u) sum to 1; about a third of the time of a sort."""
    low, high = (z - u.clamp(max=1)).amin(dim=0, keepdim=True), z.amax(dim=0, keepdim=True)
    weights = torch.empty_like(z)
    for _ in range(HALVINGS[z.dtype]):
        tau = low / 2 + high / 2  # their sum could overflow
        torch.sub(z, tau, out=weights)
        is_low = torch.minimum(weights.relu_(), u, out=weights).sum(dim=0, keepdim=True) >= 1
        low, high = torch.where(is_low, tau, low), torch.where(is_low, high, tau)
    return low


def _weights(z: Tensor, u: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The weights, and a mask that is 1 where a weight equals its bound; all [n, r], keys first, tau [1, r]."""
    above = z - tau
    p = above.clamp(min=0).minimum(u)
    # One more Newton step on the free keys removes the rounding error of the threshold.
    free = _free(p, u).sum(dim=0, keepdim=True)
    above -= (p.sum(dim=0, keepdim=True) - 1) / free.clamp(min=1) * free.sign()
    torch.minimum(above.relu_(), u, out=p)
    held = torch.ge(above, u, out=torch.empty_like(above)).mul_(above.sign_())
    return p, held


def _closed_form(z: Tensor, u: Tensor) -> Tensor:
    """The weights by sorting; z and u are [..., n]. Differentiable in both."""
    near = centred(z, u)
    above = near - sorted_threshold(near, u).masked_fill(leave_no_choice(u), -torch.inf)
    held = (above >= u) & (above > 0)
    free = (above > 0) & ~held
    total = torch.where(free, above, torch.where(held, u, 0)).sum(dim=-1, keepdim=True)
    step = (total - 1) / free.sum(dim=-1, keepdim=True).clamp(min=1)
    p = torch.where(held, u, torch.where(free, above - step, 0).clamp(min=0).minimum(u))
    return gradient_of_shares(p, free)


def centred(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows n"]:
    """The scores minus the pivot of their row, clamped to [-FAR, FAR]: they give the same weights, more accurately.

    The pivot is the score at which the sum of min(u, 1), over keys in descending order, reaches 1. With tau at the
    pivot the weights sum to less than 1, and with tau 1 below it to at least 1, so the threshold lies between. Scores
    near the pivot are exact after the subtraction; differences beyond FAR do not affect the weights.
    """
    with torch.no_grad():
        descending, order = z.sort(dim=-1, descending=True)
        most = u.clamp(max=1).gather(-1, order)
        before = most.cumsum(dim=-1) - most
        pivot = descending.gather(-1, (before < 1).sum(dim=-1, keepdim=True) - 1)
    return (z - pivot).clamp(-FAR, FAR)


@torch.no_grad()
def sorted_threshold(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows 1"]:
    """The threshold tau at which the weights min(max(z - tau, 0), u) of a row sum to 1.

    As tau decreases, weight i starts to grow at tau = z_i and stops at z_i - u_i. Between two successive such points
    the sum is linear in tau, with a slope equal to the number of growing weights. Scores must be `centred`: points that
    coincide through rounding would contribute nothing to the sum. Where the bounds of a row sum to less than 1, the
    threshold is minus infinity.
    """
    n = z.shape[-1]
    points, order = torch.cat((z, z - u.clamp(max=1)), dim=-1).sort(dim=-1, descending=True)
    slopes = torch.where(order < n, 1, -1).cumsum(dim=-1)
    rises = slopes[..., :-1] * (points[..., :-1] - points[..., 1:])
    sums = torch.cat((torch.zeros_like(z[..., :1]), rises.cumsum(dim=-1)), dim=-1)
    below = (sums < 1).sum(dim=-1, keepdim=True)
    last = below - 1
    tau = points.gather(-1, last) - (1 - sums.gather(-1, last)) / slopes.gather(-1, last).clamp(min=1)
    return tau.masked_fill(below == 2 * n, -torch.inf)
