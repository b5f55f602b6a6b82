"""Normalisations: formulas, masks, degenerate clouds."""

import numpy as np
import pytest
import torch
from torch import Tensor

from pointset.data.normalize import NORMALIZATIONS, normalize_points
from pointset.errors import PointsetError

HOWS = sorted(NORMALIZATIONS)


def clouds(sets: int = 5, points: int = 7, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(sets, points, 3, generator=generator) * 3.0 + torch.tensor([10.0, -4.0, 0.5])


def test_unit_sphere_is_the_formula_cloud_by_cloud() -> None:
    points = clouds()
    for cloud, result in zip(points.double().numpy(), normalize_points(points, "unit-sphere"), strict=True):
        centred = cloud - cloud.mean(axis=0)
        expected = centred / np.sqrt((centred**2).sum(axis=1)).max()
        np.testing.assert_allclose(result.numpy(), expected, atol=1e-6)


def test_standardize_has_one_mean_and_one_deviation_per_cloud() -> None:
    points = clouds()
    for cloud, result in zip(points.double().numpy(), normalize_points(points, "standardize"), strict=True):
        np.testing.assert_allclose(result.numpy(), (cloud - np.mean(cloud)) / np.std(cloud), atol=1e-6)


def test_none_changes_nothing() -> None:
    points = clouds()
    torch.testing.assert_close(normalize_points(points, "none"), points, rtol=0, atol=0)


@pytest.mark.parametrize("how", HOWS)
def test_padding_neither_counts_nor_survives(how: str) -> None:
    points = clouds(sets=3, points=11)
    mask = torch.rand(3, 11, generator=torch.Generator().manual_seed(1)) < 0.6
    points[~mask] = 1e9  # whatever stands there
    result = normalize_points(points, how, mask)
    assert (result[~mask] == 0).all()
    for row in range(3):
        alone = normalize_points(points[row, mask[row]][None], how)[0]
        torch.testing.assert_close(result[row, mask[row]], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["unit-sphere", "standardize"])
@pytest.mark.parametrize("value", [0.1, -7.3, 1e11])
def test_a_constant_cloud_gives_zeros(how: str, value: float) -> None:
    assert (normalize_points(torch.full((2, 5, 3), value), how) == 0).all()


@pytest.mark.parametrize("how", HOWS)
def test_an_empty_set_gives_zeros(how: str) -> None:
    points = clouds(sets=2)
    mask = torch.tensor([[True] * 7, [False] * 7])
    result = normalize_points(points, how, mask)
    assert torch.isfinite(result).all()
    assert (result[1] == 0).all()


@pytest.mark.parametrize("how", ["unit-sphere", "standardize"])
def test_place_and_size_do_not_matter(how: str) -> None:
    points = clouds()
    torch.testing.assert_close(
        normalize_points(points * 37.0 - 5.0, how), normalize_points(points, how), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("how", ["unit-sphere", "standardize"])
@pytest.mark.parametrize("scale", [1e-12, 1e11])
def test_extreme_sizes_stay_finite(how: str, scale: float) -> None:
    points = clouds() * scale
    torch.testing.assert_close(normalize_points(points, how), normalize_points(clouds(), how), rtol=1e-4, atol=1e-5)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PointsetError, match=r"unit-sphere, standardize, none.*'sphere'"):
        normalize_points(clouds(), "sphere")
