"""Corruptions that move points at random or add points."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from pointset.data.random_numbers import normal, uniform
from pointset.evaluation.corruptions.draws import every, signs, some_of, take
from pointset.evaluation.corruptions.registry import corruption


@corruption("uniform", "noise", (0.01, 0.02, 0.03, 0.04, 0.05))
def uniform_noise(points: Float[Tensor, "B n 3"], limit: float, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move every coordinate of every point by a number uniform on [-limit, limit].

    Severities: 0.01, 0.02, 0.03, 0.04, 0.05. Source: ModelNet40-C, uniform.
    """
    return points + uniform(points.shape, -limit, limit, points, generator)


@corruption("gaussian", "noise", (0.01, 0.015, 0.02, 0.025, 0.03))
def gaussian_noise(points: Float[Tensor, "B n 3"], deviation: float, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move every coordinate of every point by a normal number, then clip coordinates to [-1, 1].

    Severities: deviations 0.01, 0.015, 0.02, 0.025, 0.03. Source: ModelNet40-C, gaussian.
    """
    return (points + deviation * normal(points.shape, points, generator)).clamp(-1.0, 1.0)


@corruption("impulse", "noise", (30, 25, 20, 15, 10))
def impulse_noise(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move some random points by 0.1 along each axis, up or down: floor(n / divisor) of them.

    Severities: divisors 30, 25, 20, 15, 10. Source: ModelNet40-C, impulse. At least one point is moved.
    """
    rows = some_of(every(points), _share(points, divisor), generator)
    kicks = 0.1 * signs((*rows.shape, 3), points, generator)
    return points.scatter_add(1, rows.unsqueeze(2).expand_as(kicks), kicks)


@corruption("upsampling", "noise", (5, 4, 3, 2, 1))
def upsampling(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Add noisy copies of floor(n / divisor) different points, each coordinate off by up to 0.05, uniformly.

    Severities: divisors 5, 4, 3, 2, 1. Source: ModelNet40-C, upsampling. At least one point is added.
    """
    copies = take(points, some_of(every(points), _share(points, divisor), generator))
    return torch.cat([points, copies + uniform(copies.shape, -0.05, 0.05, points, generator)], dim=1)


@corruption("background", "noise", (45, 40, 35, 30, 20))
def background_noise(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Add floor(n / divisor) points uniform in the cube [-1, 1]^3.

    Severities: divisors 45, 40, 35, 30, 20. Source: ModelNet40-C, background. At least one point is added.
    """
    added = uniform((len(points), _share(points, divisor), 3), -1.0, 1.0, points, generator)
    return torch.cat([points, added], dim=1)


def _share(points: Tensor, divisor: int) -> int:
    """One in `divisor` points, at least one, so that small sets change too."""
    return max(1, points.shape[1] // divisor)
