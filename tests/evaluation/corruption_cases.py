"""Clouds and seeds for the tests of corruptions."""

import torch
from torch import Generator, Tensor

from pointset.data.normalize import unit_sphere
from pointset.evaluation.corruptions import SEVERITIES, find_corruption


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def corrupt_sphere(points: Tensor, name: str, severity: int, generator: Generator) -> Tensor:
    """Corrupt clouds in the unit sphere, y up."""
    corruption, level = find_corruption(name, severity)
    return corruption.apply(points, level, generator)


def by_severity(*published: float) -> list[tuple[int, float]]:
    """Severities 1 to 5 with the published values."""
    return list(zip(SEVERITIES, published, strict=True))


def clouds(sets: int = 5, points: int = 1024, seed: int = 99) -> Tensor:
    """Asymmetric solid clouds in the unit sphere, without equal points."""
    generator = seeded(seed)
    axes = torch.tensor([1.0, 0.6, 0.3])
    return unit_sphere(torch.randn(sets, points, 3, generator=generator) * axes + 0.3)


def line(sets: int, points: int) -> Tensor:
    """Clouds with point (i, 0, 0) in row i: nearest points are neighbouring rows, and coordinates identify the row."""
    rows = torch.arange(points, dtype=torch.float32).expand(sets, -1)
    return torch.stack([rows, torch.zeros_like(rows), torch.zeros_like(rows)], dim=2)


def lost_rows(changed: Tensor, n: int) -> list[list[int]]:
    """The rows of `line` that are missing in each cloud, in order."""
    return [sorted(set(range(n)) - set(rows)) for rows in changed[..., 0].long().tolist()]


def rows_of(changed: Tensor, points: Tensor) -> list[list[int]]:
    """The original row of each point of each changed cloud; -1 for a new point."""
    found = []
    for after, before in zip(changed.tolist(), points.tolist(), strict=True):
        place = {tuple(point): row for row, point in enumerate(before)}
        assert len(place) == len(before)
        found.append([place.get(tuple(point), -1) for point in after])
    return found
