"""Constrained sparsemax: the point of the simplex below upper bounds that is nearest to the scores."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.simplex.bounds import no_more_than_1, upper_bounds
from pointset.nn.simplex.gradients import below_bounds
from pointset.nn.simplex.pardalos_kovoor import split_point
from pointset.nn.simplex.rows import is_watched, single_or_double

Solver = Literal["newton", "sort", "pardalos-kovoor"]

STEPS = 30
"""Of Newton's method, before sorting takes over."""


def constrained_sparsemax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
    solver: Solver = "newton",
) -> Float[Tensor, "*rows n"]:
    """argmin_p |p - z|^2 over the simplex with p <= u: p_i = min(max(z_i - tau, 0), u_i), the row summing to 1.

    Malaviya, Ferreira and Martins, "Sparse and constrained attention for neural machine translation" (arXiv
    1805.08241, section 3 and appendix A). With A the keys strictly between their bounds, U those held at u and m the
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
        return _closed_form(scores, u, _sorted_threshold(scores, u)).to(z.dtype)
    threshold = {"newton": _newton_threshold, "sort": _sorted_threshold, "pardalos-kovoor": split_point}[solver]

    def solve(z: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
        return _weights(z, u, threshold(z.T, u.T).T)

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


def _closed_form(z: Tensor, u: Tensor, tau: Tensor) -> Tensor:
    """The weights, given the threshold to rounding; z and u [..., n], differentiable in both."""
    above = z - tau
    held = (above >= u) & (above > 0)
    free = (above > 0) & ~held
    total = torch.where(free, above, torch.where(held, u, 0)).sum(dim=-1, keepdim=True)
    step = (total - 1) / free.sum(dim=-1, keepdim=True).clamp(min=1)
    p = torch.where(held, u, torch.where(free, above - step, 0).clamp(min=0).minimum(u))
    return no_more_than_1(p, free)


@torch.no_grad()
def _sorted_threshold(z: Tensor, u: Tensor) -> Tensor:
    """The threshold [..., 1], by walking down the sorted points where the sum of p changes its slope.

    Coming down, tau meets z_i, where a weight starts to grow, and z_i - u_i, where it stops.
    """
    n = z.shape[-1]
    points, order = torch.cat((z, z - u), dim=-1).sort(dim=-1, descending=True)
    slopes = torch.where(order < n, 1, -1).cumsum(dim=-1)
    rises = slopes[..., :-1] * (points[..., :-1] - points[..., 1:])
    sums = torch.cat((torch.zeros_like(z[..., :1]), rises.cumsum(dim=-1)), dim=-1)
    below = (sums < 1).sum(dim=-1, keepdim=True)
    last = below - 1
    tau = points.gather(-1, last) - (1 - sums.gather(-1, last)) / slopes.gather(-1, last).clamp(min=1)
    # All points below: the bounds sum to 1 but for rounding, and every weight is at its bound.
    return tau.masked_fill(below == 2 * n, -torch.inf)


@torch.no_grad()
def _newton_threshold(z: Tensor, u: Tensor) -> Tensor:
    """The same by Newton's method, kept in the interval in which the threshold is known to lie.

    The sum of p is piecewise linear in tau, but bends both ways: a step that leaves the interval is replaced by its
    middle. As tau falls, more keys grow and more are held, never fewer. So a step that ends with as many of both as it
    began with never left its piece, and was exact.
    """
    z, u = z.T, u.T.clamp(min=torch.finfo(u.dtype).tiny)  # keys first; a key that is held has grown, then
    highest, lowest = z.amax(dim=0, keepdim=True), (z - u.clamp(max=1)).amin(dim=0, keepdim=True)
    enough, room = 8 * torch.finfo(z.dtype).eps, u.sum(dim=0, keepdim=True).clamp(max=1)
    tau, work = (highest - 1).maximum(lowest), torch.empty_like(z)
    stepped, held, grown = torch.zeros_like(tau, dtype=torch.bool), torch.zeros_like(tau), torch.zeros_like(tau)
    for _ in range(STEPS):
        held_before, grown_before = held, grown
        above = z - tau
        held = torch.ge(above, u, out=work).sum(dim=0, keepdim=True)
        excess = torch.minimum(above.relu_(), u, out=work).sum(dim=0, keepdim=True) - room
        grown = above.sign_().sum(dim=0, keepdim=True)
        exact = excess.abs() <= enough
        if (exact | stepped & (held == held_before) & (grown == grown_before)).all():
            return tau.T
        lowest, highest = torch.where(excess >= 0, tau, lowest), torch.where(excess < 0, tau, highest)
        step = tau + excess / (grown - held)
        stepped = (step >= lowest) & (step <= highest)
        tau = torch.where(exact, tau, torch.where(stepped, step, (lowest + highest) / 2))
    return _sorted_threshold(z.T, u.T)
