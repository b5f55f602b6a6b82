"""Constrained sparsemax: the point of the simplex below upper bounds that is nearest to the scores."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fusing import is_watched
from pointset.nn.simplex.bounds import gradient_of_shares, leave_no_choice, upper_bounds
from pointset.nn.simplex.bracketing import bracketed_threshold
from pointset.nn.simplex.breakpoints import sorted_threshold
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.pardalos_kovoor import split_point
from pointset.nn.simplex.rows import single_or_double

Solver = Literal["newton", "sort", "pardalos-kovoor"]

THRESHOLDS: dict[Solver, Callable[[Tensor, Tensor], Tensor]] = {
    "newton": bracketed_threshold,
    "sort": lambda z, u: sorted_threshold(z.T, u.T).T,
    "pardalos-kovoor": lambda z, u: split_point(z.T, u.T).T,
}
"""How the thresholds [1, r] of scores and bounds [n, r] are found, keys first."""


def constrained_sparsemax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
    solver: Solver = "newton",
) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex with p <= u: p_i = min(max(z_i - tau, 0), u_i), the row summing to 1.

    Malaviya, Ferreira and Martins, "Sparse and constrained attention for neural machine translation" (arXiv
    1805.08241). With A the keys strictly between their bounds, U those held at u and m the
    mean of a gradient g over A (0 if A is empty), dL/dz = g - m on A and dL/du = g - m on U, both 0 elsewhere.

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 but for rounding, p is u.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
        solver: how the threshold is found. "sort" sorts the 2 n points at which a weight leaves 0 or reaches its bound,
            all rows together. "newton" gets there in fewer operations, and leaves it to "sort" where it does not, or
            where values cannot be followed. "pardalos-kovoor" halves the points by medians, row after row, and is
            there to check the others.

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

    def solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        tau = THRESHOLDS[solver](z, u)
        return _weights(z, u, tau.masked_fill(leave_no_choice(u, dim=0), -torch.inf))

    return below_bounds(scores, u, solve, _free).to(z.dtype)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """1 where 0 < p < u, else 0."""
    return (u - p).sign() * p.sign()


def _weights(z: Tensor, u: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The weights and 1 where they are held at u, else 0, given the threshold to rounding; keys first.

    The threshold is computed once more on the keys that are free: a step from the one that is known loses no digits.
    """
    above = (z - tau).relu_()
    held = torch.ge(above, u, out=torch.empty_like(above)).mul_(above.sign())
    p = above.minimum(u)
    free = _free(p, u)
    step = (p.sum(dim=0, keepdim=True) - 1) / free.sum(dim=0, keepdim=True).clamp(min=1)
    return p.sub_(free.mul_(step)).relu_().minimum(u), held


def _closed_form(z: Tensor, u: Tensor) -> Tensor:
    """By sorting, z and u [..., n]; differentiable in both."""
    tau = sorted_threshold(z, u).masked_fill(leave_no_choice(u), -torch.inf)
    above = z - tau
    held = (above >= u) & (above > 0)
    free = (above > 0) & ~held
    total = torch.where(free, above, torch.where(held, u, 0)).sum(dim=-1, keepdim=True)
    step = (total - 1) / free.sum(dim=-1, keepdim=True).clamp(min=1)
    p = torch.where(held, u, torch.where(free, above - step, 0).clamp(min=0).minimum(u))
    return gradient_of_shares(p, free)
