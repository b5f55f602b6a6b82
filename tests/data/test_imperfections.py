"""Augmentations by imperfections of scans: what changes, in which clouds, and what stays."""

import math

import pytest
import torch
from sklearn.svm import SVC
from torch import Generator, Tensor

from pointset.data.imperfections import Background, Crop, Uneven
from pointset.errors import PointsetError

ALL = [Background(probability=1.0), Crop(probability=1.0), Uneven(probability=1.0)]


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def clouds(sets: int = 6, points: int = 200, width: int = 3) -> Tensor:
    return torch.randn(sets, points, width, generator=seeded(99)) * 2 + 1


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_the_generator_decides_and_mean_and_deviation_stay(augmentation: Background | Crop | Uneven) -> None:
    points = clouds()
    before = points.clone()
    first, again, other = (augmentation(points, seeded(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(points, before)
    assert not torch.allclose(first, points)
    torch.testing.assert_close(first.mean(dim=1), points.mean(dim=1), rtol=0, atol=1e-5)
    centred, given = first - first.mean(dim=1, keepdim=True), points - points.mean(dim=1, keepdim=True)
    torch.testing.assert_close(centred.norm(dim=(1, 2)), given.norm(dim=(1, 2)))


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_padding_is_neither_drawn_nor_counted(augmentation: Background | Crop | Uneven) -> None:
    points, mask = clouds(sets=3), torch.ones(3, 200, dtype=torch.bool)
    mask[1, :150] = mask[2] = False
    points[~mask] = 1e6
    result = augmentation(points, seeded(), mask)
    assert (result[~mask] == 0).all()
    assert result.abs().max() < 100
    torch.testing.assert_close(result[1, 150:].mean(dim=0), points[1, 150:].mean(dim=0), rtol=0, atol=1e-5)
    assert augmentation(points[:, :0], seeded()).shape == (3, 0, 3)
    assert augmentation(torch.ones(2, 5, 3), seeded()).isfinite().all()


@pytest.mark.parametrize("kind", [Background, Crop, Uneven])
def test_a_share_of_the_clouds_changes(kind: type[Background | Crop | Uneven]) -> None:
    points = clouds(sets=1000)
    changed = (kind(most=0.9, probability=0.3)(points, seeded()) - points).abs().amax(dim=(1, 2)) > 1e-4
    assert abs(changed.float().mean() - 0.3) < 0.05


def test_background_is_spread_over_a_cube_as_large_as_the_cloud() -> None:
    points = torch.nn.functional.normalize(clouds(sets=100, points=1000) - 1, dim=2)
    result = Background(most=0.5, probability=1.0)(points, seeded())
    ratio = result.norm(dim=2) / result.norm(dim=2).median(dim=1, keepdim=True).values  # 1 for points of the sphere
    moved = (ratio - 1).abs() > 0.1
    assert 0.15 < moved.float().mean() < 0.3
    assert 1.6 < ratio.max() < 1.2 * math.sqrt(3)


def test_a_crop_leaves_one_side_of_a_plane() -> None:
    points = torch.cat([clouds(sets=50), torch.arange(200.0)[None, :, None].expand(50, -1, 1)], dim=2)
    result = Crop(most=0.6, probability=1.0)(points, seeded())
    shares = []
    for cloud, cut in zip(points, result, strict=True):
        rows = cut[:, 3].long()  # a feature goes with its point
        left = torch.zeros(200, dtype=torch.bool)
        left[rows] = True
        assert torch.equal(rows[left], torch.arange(200)[left])  # those that are left stay in their place
        shares.append(1 - left.float().mean())
        if 0 < left.sum() < 200:
            plane = SVC(kernel="linear", C=1e4).fit(cloud[:, :3], left)
            assert plane.score(cloud[:, :3], left) > 0.99
    assert 0.25 < torch.stack(shares).mean() < 0.35
    assert max(shares) <= 0.6


def test_uneven_density_falls_along_a_direction() -> None:
    points = torch.cat([clouds(sets=50), torch.arange(200.0)[None, :, None].expand(50, -1, 1)], dim=2)
    result = Uneven(most=3.0, probability=1.0)(points, seeded())
    drawn = torch.stack([points[row, result[row, :, 3].long(), :3] for row in range(50)])
    shift = (drawn.mean(dim=1) - points[..., :3].mean(dim=1)).norm(dim=1)
    assert shift.mean() > 1.0  # of a deviation of 2: without weights it would be 0.25


@pytest.mark.parametrize("make", [lambda: Background(most=1.0), lambda: Crop(probability=0.0), lambda: Uneven(-1.0)])
def test_bad_numbers_are_refused(make) -> None:
    with pytest.raises(PointsetError, match=r"most must be|probability must be"):
        make()
