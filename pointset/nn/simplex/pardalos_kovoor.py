"""The split-point algorithm with medians, for thresholds of constrained sparsemax: linear time, one row after another.

Pardalos and Kovoor, "An algorithm for a singly constrained class of quadratic programs subject to upper and lower
bounds", Mathematical Programming 46 (1990) 321-328; for attention, Malaviya, Ferreira and Martins (arXiv 1805.08241).
"""

import math

import torch
from torch import Tensor


@torch.no_grad()
def split_point(z: Tensor, u: Tensor) -> Tensor:
    """The threshold [..., 1] at which the weights min(max(z - tau, 0), u) of each row [..., n] sum to 1.

    It is minus infinity where bounds that should sum to 1 sum to less by rounding.
    """
    rows = zip(z.reshape(-1, z.shape[-1]), u.reshape(-1, z.shape[-1]), strict=True)
    return z.new_tensor([_threshold(*row) for row in rows]).view(*z.shape[:-1], 1)


def _threshold(z: Tensor, u: Tensor) -> float:
    """The threshold of one row: lowest < tau <= highest close in on it until no weight changes its formula between.

    Each round splits at the median of the points that are left, and takes leave of the keys that are settled: those at
    their bound, with the sum `held`, and those between 0 and their bound, `count` of them with scores of sum `scores`.
    """
    lowest, highest = -math.inf, math.inf
    held, scores, count = 0.0, 0.0, 0
    points = torch.cat((z, z - u))
    points = points[points.isfinite()]
    while len(points):
        middle = points.median()
        total = held + scores - count * middle + (z - middle).clamp(min=0).minimum(u).sum()
        if total < 1:
            highest = middle.item()
        else:
            lowest = middle.item()
        points = points[(points > lowest) & (points < highest)]
        at_bound, at_zero, between = z - u >= highest, z <= lowest, (z - u <= lowest) & (z >= highest)
        held += u[at_bound].sum().item()
        scores += z[between & ~at_bound].sum().item()
        count += int((between & ~at_bound).sum())
        left = ~(at_bound | at_zero | between)
        z, u = z[left], u[left]
    return (held + scores - 1) / count if count else lowest
