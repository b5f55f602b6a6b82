"""Published corruptions of point clouds at five severities, with a seed, for whole batches.

13 corruptions are from ModelNet40-C (Sun et al., Benchmarking Robustness of 3D Point Cloud Recognition Against Common
Corruptions, arXiv 2201.12296), with the parameters of the authors' code (github.com/jiachens/ModelNet40-C,
`data/generate_c.py`). The other two corruptions of ModelNet40-C, occlusion and lidar, need a renderer. Two dropouts are
from ModelNet-C (Ren et al., Benchmarking and Analyzing Point Cloud Classification under Corruptions, arXiv 2202.03377).

Clouds are in the benchmarks' frame: mean at the origin, farthest point at distance 1, y up. This distance is the unit
of lengths.

Differences from the authors' code:

- The code's numbers of changed points are for 1,024 points (2,048 for `density_inc`). Here, they scale with the set
  size.
- After most corruptions (not gaussian, cutout and the two densities), the code of ModelNet40-C scales clouds to a
  bounding box with longest edge 2. Here, clouds are normalised as in training instead; see
  `pointset.evaluation.robustness`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from numpy import ndarray
from torch import Generator, Tensor

from pointset.arguments import closest_spelling
from pointset.configuration import check, check_seed
from pointset.data.axes import Axis
from pointset.errors import PointsetError, described, quoted
from pointset.evaluation.corruptions import definitions

Family = Literal["density", "noise", "transformation", "dropout"]
Apply = Callable[[Tensor, Any, Generator], Tensor]
"""Function of points [B, n, 3], the level of a severity, and a generator, which is the only source of randomness."""

SEVERITIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Corruption:
    """One corruption at five severities. `pointset.evaluation.CORRUPTIONS` has all corruptions by name.

    Example:
        >>> pointset.evaluation.CORRUPTIONS["rotation"].levels
        (2.5, 5.0, 7.5, 10.0, 15.0)
    """

    name: str
    """Name for `corrupt`."""
    family: Family
    """"density", "noise" or "transformation" for corruptions of ModelNet40-C, "dropout" for those of ModelNet-C."""
    levels: tuple[Any, ...]
    """Values of one parameter for severities 1 to 5. The docstring of `apply` defines the parameter."""
    apply: Apply
    """Function of points [B, n, 3] (in the unit sphere, y up), a level and a `torch.Generator`. Returns [B, m, 3]."""
    points_needed: int = 1
    """Input points per returned point, as published: 2 for `density_inc`, which returns 1,024 of 2,048 points."""


_DISTANCES = (0.025, 0.05, 0.075, 0.1, 0.125)
_MODELNET40_C = (
    Corruption("density", "density", (1, 2, 3, 4, 5), definitions.density),
    Corruption("density_inc", "density", (1, 2, 3, 4, 5), definitions.density_inc, points_needed=2),
    Corruption("cutout", "density", (2, 3, 5, 7, 10), definitions.cutout),
    Corruption("uniform", "noise", (0.01, 0.02, 0.03, 0.04, 0.05), definitions.uniform_noise),
    Corruption("gaussian", "noise", (0.01, 0.015, 0.02, 0.025, 0.03), definitions.gaussian_noise),
    Corruption("impulse", "noise", (30, 25, 20, 15, 10), definitions.impulse_noise),
    Corruption("upsampling", "noise", (5, 4, 3, 2, 1), definitions.upsampling),
    Corruption("background", "noise", (45, 40, 35, 30, 20), definitions.background_noise),
    Corruption("rotation", "transformation", (2.5, 5.0, 7.5, 10.0, 15.0), definitions.rotation),
    Corruption("shear", "transformation", (0.05, 0.1, 0.15, 0.2, 0.25), definitions.shear),
    Corruption("distortion", "transformation", (0.1, 0.2, 0.3, 0.4, 0.5), definitions.free_form_distortion),
    Corruption("distortion_rbf", "transformation", _DISTANCES, partial(definitions.radial_distortion, root=torch.sqrt)),
    Corruption(
        "distortion_rbf_inv", "transformation", _DISTANCES, partial(definitions.radial_distortion, root=torch.rsqrt)
    ),
)
_MODELNET_C = (
    Corruption("drop_global", "dropout", (0.25, 0.375, 0.5, 0.625, 0.75), definitions.drop_global),
    Corruption("drop_local", "dropout", (100, 200, 300, 400, 500), definitions.drop_local),
)
MODELNET40_C = tuple(each.name for each in _MODELNET40_C)
"""The corruptions of ModelNet40-C except occlusion and lidar, named as the files of this benchmark."""
CORRUPTIONS = {each.name: each for each in _MODELNET40_C + _MODELNET_C}
"""Every corruption by its name."""


def list_corruptions() -> list[str]:
    """Return the names of all corruptions, sorted.

    Returns:
        Names for `corrupt`.
    """
    return sorted(CORRUPTIONS)


def find_corruption(name: str, severity: int) -> tuple[Corruption, Any]:
    """Return a corruption by name, and the level of a severity. An unknown name or severity raises a PointsetError."""
    if name not in CORRUPTIONS:
        near, known = closest_spelling(name, list(CORRUPTIONS)), ", ".join(list_corruptions())
        raise PointsetError(f"no corruption is called {quoted(name)}: did you mean {near}? There are {known}")
    if severity not in SEVERITIES:
        raise PointsetError(f"severity of {name} must be 1, 2, 3, 4 or 5, got {quoted(severity)}")
    corruption = CORRUPTIONS[name]
    return corruption, corruption.levels[int(severity) - 1]


def corrupt(
    points: Tensor | ndarray, name: str, severity: int = 3, seed: int = 0, *, up: Axis = "z"
) -> Tensor | ndarray:
    """Corrupt clouds of any position and size.

    Each cloud is moved into the frame in which the corruptions are defined (mean at the origin, farthest point at
    distance 1, y up), corrupted there, and moved back.

    Args:
        points: array or tensor [n, 3] or [B, n, 3] of floating-point numbers, which is not modified.
        name: one of `pointset.evaluation.list_corruptions()`, such as "background".
        severity: a number from 1 (the mildest) to 5.
        seed: the same seed gives the same corruption, but other random numbers for float64 than for float32.
        up: the axis that points up, "y" or "z". Only corruptions with a direction depend on it.

    Returns:
        Points [m, 3] or [B, m, 3], of the same type (array or tensor) as `points`. m depends only on n, `name` and
        `severity`.

    Raises:
        PointsetError: if the corruption or severity is unknown; if the points do not have one of these shapes.

    Example:
        >>> noisy = pointset.evaluation.corrupt(test.points[0], "background", severity=3, seed=0)
        >>> noisy.shape
        torch.Size([33, 3])
    """
    check_seed(seed)
    check("up", up, Axis)
    corruption, level = find_corruption(name, severity)
    clouds = torch.from_numpy(points.astype(points.dtype.newbyteorder("="))) if isinstance(points, ndarray) else points
    if not isinstance(clouds, Tensor) or clouds.dim() not in (2, 3) or clouds.shape[-1] != 3 or not clouds.shape[-2]:
        raise PointsetError(f"points must be an array or a tensor [n, 3] or [B, n, 3], got {described(points)}")
    if not clouds.is_floating_point():
        raise PointsetError(f"points must be floating-point numbers, got {clouds.dtype}")
    batch = clouds if clouds.dim() == 3 else clouds[None]
    generator = torch.Generator(device=batch.device).manual_seed(seed)
    changed = corrupt_clouds(batch, up, corruption, level, generator)
    changed = changed if clouds.dim() == 3 else changed[0]
    return changed.numpy() if isinstance(points, ndarray) else changed


def corrupt_clouds(points: Tensor, up: str, corruption: Corruption, level: Any, generator: Generator) -> Tensor:
    """Move clouds [B, n, 3] to the unit sphere with y up, corrupt each of them, and move them back: [B, m, 3].

    The number of points m depends only on n, corruption and level, so the result needs no padding and no mask.
    """
    turn = 0 if up == "y" else -1  # x, y, z to y, z, x: a rotation that takes z to y
    exact = points.double()
    centre = exact.mean(1, keepdim=True)
    radius = torch.linalg.vector_norm(exact - centre, dim=2, keepdim=True).amax(1, keepdim=True)
    radius = torch.where(radius > 0, radius, 1)
    inside = ((exact - centre) / radius).to(points).roll(turn, dims=2)
    changed = corruption.apply(inside, level, generator).roll(-turn, dims=2)
    return (changed * radius + centre).to(points)
