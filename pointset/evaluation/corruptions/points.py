"""Corruptions that move, add or remove single points, at random or in patches of nearest neighbours.

All random numbers come from the generator, on the device and in the type of the points.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from pointset.data.augment import normal, uniform

_MOST_PATCHES = 7


def uniform_noise(points: Float[Tensor, "B n 3"], limit: float, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move every coordinate of every point by a number uniform on [-limit, limit].

    Source: ModelNet40-C, uniform.
    """
    return points + uniform(points.shape, -limit, limit, points, generator)


def gaussian_noise(points: Float[Tensor, "B n 3"], deviation: float, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move every coordinate of every point by a normal number, then clip coordinates to [-1, 1].

    Source: ModelNet40-C, gaussian.
    """
    return (points + deviation * normal(points.shape, points, generator)).clamp(-1.0, 1.0)


def impulse_noise(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B n 3"]:
    """Move some random points by 0.1 along each axis, up or down: floor(n / divisor) of them.

    Source: ModelNet40-C, impulse. At least one point is moved.
    """
    rows = some_of(every(points), _share(points, divisor), generator)
    kicks = 0.1 * signs((*rows.shape, 3), points, generator)
    return points.scatter_add(1, rows.unsqueeze(2).expand_as(kicks), kicks)


def upsampling(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Add noisy copies of floor(n / divisor) different points, each coordinate off by up to 0.05, uniformly.

    Source: ModelNet40-C, upsampling. At least one point is added.
    """
    copies = take(points, some_of(every(points), _share(points, divisor), generator))
    return torch.cat([points, copies + uniform(copies.shape, -0.05, 0.05, points, generator)], dim=1)


def background_noise(points: Float[Tensor, "B n 3"], divisor: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Add floor(n / divisor) points uniform in the cube [-1, 1]^3.

    Source: ModelNet40-C, background. At least one point is added.
    """
    added = uniform((len(points), _share(points, divisor), 3), -1.0, 1.0, points, generator)
    return torch.cat([points, added], dim=1)


def _share(points: Tensor, divisor: int) -> int:
    """One in `divisor` points, at least one, so that small sets change too."""
    return max(1, points.shape[1] // divisor)


def cutout(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Cut patches out, one after the other: a random remaining point and its nearest, 30 points together.

    Source: ModelNet40-C, cutout.
    """
    sizes = portions(patches, 30, of=1024, n=points.shape[1])
    left = every(points)
    for size in sizes:
        left = left & ~nearest_patch(points, left, size, generator)
    return keep(points, left, points.shape[1] - sum(sizes))


def density(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Thin patches out: of a random remaining point and its nearest, 100 points, 75 random ones are lost.

    The quarter of a patch that stays can be part of the next. Source: ModelNet40-C, density ("local density decrease").
    """
    n = points.shape[1]
    lost = portions(patches, 75, of=1024, n=n)
    left = every(points)
    for size, out in zip(portions(patches, 100, of=1024, n=n), lost, strict=True):
        # Of few points the rounded three quarters can be more than the rounded patch.
        patch = nearest_patch(points, left, max(size, out), generator)
        left = left.scatter(1, some_of(patch, out, generator), False)
    return keep(points, left, n - sum(lost))


def density_inc(points: Float[Tensor, "B n 3"], patches: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Keep patches dense and thin out the rest: half of all points remain, m = n / 2.

    A patch is a random point and its nearest, 100 of 2,048 points; patches do not overlap. The other points, up to
    1,024, are drawn from the rest with replacement, as in the released code.

    Source: ModelNet40-C, density_inc ("local density increase"), which begins from
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


def drop_global(points: Float[Tensor, "B n 3"], share: float, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Remove a share of the points, each subset equally likely; m = floor((1 - share) n).

    Source: ModelNet-C, Drop Global; the fourth as in its released code (its
    project page has 0.675). At least one point stays.
    """
    n = points.shape[1]
    return take(points, some_of(every(points), max(1, int(n * (1 - share))), generator))


def drop_local(points: Float[Tensor, "B n 3"], dropped: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Nearest-patch dropout: take patches away, each a random point that is left and its nearest.

    Of each cloud C patches, C uniform on 1 ... 7; every one of the points to be dropped falls to one of them at
    random, which gives their sizes.

    Source: ModelNet-C, Drop Local; C as in its released code (the
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


def nearest_patch(
    points: Float[Tensor, "B n 3"], left: Bool[Tensor, "B n"], size: int | Int[Tensor, " B"], generator: Generator
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
