"""Noise corruptions against their published definitions: bounds, distributions, and unchanged points."""

import pytest
import torch
from corruption_cases import by_severity, clouds, seeded
from scipy import stats

from pointset.evaluation.corruptions import corrupt_sphere

pytestmark = pytest.mark.usefixtures("single_thread")


@pytest.mark.parametrize(("severity", "limit"), by_severity(0.01, 0.02, 0.03, 0.04, 0.05))
def test_uniform_noise_is_uniform_within_its_limit(severity: int, limit: float) -> None:
    points = clouds(20).double()
    noise = (corrupt_sphere(points, "uniform", severity, seeded()) - points).flatten().numpy()
    assert stats.kstest(noise, stats.uniform(-limit, 2 * limit).cdf).pvalue > 0.001


@pytest.mark.parametrize(("severity", "deviation"), by_severity(0.01, 0.015, 0.02, 0.025, 0.03))
def test_gaussian_noise_is_normal_and_clipped_to_the_cube(severity: int, deviation: float) -> None:
    points = (0.5 * clouds(20)).double()  # far from the walls of the cube
    noise = (corrupt_sphere(points, "gaussian", severity, seeded()) - points).flatten().numpy()
    assert stats.kstest(noise, stats.norm(0, deviation).cdf).pvalue > 0.001
    wall = torch.ones(2, 500, 3)
    assert corrupt_sphere(wall, "gaussian", severity, seeded()).max() == 1.0
    assert corrupt_sphere(-wall, "gaussian", severity, seeded()).min() == -1.0


@pytest.mark.parametrize(("severity", "moved"), by_severity(34, 40, 51, 68, 102))
def test_impulses_move_some_points_by_a_tenth_along_each_axis(severity: int, moved: int) -> None:
    points = clouds(30).double()
    steps = corrupt_sphere(points, "impulse", severity, seeded()) - points
    where = (steps != 0).any(2)
    assert (where.sum(1) == moved).all()  # floor(1024 / 30), ...
    torch.testing.assert_close(steps[where].abs(), torch.full((30 * moved, 3), 0.1, dtype=torch.float64))
    eight = torch.bincount(((steps[where] > 0).long() * torch.tensor([1, 2, 4])).sum(1), minlength=8)
    assert stats.chisquare(eight.numpy()).pvalue > 0.001  # every corner of the cube alike
    assert not torch.equal(where[0], where[1])


@pytest.mark.parametrize(("severity", "added"), by_severity(204, 256, 341, 512, 1024))
def test_upsampling_adds_noisy_copies_of_different_points(severity: int, added: int) -> None:
    points = torch.zeros(4, 1024, 3, dtype=torch.float64)
    points[..., 1] = torch.arange(1024)  # a point apart from the next by more than the noise
    changed = corrupt_sphere(points, "upsampling", severity, seeded())
    assert changed.shape == (4, 1024 + added, 3)
    assert torch.equal(changed[:, :1024], points)
    of = changed[:, 1024:, 1].round().long()
    assert all(len(set(rows)) == added for rows in of.tolist())
    noise = changed[:, 1024:] - points.gather(1, of.unsqueeze(2).expand(-1, -1, 3))
    assert stats.kstest(noise.flatten().numpy(), stats.uniform(-0.05, 0.1).cdf).pvalue > 0.001


@pytest.mark.parametrize(("severity", "added"), by_severity(22, 25, 29, 34, 51))
def test_background_adds_points_uniform_in_the_cube(severity: int, added: int) -> None:
    points = clouds(30).double()
    changed = corrupt_sphere(points, "background", severity, seeded())
    assert changed.shape == (30, 1024 + added, 3)
    assert torch.equal(changed[:, :1024], points)
    for axis in range(3):
        assert stats.kstest(changed[:, 1024:, axis].flatten().numpy(), stats.uniform(-1, 2).cdf).pvalue > 0.001
