"""Normalisations: formulas, masks, degenerate clouds."""

import numpy as np
import pytest
import torch
from torch import Tensor

from pointset.data.normalize import NORMALIZATIONS, is_standardized, normalize_points

HOWS = sorted(NORMALIZATIONS)
MOVING = [how for how in HOWS if how != "none"]


def clouds(sets: int = 5, points: int = 7, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sets, points, 3, generator=generator) * 3.0 + torch.tensor([10.0, -4.0, 0.5])


FORMULAS = {
    "unit-sphere": lambda cloud: (c := cloud - cloud.mean(axis=0)) / np.sqrt((c**2).sum(axis=1)).max(),
    "standardize": lambda cloud: (cloud - np.mean(cloud)) / np.std(cloud),
    "center-standardize": lambda cloud: (c := cloud - cloud.mean(axis=0)) / c.std(),
    "none": lambda cloud: cloud,
}


@pytest.mark.parametrize("how", FORMULAS)
def test_each_cloud_is_normalised_by_its_formula(how: str) -> None:
    points = clouds()
    for cloud, result in zip(points.double().numpy(), normalize_points(points, how), strict=True):
        np.testing.assert_allclose(result.numpy(), FORMULAS[how](cloud), atol=1e-6)


def test_standardised_clouds_are_known_by_their_numbers() -> None:
    points = clouds(sets=3)
    points[1] = normalize_points(points, "standardize")[1]
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[2, 3:] = False
    points[2] = normalize_points(points, "standardize", mask)[2]
    assert is_standardized(points).tolist() == [False, True, False]
    assert is_standardized(points, mask).tolist() == [False, True, True]


@pytest.mark.parametrize("how", HOWS)
def test_padding_has_no_effect_and_stays_zero(how: str) -> None:
    points = clouds(sets=3, points=11)
    mask = torch.rand(3, 11, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[2] = False
    points[~mask] = 1e9
    result = normalize_points(points, how, mask)
    assert (result[~mask] == 0).all()
    for row in range(2):
        alone = normalize_points(points[row, mask[row]][None], how)[0]
        torch.testing.assert_close(result[row, mask[row]], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", MOVING)
@pytest.mark.parametrize("value", [0.1, -7.3, 1e11])
def test_a_constant_cloud_gives_zeros(how: str, value: float) -> None:
    assert (normalize_points(torch.full((2, 5, 3), value), how) == 0).all()


@pytest.mark.parametrize("how", MOVING)
@pytest.mark.parametrize("scale", [1e-38, 1e-12, 37.0, 1e11, 1e19, 1e37])
@pytest.mark.parametrize("masked", [False, True])
def test_a_shape_gives_the_same_numbers_at_any_size(how: str, scale: float, masked: bool) -> None:
    points = clouds()
    mask = torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) < 0.6 if masked else None
    usual = normalize_points(points, how, mask)
    assert usual.abs().amax() > 0.9
    torch.testing.assert_close(normalize_points(points * scale, how, mask), usual, rtol=1e-5, atol=2e-6)
    # A neighbour of another size changes nothing.
    mixed = normalize_points(torch.cat([points[:2] * scale, points[2:]]), how, mask)
    assert torch.equal(mixed[2:], usual[2:])


def test_a_line_far_thinner_than_its_distance_keeps_its_extent() -> None:
    points = torch.tensor([[[0.0, 1.0, 1.0], [1e-30, 1.0, 1.0], [2e-30, 1.0, 1.0]]])
    torch.testing.assert_close(
        normalize_points(points, "unit-sphere"), torch.tensor([[[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]])
    )


@pytest.mark.parametrize("how", MOVING)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_cloud_that_is_not_finite_gives_nan_and_leaves_its_neighbours_alone(how: str, value: float) -> None:
    points = clouds()
    usual = normalize_points(points, how)
    points[1, 2, 0] = value
    result = normalize_points(points, how)
    assert result[1].isnan().all()
    assert torch.equal(result[[0, 2, 3, 4]], usual[[0, 2, 3, 4]])
