"""Clouds turned to their axes, and points of the background."""

import numpy as np
import pytest
import torch
from scipy.stats import special_ortho_group

import pointset
from pointset.data.axes import recommend_pose
from pointset.data.normalize import ABOUT, half_turns, normalize_points
from pointset.data.preparation import isolated, kept_points
from pointset.data.turns import turned_by_one_of


@pytest.fixture
def clouds() -> torch.Tensor:
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


@pytest.mark.parametrize("how", ABOUT)
def test_turned_clouds_become_equal(how: str, clouds: torch.Tensor) -> None:
    turned = clouds @ turns(len(clouds), ABOUT[how]).mT + 7
    normalised = normalize_points(clouds, how)
    torch.testing.assert_close(normalize_points(turned, how), normalised, atol=1e-4, rtol=0)
    lengths = normalize_points(clouds, "center-standardize").norm(dim=2)
    torch.testing.assert_close(normalised.norm(dim=2), lengths)  # a rotation, not a reflection:
    rotation = torch.linalg.lstsq(normalize_points(clouds, "center-standardize"), normalised).solution
    torch.testing.assert_close(torch.linalg.det(rotation), torch.ones(len(clouds)))
    deviations = normalised.std(dim=1)
    assert (deviations[:, 2] > deviations[:, 0]).all() or how == "upright-axes"


def test_half_turns_are_rotations_that_keep_the_axes() -> None:
    hows = ("none", "upright-axes", "upright-axes-y", "principal-axes")
    assert [len(half_turns(how)) for how in hows] == [1, 2, 2, 4]
    turned = turned_by_one_of(half_turns("principal-axes"), torch.ones(64, 5, 4), torch.Generator().manual_seed(0))
    signs = [(1, 1, 1, 1), (-1, -1, 1, 1), (-1, 1, -1, 1), (1, -1, -1, 1)]
    assert {tuple(row) for row in turned[:, 0].tolist()} == {*signs}


@pytest.mark.parametrize(("pose", "up", "how"), [("any", "z", "principal-axes"), ("upright", "y", "upright-axes-y")])
def test_a_pose_is_saved_as_its_normalisation(pose: str, up: str, how: str, clouds_folder) -> None:
    sets = pointset.load_dataset(clouds_folder, "train", 24, pose=pose, up=up)
    assert sets.options.normalize == how
    assert "pose" not in sets.describe()
    torch.testing.assert_close(normalize_points(sets.points, how), sets.points, atol=1e-4, rtol=0)
    with pytest.raises(pointset.PointsetError, match="normals"):
        pointset.DataOptions(pose=pose, features="normals")


def test_isolated_points_are_left_out_with_one_line() -> None:
    rng = np.random.default_rng(0)
    sphere = rng.normal(size=(1000, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    assert not isolated(sphere).any()
    stray = np.concatenate([sphere, [[9.0, 0, 0]]])
    with pytest.warns(UserWarning, match=r"a.npy: 1 of 1,001 points left out as isolated \(--keep-outliers"):
        assert np.flatnonzero(~kept_points(stray, "a.npy")).tolist() == [1000]
    found = isolated(np.concatenate([sphere, rng.uniform(-2, 2, (60, 3))]))
    assert found[1000:].mean() > 0.8
    assert found[:1000].mean() <= 0.02
    assert isolated(rng.normal(size=(1000, 3))).mean() < 0.02
    assert not isolated(stray[-20:]).any()


@pytest.mark.parametrize("up", ["z", "y"])
@pytest.mark.parametrize("pose", ["aligned", "upright", "any"])
def test_the_recommended_pose_follows_how_shapes_are_turned(pose: str, up: str) -> None:
    generator = torch.Generator().manual_seed(0)
    sides = torch.tensor([[1.0, 2, 4], [4, 2, 1], [1, 4, 1]]).repeat_interleave(20, dim=0)
    clouds = torch.rand(60, 200, 3, generator=generator) * sides[:, None] * 1e30 + 5
    if pose != "aligned":
        clouds = clouds @ turns(60, {"upright": "xyz".index(up), "any": None}[pose])
    samples = [("abc"[index // 20], cloud.numpy()) for index, cloud in enumerate(clouds)]
    assert recommend_pose(samples, up) == pose


def test_no_pose_is_recommended_without_two_shapes_of_a_class() -> None:
    cloud = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    assert recommend_pose([("a", cloud), ("b", cloud), ("b", np.zeros((50, 3), np.float32))], "z") is None
    ball = cloud / np.linalg.norm(cloud, axis=1, keepdims=True)
    assert recommend_pose([("ball", ball), ("ball", ball)], "z") == "aligned"
