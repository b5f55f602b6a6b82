"""Thresholds of constrained sparsemax by sorting the points where a weight leaves 0 or reaches its bound."""

import torch
from jaxtyping import Float
from torch import Tensor

FAR = 2.0
"""From a row's pivot: keys at least 1 above it have their bound, keys at least 1 below it have 0."""


def centred(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows n"]:
    """The scores of each row less its pivot, cut to -FAR..FAR: the same weights, from numbers that lose no digits.

    In order of their scores, keys that took all they may, min(u, 1), would fill the row at the pivot. At a threshold of
    the pivot's score they are less than 1 in all, at 1 below it they are 1 or more, so the threshold lies between. A
    score near the pivot's is exact after subtraction, and large differences only need to stay large.
    """
    with torch.no_grad():
        descending, order = z.sort(dim=-1, descending=True)
        most = u.clamp(max=1).gather(-1, order)
        before = most.cumsum(dim=-1) - most
        pivot = descending.gather(-1, (before < 1).sum(dim=-1, keepdim=True) - 1)
    return (z - pivot).clamp(-FAR, FAR)


@torch.no_grad()
def sorted_threshold(z: Float[Tensor, "*rows n"], u: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows 1"]:
    """The threshold tau at which the weights min(max(z - tau, 0), u) of a row sum to 1, all rows together.

    Coming down, tau meets z_i, where a weight starts to grow, and z_i - u_i, where it stops. Between two such points
    the sum is linear, and its slope is the number of weights that have started and not stopped. Scores must be
    `centred`, as points that rounding puts in one place add nothing to the sum. The threshold is minus infinity where
    the bounds of a row sum to less than 1.
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
