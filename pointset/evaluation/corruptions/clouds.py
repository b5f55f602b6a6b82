"""Corruptions that move a whole cloud: turned, sheared, stretched, or bent by a lattice of control points."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from pointset.data.augment import uniform
from pointset.evaluation.corruptions.points import signs

Points = Float[Tensor, "B n 3"]
Root = Callable[[Tensor], Tensor]
"""The square root, or one over it."""


def rotation(points: Points, degrees: float, generator: Generator) -> Points:
    """Turn about the x axis, then y, then z: each by an angle of random sign, uniform within 2.5 degrees of a value.

    Source: ModelNet40-C, rotation.
    """
    angles = torch.deg2rad(_around((len(points), 3), degrees, 2.5, points, generator))
    for axis, angle in enumerate(angles.unbind(1)):
        points = points @ _turns(angle, axis)
    return points


def shear(points: Points, amount: float, generator: Generator) -> Points:
    """Add shares of the coordinates to each other; heights, y, stay: p [[1, 0, b], [d, 1, e], [f, 0, 1]] for a row p.

    b, d, e and f are independent, of random sign and uniform within 0.05 of a value.

    Source: ModelNet40-C, shear.
    """
    b, d, e, f = _around((4, len(points)), amount, 0.05, points, generator).unbind(0)
    one, zero = torch.ones_like(b), torch.zeros_like(b)
    rows = ((one, zero, b), (d, one, e), (f, zero, one))
    return points @ torch.stack([torch.stack(row, dim=1) for row in rows], dim=1)


def free_form_distortion(points: Points, amount: float, generator: Generator) -> Points:
    """Free-form deformation (Sederberg and Parry, SIGGRAPH 1986) by 5 x 5 x 5 control points in the cube [-1, 1]^3.

    p' = p + 2 sum_ijk b_i(u) b_j(v) b_k(w) mu_ijk with (u, v, w) = (p + 1) / 2 and the Bernstein polynomials
    b_i(t) = binomial(4, i) t^i (1 - t)^(4 - i). Every component of mu is uniform on [-amount, amount]; it counts in
    lengths of the cube's edge, hence the 2. Points outside the cube stay.

    Source: ModelNet40-C, distortion, which calls PyGeM's FFD (`pygem/ffd.py`).
    """
    mu = uniform((len(points), _GRID**3, 3), -amount, amount, points, generator)
    b = _bernstein((points + 1) / 2)  # [B, n, 3 axes, 5]
    of_lattice = torch.einsum("bni,bnj,bnk->bnijk", *b.unbind(2)).flatten(2)
    inside = (points.abs() <= 1).all(dim=2, keepdim=True)
    return torch.where(inside, points + 2 * of_lattice @ mu, points)


def rbf_distortion(points: Points, distance: float, generator: Generator) -> Points:
    """Deformation by radial basis functions phi(r) = sqrt(r^2 + 0.5^2), multi-quadratic; see `_radial_distortion`.

    Source: ModelNet40-C, distortion_rbf.
    """
    return _radial_distortion(points, distance, torch.sqrt, generator)


def rbf_distortion_inverse(points: Points, distance: float, generator: Generator) -> Points:
    """As `distortion_rbf` with the inverse multi-quadratic phi(r) = 1 / sqrt(r^2 + 0.5^2).

    Source: ModelNet40-C, distortion_rbf_inv.
    """
    return _radial_distortion(points, distance, torch.rsqrt, generator)


_GRID = 5
"""Control points along each axis, for all distortions."""
_RADIUS = 0.5
"""Of the radial basis functions: PyGeM's default, which ModelNet40-C leaves as it is."""


def _radial_distortion(points: Points, distance: float, root: Root, generator: Generator) -> Points:
    """Move the points with 5 x 5 x 5 control points c_i on a regular grid in [-1, 1]^3, which all move by `distance`.

    M(p) = p + q(p) + sum_i w_i phi(|p - c_i|), phi(r) = root(r^2 + radius^2), with q affine, such that
    M(c_i) = c_i + distance (cos a_i sin g_i, sin a_i sin g_i, cos g_i), sum_i w_i = 0 and sum_i w_i c_i = 0. The angles
    a_i and g_i are independent and uniform on [-pi, pi]. PyGeM (`pygem/rbf.py`) interpolates the
    control points' places instead of their displacements, which is the same, since q reproduces the identity.
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
    # The moves of all clouds beside each other, so that the system is factorised once: [129, 3 B].
    targets = torch.nn.functional.pad(moves.transpose(0, 1).flatten(1), (0, 0, 0, len(corner)))
    weights = torch.linalg.solve(system, targets).unflatten(1, (-1, 3)).transpose(0, 1)  # [B, 129, 3]
    terms = torch.cat([_phi(exact, controls, root), torch.ones_like(exact[..., :1]), exact], dim=2)
    return (exact + terms @ weights).to(points)


def _phi(points: Tensor, controls: Tensor, root: Root) -> Tensor:
    """root(|p - c|^2 + radius^2) for points [..., n, 3] and controls [c, 3]: [..., n, c]."""
    return root(torch.cdist(points, controls).square() + _RADIUS**2)


def _bernstein(t: Tensor) -> Tensor:
    """The Bernstein polynomials of degree 4 at t [...]: [..., 5]."""
    i = torch.arange(_GRID, device=t.device)
    binomials = t.new_tensor([math.comb(_GRID - 1, k) for k in range(_GRID)])
    t = t.unsqueeze(-1)
    return binomials * t**i * (1 - t) ** (_GRID - 1 - i)


def _turns(angles: Float[Tensor, " B"], axis: int) -> Float[Tensor, "B 3 3"]:
    """Rotations about one axis, for column vectors; row vectors times them turn the other way."""
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrices = torch.eye(3, dtype=angles.dtype, device=angles.device).repeat(len(angles), 1, 1)
    matrices[:, first, first] = matrices[:, second, second] = angles.cos()
    matrices[:, second, first] = angles.sin()
    matrices[:, first, second] = -angles.sin()
    return matrices


def _around(shape: tuple[int, ...], value: float, within: float, like: Tensor, generator: Generator) -> Tensor:
    """Numbers of random sign whose size is uniform on [value - within, value + within]."""
    sizes = uniform(shape, value - within, value + within, like, generator)
    return sizes * signs(shape, like, generator)
