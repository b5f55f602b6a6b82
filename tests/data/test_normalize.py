"""Normalisations against their formulas, turns to the axes of shapes."""

import numpy as np
import pytest
import torch
from scipy.stats import special_ortho_group
from torch import Tensor

import pointset
from pointset.data import normalize_points
from pointset.data.normalize import NORMALIZATIONS, half_turns, is_standardized
from pointset.data.rotations import rotate_by_one_of

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
def test_each_cloud_is_normalised_by_its_formula(how):
    points = clouds()
    for cloud, result in zip(points.double().numpy(), normalize_points(points, how), strict=True):
        np.testing.assert_allclose(result.numpy(), FORMULAS[how](cloud), atol=1e-6)


def test_standardised_clouds_are_known_by_their_numbers():
    points = clouds(sets=3)
    points[1] = normalize_points(points, "standardize")[1]
    mask = torch.ones(3, 7, dtype=torch.bool)
    mask[2, 3:] = False
    points[2] = normalize_points(points, "standardize", mask)[2]
    assert is_standardized(points).tolist() == [False, True, False]
    assert is_standardized(points, mask).tolist() == [False, True, True]


@pytest.mark.parametrize("how", HOWS)
def test_padding_has_no_effect_and_stays_zero(how):
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
def test_a_constant_cloud_gives_zeros_and_one_far_thinner_than_its_distance_keeps_its_extent(how):
    for value in (0.1, -7.3, 1e11):
        assert (normalize_points(torch.full((2, 5, 3), value), how) == 0).all()
    line = torch.tensor([[[0.0, 1.0, 1.0], [1e-30, 1.0, 1.0], [2e-30, 1.0, 1.0]]])
    expected = torch.tensor([[[-1.0, 0, 0], [0, 0, 0], [1, 0, 0]]])
    assert how != "unit-sphere" or normalize_points(line, how).allclose(expected)


@pytest.mark.parametrize("how", MOVING)
@pytest.mark.parametrize("scale", [1e-38, 1e-12, 37.0, 1e11, 1e19, 1e37])
@pytest.mark.parametrize("masked", [False, True])
def test_a_shape_gives_the_same_numbers_at_any_size(how, scale, masked):
    points = clouds()
    mask = torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) < 0.6 if masked else None
    usual = normalize_points(points, how, mask)
    assert usual.abs().amax() > 0.9
    torch.testing.assert_close(normalize_points(points * scale, how, mask), usual, rtol=1e-5, atol=2e-6)
    # A neighbour of another size changes nothing.
    mixed = normalize_points(torch.cat([points[:2] * scale, points[2:]]), how, mask)
    assert torch.equal(mixed[2:], usual[2:])


@pytest.mark.parametrize("how", MOVING)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_cloud_that_is_not_finite_gives_nan_and_leaves_its_neighbours_alone(how, value):
    points = clouds()
    usual = normalize_points(points, how)
    points[1, 2, 0] = value
    result = normalize_points(points, how)
    assert result[1].isnan().all()
    assert torch.equal(result[[0, 2, 3, 4]], usual[[0, 2, 3, 4]])


@pytest.fixture
def lopsided():
    """Clouds [6, 200, 3] without symmetries."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(6, 200, 3, generator=generator)
    return noise * torch.tensor([1.0, 2.0, 3.0]) + torch.randn(6, 200, 3, generator=generator) ** 2


def turns(count: int, about: int | None) -> torch.Tensor:
    rotations = special_ortho_group.rvs(3, size=count, random_state=0)
    if about is not None:
        plane = [axis for axis in range(3) if axis != about]
        rotations = np.stack([np.eye(3)] * count)
        rotations[np.ix_(range(count), plane, plane)] = special_ortho_group.rvs(2, size=count, random_state=0)
    return torch.from_numpy(rotations).float()


@pytest.mark.parametrize(("how", "up"), [("principal-axes", "z"), ("upright-axes", "z"), ("upright-axes", "y")])
def test_turned_clouds_become_equal(how, up, lopsided):
    turned = lopsided @ turns(len(lopsided), None if how == "principal-axes" else "xyz".index(up)).mT + 7
    normalised = normalize_points(lopsided, how, up=up)
    torch.testing.assert_close(normalize_points(turned, how, up=up), normalised, atol=1e-4, rtol=0)
    lengths = normalize_points(lopsided, "center-standardize").norm(dim=2)
    torch.testing.assert_close(normalised.norm(dim=2), lengths)  # a rotation, not a reflection:
    rotation = torch.linalg.lstsq(normalize_points(lopsided, "center-standardize"), normalised).solution
    torch.testing.assert_close(torch.linalg.det(rotation), torch.ones(len(lopsided)))
    deviations = normalised.std(dim=1)
    assert (deviations[:, 2] > deviations[:, 0]).all() or how == "upright-axes"


def test_half_turns_are_rotations_that_keep_the_axes():
    assert [len(half_turns(how)) for how in ("none", "upright-axes", "principal-axes")] == [1, 2, 4]
    assert half_turns("upright-axes", "y")[1].diagonal().tolist() == [-1, 1, -1]
    turned = rotate_by_one_of(half_turns("principal-axes"), torch.ones(64, 5, 4), torch.Generator().manual_seed(0))
    signs = [(1, 1, 1, 1), (-1, -1, 1, 1), (-1, 1, -1, 1), (1, -1, -1, 1)]
    assert {tuple(row) for row in turned[:, 0].tolist()} == {*signs}


@pytest.mark.parametrize(("normalize", "up"), [("principal-axes", "z"), ("upright-axes", "y")])
def test_sets_are_rotated_to_their_axes(normalize, up, clouds_folder):
    sets = pointset.load_dataset(clouds_folder, "train", 24, normalize=normalize, up=up)
    torch.testing.assert_close(normalize_points(sets.points, normalize, up=up), sets.points, atol=1e-4, rtol=0)
    with pytest.raises(pointset.PointsetError, match="normals"):
        pointset.DataOptions(normalize=normalize, features=("normals",))
