"""The corruptions, which move, add or remove points, remove patches, or rotate, shear or bend whole clouds.

Corruptions without a stated source are from ModelNet40-C; see `pointset.evaluation.corruptions`. All random numbers
come from the generator, on the device and in the type of the points [B, n, 3].
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from pointset.data.rotations import rotations_about
from pointset.data.transforms import normal, uniform

Points = Float[Tensor, "B n 3"]
Root = Callable[[Tensor], Tensor]
"""The square root, or 1 / square root."""
_MOST_PATCHES = 7
"""Maximum number of patches of `drop_local`."""
_GRID, _RADIUS = 5, 0.5
"""Number of control points of distortions along each axis, and radius of radial basis functions (PyGeM's default)."""


def uniform_noise(points: Points, limit: float, generator: Generator) -> Points:
    """Add a number uniform on [-limit, limit] to every coordinate of every point."""
    return points + uniform(points.shape, -limit, limit, points, generator)


def gaussian_noise(points: Points, deviation: float, generator: Generator) -> Points:
    """Add a normal number of standard deviation `deviation` to every coordinate, then clip coordinates to [-1, 1]."""
    return (points + deviation * normal(points.shape, points, generator)).clamp(-1.0, 1.0)


def impulse_noise(points: Points, divisor: int, generator: Generator) -> Points:
    """Move max(1, floor(n / divisor)) random points by 0.1 or -0.1 along each axis, at random."""
    rows = some_of(every(points), _share(points, divisor), generator)
    kicks = 0.1 * signs((*rows.shape, 3), points, generator)
    return points.scatter_add(1, rows.unsqueeze(2).expand_as(kicks), kicks)


def upsampling(points: Points, divisor: int, generator: Generator) -> Tensor:
    """Add copies of max(1, floor(n / divisor)) random points, with noise uniform on [-0.05, 0.05] per coordinate."""
    copies = take(points, some_of(every(points), _share(points, divisor), generator))
    return torch.cat([points, copies + uniform(copies.shape, -0.05, 0.05, points, generator)], dim=1)


def background_noise(points: Points, divisor: int, generator: Generator) -> Tensor:
    """Add max(1, floor(n / divisor)) points uniform in the cube [-1, 1]^3."""
    added = uniform((len(points), _share(points, divisor), 3), -1.0, 1.0, points, generator)
    return torch.cat([points, added], dim=1)


def _share(points: Tensor, divisor: int) -> int:
    """Return max(1, n // divisor), so that small sets change too."""
    return max(1, points.shape[1] // divisor)


def cutout(points: Points, patches: int, generator: Generator) -> Tensor:
    """Remove patches of 30 of 1,024 points. A patch is a random remaining point and its nearest neighbours."""
    sizes = portions(patches, 30, of=1024, n=points.shape[1])
    left = every(points)
    for size in sizes:
        left = left & ~nearest_patch(points, left, size, generator)
    return keep(points, left, points.shape[1] - sum(sizes))


def density(points: Points, patches: int, generator: Generator) -> Tensor:
    """Thin patches out: remove 75 random points of each patch of 100 points.

    A patch is a random remaining point and its nearest neighbours. Later patches can contain the other 25 points.
    Numbers are for 1,024 points. Source: ModelNet40-C, density ("local density decrease").
    """
    n = points.shape[1]
    lost = portions(patches, 75, of=1024, n=n)
    left = every(points)
    for size, out in zip(portions(patches, 100, of=1024, n=n), lost, strict=True):
        # For small n, the rounded number of removed points can exceed the rounded patch size.
        patch = nearest_patch(points, left, max(size, out), generator)
        left = left.scatter(1, some_of(patch, out, generator), False)
    return keep(points, left, n - sum(lost))


def density_inc(points: Points, patches: int, generator: Generator) -> Tensor:
    """Keep patches dense and thin out the rest: half of all points remain, m = ceil(n / 2).

    A patch is a random point and its nearest neighbours, 100 of 2,048 points. Patches do not overlap. All other
    returned points are drawn from the rest with replacement, as in the authors' code.

    Source: ModelNet40-C, density_inc ("local density increase"), which begins with 2,048 points, so that 1,024 remain.
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


def drop_global(points: Points, share: float, generator: Generator) -> Tensor:
    """Remove a random subset of this share of the points, so that m = max(1, floor((1 - share) n)) remain.

    Source: ModelNet-C, Drop Global. The share of severity 4, 0.625, is that of the authors' code. Their project page
    has 0.675.
    """
    n = points.shape[1]
    return take(points, some_of(every(points), max(1, int(n * (1 - share))), generator))


def drop_local(points: Points, dropped: int, generator: Generator) -> Tensor:
    """Remove patches (nearest-patch dropout). A patch is a random remaining point and its nearest neighbours.

    Each cloud loses C patches, with C uniform on 1 ... 7. Of 1,024 points, `dropped` are removed. Each removed point
    is assigned to a random patch. These assignments determine the sizes of the patches.

    Source: ModelNet-C, Drop Local. C is as in the authors' code (the paper has 1 to 8).
    """
    n = points.shape[1]
    total = same_share(dropped, 1024, n)
    patches = 1 + whole((len(points), 1), _MOST_PATCHES, points, generator)
    fallen = (uniform((len(points), total), 0.0, 1.0, points.double(), generator) * patches).long()
    sizes = torch.nn.functional.one_hot(fallen, _MOST_PATCHES).sum(1)  # [B, 7]
    left = every(points)
    for size in sizes.unbind(1):
        left = left & ~nearest_patch(points, left, size, generator)
    return keep(points, left, n - total)


def rotation(points: Points, degrees: float, generator: Generator) -> Points:
    """Rotate about x, then y, then z, by angles of random sign whose size is within 2.5 degrees of `degrees`."""
    angles = torch.deg2rad(_around((len(points), 3), degrees, 2.5, points, generator))
    for axis, angle in enumerate(angles.unbind(1)):
        points = points @ rotations_about(axis, angle)
    return points


def shear(points: Points, amount: float, generator: Generator) -> Points:
    """Multiply points (x, y, z), as rows, by the matrix [[1, 0, b], [d, 1, e], [f, 0, 1]]. Heights y do not change.

    b, d, e and f are independent numbers of random sign whose size is uniform within 0.05 of `amount`.
    """
    b, d, e, f = _around((4, len(points)), amount, 0.05, points, generator).unbind(0)
    one, zero = torch.ones_like(b), torch.zeros_like(b)
    rows = ((one, zero, b), (d, one, e), (f, zero, one))
    return points @ torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)


def free_form_distortion(points: Points, amount: float, generator: Generator) -> Points:
    """Bend clouds by 5 x 5 x 5 control points in [-1, 1]^3 (free-form deformation, Sederberg and Parry, SIGGRAPH 1986).

    A point p moves to p' = p + 2 sum_ijk b_i(u) b_j(v) b_k(w) mu_ijk with (u, v, w) = (p + 1) / 2 and the Bernstein
    polynomials b_i(t) = binomial(4, i) t^i (1 - t)^(4 - i). Every component of mu is uniform on [-amount, amount]. Its
    unit is the edge of the cube [-1, 1]^3, hence the factor 2. Points outside the cube do not move.

    Source: ModelNet40-C, distortion, which calls PyGeM's FFD (`pygem/ffd.py`).
    """
    mu = uniform((len(points), _GRID**3, 3), -amount, amount, points, generator)
    b = _bernstein((points + 1) / 2)  # [B, n, 3 axes, 5]
    of_lattice = torch.einsum("bni,bnj,bnk->bnijk", *b.unbind(2)).flatten(2)
    inside = (points.abs() <= 1).all(dim=2, keepdim=True)
    return torch.where(inside, points + 2 * of_lattice @ mu, points)


def radial_distortion(points: Points, distance: float, generator: Generator, root: Root) -> Points:
    """Move points with 5 x 5 x 5 control points c_i on a regular grid in [-1, 1]^3, each of which moves by `distance`.

    Source: ModelNet40-C, `distortion_rbf` with `root` = sqrt (multi-quadratic) and `distortion_rbf_inv` with 1 / sqrt.

    A point p moves to M(p) = p + q(p) + sum_i w_i phi(|p - c_i|), phi(r) = root(r^2 + radius^2), with q affine, such
    that M(c_i) = c_i + distance (cos a_i sin g_i, sin a_i sin g_i, cos g_i), sum_i w_i = 0 and sum_i w_i c_i = 0. The
    angles a_i and g_i are independent and uniform on [-pi, pi]. PyGeM (`pygem/rbf.py`) interpolates the positions of
    the control points instead of their displacements, with the same result, because q reproduces the identity.
    """
    exact = points.double()  # the system's condition number is 3e4
    line = torch.linspace(-1, 1, _GRID, dtype=exact.dtype, device=exact.device)
    controls = torch.cartesian_prod(line, line, line)  # [125, 3]
    a, g = uniform((2, len(points), len(controls)), -math.pi, math.pi, exact, generator).unbind(0)
    moves = distance * torch.stack([a.cos() * g.sin(), a.sin() * g.sin(), g.cos()], dim=2)  # [B, 125, 3]
    affine = torch.nn.functional.pad(controls, (1, 0), value=1.0)  # [125, 4]
    corner = torch.zeros(4, 4, dtype=exact.dtype, device=exact.device)
    system = torch.cat(
        [torch.cat([_phi(controls, controls, root), affine], dim=1), torch.cat([affine.T, corner], dim=1)]
    )
    # The moves of all clouds are concatenated, so that the system is factorised once: [129, 3 B].
    targets = moves.transpose(0, 1).flatten(1)
    targets = torch.cat([targets, targets.new_zeros(len(corner), targets.shape[1])])
    weights = torch.linalg.solve(system, targets).unflatten(1, (-1, 3)).transpose(0, 1)  # [B, 129, 3]
    terms = torch.cat([_phi(exact, controls, root), torch.ones_like(exact[..., :1]), exact], dim=2)
    return (exact + terms @ weights).to(points)


def _phi(points: Tensor, controls: Tensor, root: Root) -> Tensor:
    """Return root(|p - c|^2 + radius^2) for points [..., n, 3] and controls [c, 3]: [..., n, c]."""
    return root(torch.cdist(points, controls).square() + _RADIUS**2)


def _bernstein(t: Tensor) -> Tensor:
    """Return the Bernstein polynomials of degree 4 at t [...]: [..., 5]."""
    i = torch.arange(_GRID, device=t.device)
    binomials = t.new_tensor([math.comb(_GRID - 1, k) for k in range(_GRID)])
    t = t.unsqueeze(-1)
    return binomials * t**i * (1 - t) ** (_GRID - 1 - i)


def _around(shape: tuple[int, ...], value: float, within: float, like: Tensor, generator: Generator) -> Tensor:
    """Draw numbers of random sign whose absolute value is uniform on [value - within, value + within]."""
    sizes = uniform(shape, value - within, value + within, like, generator)
    return sizes * signs(shape, like, generator)


def nearest_patch(points: Points, left: Tensor, size: int | Tensor, generator: Generator) -> Tensor:
    """Mark `size` points in `left`: a random point and its nearest neighbours. `size` may differ between clouds."""
    sizes = torch.as_tensor(size, device=points.device).reshape(-1, 1)
    centre = take(points, some_of(left, 1, generator))
    distances = torch.linalg.vector_norm(points - centre, dim=2).masked_fill(~left, torch.inf)
    nearest = distances.topk(max(sizes.flatten().tolist(), default=0), dim=1, largest=False, sorted=True).indices
    within = torch.arange(nearest.shape[1], device=points.device) < sizes
    return torch.zeros_like(left).scatter(1, nearest, within.expand_as(nearest))


def keep(points: Tensor, where: Tensor, count: int) -> Tensor:
    """Return the points at which `where` is True, `count` in each cloud, in their original order: [B, count, 3]."""
    return points[where].view(len(points), count, 3)


def same_share(count: int, of: int, n: int) -> int:
    """Return count * n / of, rounded to an integer (halves are rounded up)."""
    return (2 * count * n + of) // (2 * of)


def portions(patches: int, each: int, *, of: int, n: int) -> list[int]:
    """Return sizes of patches in n points, where `of` points have patches of `each`. Rounding errors do not add up."""
    return [after - before for before, after in pairwise(same_share(i * each, of, n) for i in range(patches + 1))]


def signs(shape: Sequence[int], like: Tensor, generator: Generator) -> Tensor:
    """Draw numbers that are -1 or 1 with equal probability."""
    bits = torch.randint(2, tuple(shape), generator=generator, device=generator.device)
    return (2 * bits - 1).to(like)


def whole(shape: Sequence[int], count: int, like: Tensor, generator: Generator) -> Tensor:
    """Draw int64 numbers uniform on 0 ... count - 1."""
    return torch.randint(count, tuple(shape), generator=generator, device=generator.device).to(like.device)


def every(points: Tensor) -> Tensor:
    """Return a mask [B, n] that is True at every point."""
    return torch.ones(points.shape[:2], dtype=torch.bool, device=points.device)


def some_of(among: Tensor, count: int, generator: Generator) -> Tensor:
    """Draw the indices of `count` random points of each cloud, int64 [B, count], in random order without repeats.

    Every subset of the points at which `among` [B, n] is True is equally likely. Each cloud needs `count` such points.
    """
    # The points with the largest uniform keys are a uniform subset; double precision makes ties negligible.
    keys = torch.rand(among.shape, generator=generator, device=generator.device, dtype=torch.float64)
    return keys.to(among.device).masked_fill(~among, -1.0).topk(count, dim=1).indices


def take(points: Tensor, rows: Tensor) -> Tensor:
    """Return the points [B, n, 3] at the indices `rows` [B, k]: [B, k, 3]."""
    return points.gather(1, rows.unsqueeze(2).expand(-1, -1, points.shape[2]))
