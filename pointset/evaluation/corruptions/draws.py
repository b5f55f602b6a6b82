"""Random numbers for corruptions: from a generator alone, on the device and in the type of the points."""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor


def signs(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """-1 or 1, equally likely."""
    bits = torch.randint(2, tuple(shape), generator=generator, device=generator.device)
    return (2 * bits - 1).to(like)


def whole(shape: Sequence[int], count: int, like: Tensor, generator: Generator) -> Tensor:
    """int64 numbers uniform on 0 ... count - 1."""
    return torch.randint(count, tuple(shape), generator=generator, device=generator.device).to(like.device)


def every(points: Tensor) -> Tensor:
    """True at every point of [B, n, 3]: bool [B, n]."""
    return torch.ones(points.shape[:2], dtype=torch.bool, device=points.device)


def some_of(among: Tensor, count: int, generator: Generator) -> Tensor:
    """Rows of `count` random points of each cloud, int64 [B, count], in random order and without repeats.

    Every subset of the points at True in `among`, bool [B, n], is equally likely; each cloud must have enough of them.
    """
    # The largest of independent uniform keys are a uniform subset; double precision makes ties negligible.
    keys = torch.rand(among.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return keys.to(among.device).masked_fill(~among, -1.0).topk(count, dim=1).indices


def take(points: Tensor, rows: Tensor) -> Tensor:
    """Rows [B, k] of points [B, n, 3]: [B, k, 3]."""
    return points.gather(1, rows.unsqueeze(2).expand(-1, -1, points.shape[2]))
