"""Corruptions by name."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Float
from torch import Generator, Tensor

from pointset.configuration import check
from pointset.errors import PointsetError, quoted

Family = Literal["density", "noise", "transformation", "dropout"]
Apply = Callable[[Tensor, Any, Generator], Tensor]
"""Called with points [B, n, 3], the level of the severity, and the only source of randomness."""

SEVERITIES = (1, 2, 3, 4, 5)

MODELNET40_C = (
    "density",
    "density_inc",
    "cutout",
    "uniform",
    "gaussian",
    "impulse",
    "upsampling",
    "background",
    "rotation",
    "shear",
    "distortion",
    "distortion_rbf",
    "distortion_rbf_inv",
)
"""The corruptions of ModelNet40-C except occlusion and lidar, under the names of its files."""


@dataclass(frozen=True)
class Corruption:
    """One corruption, at five severities."""

    name: str
    family: Family
    levels: tuple[Any, ...]
    """The numbers for severities 1 to 5; the docstring of `apply` says what they count."""
    apply: Apply
    points_needed: int = 1
    """Points given for each point returned, as published: 2 for density_inc, which makes 1,024 of 2,048."""


CORRUPTIONS: dict[str, Corruption] = {}
"""Every corruption by its name."""


def corruption(
    name: str, family: Family, levels: tuple[Any, ...], *, points_needed: int = 1
) -> Callable[[Apply], Apply]:
    """Register a function as a corruption, under a name."""

    def register(apply: Apply) -> Apply:
        CORRUPTIONS[name] = Corruption(name, family, levels, apply, points_needed)
        return apply

    return register


def list_corruptions(family: Family | None = None) -> list[str]:
    """Names of all corruptions, or of one family ("density", "noise", "transformation", "dropout"), sorted.

    Args:
        family: which ones; all when None.

    Returns:
        Names for `corrupt`.

    Raises:
        PointsetError: there is no such family.

    Example:
        >>> "gaussian" in pointset.evaluation.list_corruptions("noise")
        True
    """
    check("family", family, Family | None)
    return sorted(name for name, found in CORRUPTIONS.items() if family in (None, found.family))


def find_corruption(name: str, severity: int) -> tuple[Corruption, Any]:
    """A corruption by name, and the level of one of its severities.

    Raises:
        PointsetError: there is no such corruption or severity; the message lists what exists.
    """
    if name not in CORRUPTIONS:
        near = difflib.get_close_matches(name, CORRUPTIONS, n=1)
        meant = f"did you mean {near[0]!r}? There are " if near else "choose one of "
        raise PointsetError(f"no corruption is called {quoted(name)}: {meant}{', '.join(list_corruptions())}")
    if severity not in SEVERITIES:
        raise PointsetError(f"severity of {name} must be 1, 2, 3, 4 or 5, got {quoted(severity)}")
    found = CORRUPTIONS[name]
    return found, found.levels[int(severity) - 1]


def corrupt(points: Float[Tensor, "B n 3"], name: str, severity: int, generator: Generator) -> Float[Tensor, "B m 3"]:
    """Corrupt every cloud of a batch on its own.

    Args:
        points: in the unit sphere, y up; not changed. Clouds of several sizes go in one call per size.
        name: one of `list_corruptions()`.
        severity: 1, the mildest, to 5.
        generator: the only source of randomness; the same state gives the same result.

    Returns:
        Points on the same device and of the same type. Their number m depends only on n, name and severity, so the
        result needs no padding and no mask.

    Raises:
        PointsetError: there is no such corruption or severity, or the points are not [B, n, 3] with n at least 1.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> pointset.evaluation.corrupt(test.points, "gaussian", 3, generator).shape
        torch.Size([8, 32, 3])
    """
    found, level = find_corruption(name, severity)
    if points.dim() != 3 or points.shape[2] != 3 or points.shape[1] < 1 or not points.is_floating_point():
        raise PointsetError(
            f"points must be floating numbers [B, n, 3], n at least 1, got {list(points.shape)} {points.dtype}"
        )
    return found.apply(points, level, generator)
