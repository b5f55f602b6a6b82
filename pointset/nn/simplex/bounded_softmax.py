"""Constrained softmax: the point of the simplex below upper bounds that is nearest to the softmax."""

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
        BoundsError: a bound is negative, or the bounds of a row sum to less than 1.
    """
    return on_simplex(z, mask, _constrained_softmax, upper)


def _constrained_softmax(z: Tensor, u: Tensor) -> Tensor:
    with torch.no_grad():
        # At their bound are the keys whose ratio u / exp(z) is below the factor a. They are visited in order of this
        # ratio. At a = u_k / exp(z_k) the weights sum to the bounds of the keys up to k plus a times the exponentials
        # of the others; while this sum is below 1, the solution has a larger a. Logarithms keep it from underflow.
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
