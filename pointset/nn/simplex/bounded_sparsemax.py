"""Constrained sparsemax: the point of the simplex below upper bounds that is nearest to the scores."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_watched
from pointset.nn.simplex.bounds import gradient_of_shares, leave_no_choice, upper_bounds
from pointset.nn.simplex.bracketing import bracketed_threshold
from pointset.nn.simplex.breakpoints import centred, sorted_threshold
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.rows import single_or_double

Solver = Literal["newton", "sort"]

ROUNDING = 8
"""By how many times sqrt(n) units in the last place the weights of a row may miss 1 before it is solved by sorting."""


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
            all rows together. "newton" gets there in fewer operations, and leaves to "sort" the rows where it does
            not, and all where values cannot be followed.

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

    return below_bounds(scores, u, SOLVERS[solver], _free).to(z.dtype)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """1 where 0 < p < u, else 0."""
    return (u - p).sign() * p.sign()


def _by_newton(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """What `_weights` returns, with thresholds by Newton's method; rows that do not sum to 1 by sorting."""
    no_choice = leave_no_choice(u, dim=0)
    p, held = _weights(z, u, bracketed_threshold(z, u).masked_fill_(no_choice, -torch.inf))
    enough = ROUNDING * len(z) ** 0.5 * torch.finfo(z.dtype).eps
    solved = ((p.sum(dim=0, keepdim=True) - 1).abs() <= enough) | no_choice
    if not solved.all():  # nor where they are NaN
        rows = solved[0].logical_not().nonzero()[:, 0]
        p[:, rows], held[:, rows] = _by_points(z[:, rows], u[:, rows])
    return p, held


def _by_points(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """What `_weights` returns, with thresholds from the points where a weight leaves 0 or reaches its bound."""
    near = centred(z.T, u.T)
    tau = sorted_threshold(near, u.T).T
    return _weights(near.T, u, tau.masked_fill_(leave_no_choice(u, dim=0), -torch.inf))


SOLVERS: dict[Solver, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "newton": _by_newton,
    "sort": _by_points,
}
"""What makes weights of scores and bounds [n, r], keys first, and 1 where they are held."""


def _weights(z: Tensor, u: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The weights and 1 where they are held at u, else 0, given the threshold to rounding; keys first.

    The threshold is computed once more on the keys that are free: a step from the one that is known loses no digits.
    """
    above = z - tau
    p = above.clamp(min=0).minimum(u)
    free = _free(p, u).sum(dim=0, keepdim=True)
    above -= (p.sum(dim=0, keepdim=True) - 1) / free.clamp(min=1) * free.sign()
    torch.minimum(above.relu_(), u, out=p)
    held = torch.ge(above, u, out=torch.empty_like(above)).mul_(above.sign_())
    return p, held


def _closed_form(z: Tensor, u: Tensor) -> Tensor:
    """By sorting, z and u [..., n]; differentiable in both."""
    near = centred(z, u)
    above = near - sorted_threshold(near, u).masked_fill(leave_no_choice(u), -torch.inf)
    held = (above >= u) & (above > 0)
    free = (above > 0) & ~held
    total = torch.where(free, above, torch.where(held, u, 0)).sum(dim=-1, keepdim=True)
    step = (total - 1) / free.sum(dim=-1, keepdim=True).clamp(min=1)
    p = torch.where(held, u, torch.where(free, above - step, 0).clamp(min=0).minimum(u))
    return gradient_of_shares(p, free)
