"""Corruptions that remove points, at random or in patches of nearest neighbours."""

from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from pointset.data.random_numbers import uniform
from pointset.evaluation.corruptions.draws import every, some_of, take, whole
from pointset.evaluation.corruptions.registry import corruption


@corruption("cutout", "density", (2, 3, 5, 7, 10))
def cutout(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Cut patches out, one after the other: a random remaining point and its nearest, 30 points together.

    Severities: 2, 3, 5, 7, 10 patches. Source: ModelNet40-C, cutout.
    """
    sizes = portions(patches, 30, of=1024, n=points.shape[1])
    left = every(points)
    for size in sizes:
        left = left & ~nearest_patch(points, left, size, generator)
    return keep(points, left, points.shape[1] - sum(sizes))


@corruption("density", "density", (1, 2, 3, 4, 5))
def density(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Thin patches out: of a random remaining point and its nearest, 100 points, 75 random ones are lost.

    Severities: 1, 2, 3, 4, 5 patches, one after the other; the quarter that stays can be part of the next. Source:
    ModelNet40-C, density ("local density decrease").
    """
    n = points.shape[1]
    lost = portions(patches, 75, of=1024, n=n)
    left = every(points)
    for size, out in zip(portions(patches, 100, of=1024, n=n), lost, strict=True):
        # Of few points the rounded three quarters can be more than the rounded patch.
        patch = nearest_patch(points, left, max(size, out), generator)
        left = left.scatter(1, some_of(patch, out, generator), False)
    return keep(points, left, n - sum(lost))


@corruption("density_inc", "density", (1, 2, 3, 4, 5), points_needed=2)
def density_inc(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Keep patches dense and thin out the rest: half of all points remain, m = n / 2.

    A patch is a random point and its nearest, 100 of 2,048 points; patches do not overlap. The other points, up to
    1,024, are drawn from the rest with replacement, as in the released code.

    Severities: 1, 2, 3, 4, 5 patches. Source: ModelNet40-C, density_inc ("local density increase"), which begins from
    2,048 points so that as many remain as under other corruptions.
    """
    n = points.shape[1]
    sizes = portions(patches, 100, of=2048, n=n)
    left, dense = every(points), torch.zeros_like(points[..., 0], dtype=torch.bool)
    for size in sizes:
        patch = nearest_patch(points, left, size, generator)
        left, dense = left & ~patch, dense | patch
    in_patches = sum(sizes)
    rest = keep(points, left, n - in_patches)
    rows = whole((len(points), (n + 1) // 2 - in_patches), n - in_patches, points, generator)
    return torch.cat([keep(points, dense, in_patches), take(rest, rows)], dim=1)


@corruption("drop_global", "dropout", (0.25, 0.375, 0.5, 0.625, 0.75))
def drop_global(points: Float[Tensor, "B n 3"], share: float, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Remove a share of the points, each subset equally likely; m = floor((1 - share) n).

    Severities: 0.25, 0.375, 0.5, 0.625, 0.75. Source: ModelNet-C, Drop Global; the fourth as in its released code (its
    project page has 0.675). At least one point stays.
    """
    n = points.shape[1]
    return take(points, some_of(every(points), max(1, int(n * (1 - share))), generator))


@corruption("drop_local", "dropout", (100, 200, 300, 400, 500))
def drop_local(points: Float[Tensor, "B n 3"], dropped: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Nearest-patch dropout: take patches away, each a random point that is left and its nearest.

    Of each cloud C patches, C uniform on 1 ... 7; every one of the points to be dropped falls to one of them at
    random, which gives their sizes.

    Severities: 100, 200, 300, 400, 500 points of 1,024. Source: ModelNet-C, Drop Local; C as in its released code (the
    text says 1 to 8).
    """
    n = points.shape[1]
    total = rounded(dropped, 1024, n)
    patches = 1 + whole((len(points), 1), _MOST_PATCHES, points, generator)
    fallen = (uniform((len(points), total), 0.0, 1.0, points.double(), generator) * patches).long()
    sizes = torch.nn.functional.one_hot(fallen, _MOST_PATCHES).sum(1)  # [B, 7]
    left = every(points)
    for size in sizes.unbind(1):
        left = left & ~nearest_patch(points, left, size, generator)
    return keep(points, left, n - total)


_MOST_PATCHES = 7


def nearest_patch(
    points: Float[Tensor, "B n 3"],
    left: Bool[Tensor, "B n"],
    size: int | Int[Tensor, " B"],
    generator: Generator,
) -> Bool[Tensor, "B n"]:
    """Mark a random point of those left, and its nearest among them: `size` points in all, per cloud or for all."""
    sizes = torch.as_tensor(size, device=points.device).reshape(-1, 1)
    centre = take(points, some_of(left, 1, generator))
    distances = torch.linalg.vector_norm(points - centre, dim=2).masked_fill(~left, torch.inf)
    nearest = distances.topk(max(sizes.flatten().tolist(), default=0), dim=1, largest=False, sorted=True).indices
    within = torch.arange(nearest.shape[1], device=points.device) < sizes
    return torch.zeros_like(left).scatter(1, nearest, within.expand_as(nearest))


def keep(points: Tensor, where: Tensor, count: int) -> Tensor:
    """The points at True, `count` in each cloud, in their order: [B, count, 3]."""
    return points[where].view(len(points), count, 3)


def rounded(count: int, of: int, n: int) -> int:
    """The same proportion of n points as `count` of `of`, rounded half up."""
    return (2 * count * n + of) // (2 * of)


def portions(patches: int, each: int, *, of: int, n: int) -> list[int]:
    """Sizes of patches of n points, where `of` points have patches of `each`: rounded so that their sum is right."""
    return [after - before for before, after in pairwise(rounded(i * each, of, n) for i in range(patches + 1))]
