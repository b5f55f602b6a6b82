"""Constrained sparsemax: the point of the simplex below upper bounds that is nearest to the scores."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.torch_private import is_traced
from pointset.nn.simplex.bounds import gradient_of_shares, leave_no_choice, upper_bounds
from pointset.nn.simplex.bracketing import bracketed_threshold
from pointset.nn.simplex.breakpoints import centred, sorted_threshold
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.rows import single_or_double

Solver = Literal["newton", "sort"]

ROUNDING = 8
"""A row whose weights miss 1 by more than ROUNDING * sqrt(n) * eps is solved again by sorting."""


def constrained_sparsemax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
    solver: Solver = "newton",
) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex with p <= u: p_i = min(max(z_i - tau, 0), u_i), with tau so that sum(p) = 1.

    Let A be the keys with 0 < p < u and U those with p = u. With g the gradient with respect to p, and m the mean of g
    over A (0 if A is empty): dL/dz = g - m on A, dL/du = g - m on U, and both are 0 elsewhere. Source: Malaviya,
    Ferreira and Martins, "Sparse and constrained attention for neural machine translation" (arXiv 1805.08241).

    Args:
        z: scores, finite at real keys. Half precision is computed in float32.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 up to rounding, p is u.
        mask: True at real keys, broadcastable to z; None if all are real. Padded keys get exactly 0, and a row without
            a real key is all 0.
        solver: how the threshold is found. "sort" sorts the 2 n values of tau at which a weight leaves 0 or reaches its
            bound. "newton" needs fewer operations; it uses "sort" for the rows where it does not converge. Under a
            compiler, an exporter or a transform of `torch.func`, all rows are sorted.

    Raises:
        BoundsError: a bound is negative, or the bounds of a row sum to less than 1 (see `bounds`).
    """
    if z.shape[-1] == 0:
        return z.clone()
    scores = single_or_double(z)
    if mask is not None:
        scores = torch.where(mask, scores, 0)
    u = upper_bounds(upper, scores, mask)
    if is_traced():
        return _closed_form(scores, u).to(z.dtype)
    return below_bounds(scores, u, SOLVERS[solver], _free).to(z.dtype)


def _free(p: Tensor, u: Tensor) -> Tensor:
    """The gradient's rate (see `gradients`): 1 where 0 < p < u, else 0."""
    return (u - p).sign() * p.sign()


def _by_newton(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """`_weights` with thresholds found by Newton's method, and by sorting for the rows that then do not sum to 1."""
    no_choice = leave_no_choice(u, dim=0)
    p, held = _weights(z, u, bracketed_threshold(z, u).masked_fill_(no_choice, -torch.inf))
    enough = ROUNDING * len(z) ** 0.5 * torch.finfo(z.dtype).eps
    solved = ((p.sum(dim=0, keepdim=True) - 1).abs() <= enough) | no_choice
    if not solved.all():  # also where the sum is NaN
        rows = solved[0].logical_not().nonzero()[:, 0]
        p[:, rows], held[:, rows] = _by_points(z[:, rows], u[:, rows])
    return p, held


def _by_points(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """`_weights` with thresholds found by sorting."""
    near = centred(z.T, u.T)
    tau = sorted_threshold(near, u.T).T
    return _weights(near.T, u, tau.masked_fill_(leave_no_choice(u, dim=0), -torch.inf))


SOLVERS: dict[Solver, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "newton": _by_newton,
    "sort": _by_points,
}
"""Functions of scores and bounds that return what `_weights` returns; all tensors are [n, r], keys first."""


def _weights(z: Tensor, u: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """The weights, and a mask that is 1 where a weight equals its bound; all [n, r], keys first.

    The threshold tau [1, r] may have a rounding error; one more Newton step on the free keys removes it.
    """
    above = z - tau
    p = above.clamp(min=0).minimum(u)
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
