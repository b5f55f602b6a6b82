"""Constrained softmax and sparsemax: softmax and sparsemax with an upper bound for each weight."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.nn.fast.sorting import ascending
from pointset.nn.simplex.masked import gradient_of_shares, leave_no_choice, on_simplex


def constrained_softmax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*rows n"]:
    """Return argmin_p KL(p | softmax(z)) over the simplex with p <= u.

    The solution is p_i = min(a exp(z_i), u_i), with a such that sum(p) = 1. Let U be the keys at their bound. The other
    keys share the rest, 1 - sum_U u, in proportion to exp(z). Let g = dL/dp, and let m be the mean of g over the keys
    outside U, weighted by p. Then dL/dz is p (g - m) outside U and 0 on U, and dL/du is g - m on U and 0 outside U.
    Source: Martins and Kreutzer, "Learning what's easy: fully differentiable neural easy-first taggers" (EMNLP 2017).

    Args:
        z, mask: see `sparsemax`.
        upper: bounds u >= 0, broadcastable to z, that sum to at least 1 over the real keys of each row. If they sum to
            1 up to rounding, p is u.

    Returns:
        The weights, in the shape of z.

    Raises:
        InputError: a bound is negative, or the bounds of a row sum to less than 1.

    Example:
        >>> pointset.nn.constrained_softmax(torch.tensor([9.0, 1.0, 1.0]), 0.5).tolist()
        [0.5, 0.25, 0.25]
    """
    return on_simplex(z, mask, _constrained_softmax, upper)


def _constrained_softmax(z: Tensor, u: Tensor) -> Tensor:
    with torch.no_grad():
        # A key is at its bound if its ratio u / exp(z) is below the factor a. Sort the keys by this ratio. With
        # a = u_k / exp(z_k), the sum of the weights is the bounds of the keys up to k, plus a times the exponentials of
        # the later keys. If this sum is below 1, the solution has a larger a. Logarithms prevent underflow.
        order = ascending(u.log() - z)
        ratios = (u.log() - z).gather(-1, order)
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


FAR = 2.0
"""Scores are clamped to this distance from the pivot in `centred`. From distance 1 on, a weight is 0 or at its
bound."""


def constrained_sparsemax(
    z: Float[Tensor, "*rows n"],
    upper: Float[Tensor, "..."] | float,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "*rows n"]:
    """Return argmin_p |p - z|^2 over the simplex with p <= u.

    The solution is p_i = min(max(z_i - tau, 0), u_i), with tau such that sum(p) = 1. Let A be the keys with 0 < p < u,
    and U those with p = u. Let g = dL/dp, and let m be the mean of g over A, or 0 if A is empty. Then dL/dz is g - m on
    A and 0 elsewhere, and dL/du is g - m on U and 0 elsewhere. Source: Malaviya, Ferreira and Martins, "Sparse and
    constrained attention for neural machine translation" (arXiv 1805.08241).

    Args:
        z, upper, mask: see `constrained_softmax`.

    Returns:
        The weights, in the shape of z.

    Example:
        >>> pointset.nn.constrained_sparsemax(torch.tensor([9.0, 1.0, -3.0]), 0.5).tolist()
        [0.5, 0.5, 0.0]
    """
    return on_simplex(z, mask, _constrained_sparsemax, upper)


def _constrained_sparsemax(z: Tensor, u: Tensor) -> Tensor:
    near = centred(z, u)
    above = near - sorted_threshold(near, u).masked_fill(leave_no_choice(u), -torch.inf)
    held = (above >= u) & (above > 0)
    free = (above > 0) & ~held
    total = torch.where(free, above, torch.where(held, u, 0)).sum(dim=-1, keepdim=True)
    step = (total - 1) / free.sum(dim=-1, keepdim=True).clamp(min=1)
    p = torch.where(held, u, torch.where(free, above - step, 0).clamp(min=0).minimum(u))
    return gradient_of_shares(p, free)


def centred(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows n"]:
    """Subtract each row's pivot from its scores and clamp the result to [-FAR, FAR], for more accurate weights.

    The pivot is the score at which the sum of min(u, 1), over keys in descending order of scores, reaches 1. The
    weights sum to less than 1 for tau = pivot, and to at least 1 for tau = pivot - 1, so tau is between the two. Scores
    near the pivot are exact after the subtraction. Differences beyond FAR do not affect the weights.
    """
    with torch.no_grad():
        order = ascending(-z)
        descending = z.gather(-1, order)
        most = u.clamp(max=1).gather(-1, order)
        before = most.cumsum(dim=-1) - most
        pivot = descending.gather(-1, (before < 1).sum(dim=-1, keepdim=True) - 1)
    return (z - pivot).clamp(-FAR, FAR)


@torch.no_grad()
def sorted_threshold(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows 1"]:
    """Return the threshold tau at which the weights min(max(z - tau, 0), u) of a row sum to 1.

    As tau decreases, weight i starts to grow at tau = z_i and stops at z_i - u_i. Between two successive such values of
    tau, the sum is linear, and its slope is the number of growing weights. Scores must be `centred`, because values
    that rounding makes equal add nothing to the sum. If the bounds of a row sum to less than 1, tau is minus infinity.
    """
    n = z.shape[-1]
    points = torch.cat((z, z - u.clamp(max=1)), dim=-1)
    order = ascending(-points)
    points = points.gather(-1, order)
    slopes = torch.where(order < n, 1, -1).cumsum(dim=-1)
    rises = slopes[..., :-1] * (points[..., :-1] - points[..., 1:])
    sums = torch.cat((torch.zeros_like(z[..., :1]), rises.cumsum(dim=-1)), dim=-1)
    below = (sums < 1).sum(dim=-1, keepdim=True)
    last = below - 1
    tau = points.gather(-1, last) - (1 - sums.gather(-1, last)) / slopes.gather(-1, last).clamp(min=1)
    return tau.masked_fill(below == 2 * n, -torch.inf)
