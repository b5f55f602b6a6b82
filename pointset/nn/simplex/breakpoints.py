"""Thresholds of constrained sparsemax by sorting the values of tau where a weight leaves 0 or reaches its bound."""

import torch
from jaxtyping import Float
from torch import Tensor

FAR = 2.0
"""Scores are clamped to this distance from the pivot: at distance 1 or more, a key already has its bound or 0."""


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
