"""Augmentations: what each keeps and what it changes, masks, seeds."""

import math

import numpy as np
import pytest
import torch
from torch import Generator, Tensor

from pointset.data.augment import (
    Augmentation,
    Drop,
    Jitter,
    RotateAny,
    RotateUp,
    Scale,
    Shift,
    augmentation_from_names,
    rotation_matrices,
)
from pointset.errors import PointsetError

ALL = [Scale(), Scale(anisotropic=True), Jitter(), Shift(), RotateUp(), RotateUp("y", 18.0), RotateAny(), Drop()]


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def clouds(sets: int = 5, points: int = 7, seed: int = 99) -> Tensor:
    return torch.randn(sets, points, 3, generator=seeded(seed))


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_the_generator_decides_everything_and_the_input_is_left_alone(augmentation: Augmentation) -> None:
    points = clouds()
    before = points.clone()
    first, again, other = (augmentation(points, seeded(seed)) for seed in (0, 0, 1))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    assert torch.equal(points, before)
    assert not np.shares_memory(first.numpy(), points.numpy())


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_padded_rows_come_out_as_zeros_and_real_ones_as_without_padding(augmentation: Augmentation) -> None:
    points = clouds(sets=3, points=11)
    mask = torch.ones(3, 11, dtype=torch.bool)
    mask[1, 4:] = False
    points[~mask] = 5.0
    result = augmentation(points, seeded(), mask)
    assert (result[~mask] == 0).all()
    torch.testing.assert_close(result[mask], augmentation(points, seeded())[mask])


def test_scale_is_one_factor_per_cloud_within_its_range() -> None:
    points = clouds(sets=400)
    factors = Scale(0.5, 3.0)(points, seeded()) / points
    torch.testing.assert_close(factors, factors[:, :1, :1].expand_as(factors), rtol=1e-4, atol=0)
    assert 0.5 <= factors.min() < 0.6
    assert 2.9 < factors.max() <= 3.0 + 1e-5


def test_anisotropic_scale_is_one_factor_per_axis() -> None:
    points = clouds(sets=400)
    factors = Scale(0.5, 3.0, anisotropic=True)(points, seeded()) / points
    torch.testing.assert_close(factors, factors[:, :1, :].expand_as(factors), rtol=1e-4, atol=0)
    per_axis = factors[:, 0]
    assert abs(np.corrcoef(per_axis.T.numpy())[0, 1]) < 0.15


def test_jitter_is_clipped_normal_noise() -> None:
    points = clouds(sets=50, points=400)
    noise = Jitter(0.5, 0.7)(points, seeded()) - points
    assert noise.abs().max() <= 0.7 + 1e-5
    clipped = torch.randn(10**6, generator=seeded(5)).mul(0.5).clamp(-0.7, 0.7)
    assert abs(float(noise.std() - clipped.std())) < 0.01


def test_shift_moves_each_cloud_as_a_whole() -> None:
    points = clouds(sets=400)
    offsets = Shift(0.3)(points, seeded()) - points
    torch.testing.assert_close(offsets, offsets[:, :1].expand_as(offsets), rtol=0, atol=1e-6)
    assert 0.28 < offsets.max() <= 0.3 + 1e-6
    assert -0.3 - 1e-6 <= offsets.min() < -0.28


def test_drop_moves_a_uniform_share_of_the_points_onto_the_first() -> None:
    points = clouds(sets=2000, points=65)
    result = Drop(0.875)(points, seeded())
    dropped = (result == points[:, :1]).all(dim=2)[:, 1:]
    assert torch.equal(result[:, 1:][~dropped], points[:, 1:][~dropped])
    shares = dropped.float().mean(dim=1)
    assert abs(shares.mean() - 0.875 / 2) < 0.02
    assert abs((shares < 0.875 / 4).float().mean() - 1 / 4) < 0.04
    assert shares.max() < 0.99
    assert torch.equal(Drop(0.0)(points, seeded()), points)


def test_drop_repeats_the_first_real_point_wherever_padding_is() -> None:
    points, mask = clouds(sets=4, points=9), torch.ones(4, 9, dtype=torch.bool)
    mask[1, :3] = mask[2, 5:] = mask[3] = False
    result = Drop(0.875)(points, seeded(), mask)
    for row, first in enumerate((0, 3, 0)):
        unmoved = (result[row] == points[row]).all(dim=1)
        repeated = (result[row] == points[row, first]).all(dim=1)
        assert ((unmoved | repeated) == mask[row]).all()
    assert (result[3] == 0).all()


@pytest.mark.parametrize(("up", "axis"), [("y", 1), ("z", 2)])
def test_rotation_about_up_keeps_heights_and_distances_and_handedness(up: str, axis: int) -> None:
    basis = torch.eye(3).expand(500, 3, 3)
    turned = RotateUp(up)(basis, seeded())  # type: ignore[arg-type]
    torch.testing.assert_close(turned[..., axis], basis[..., axis])
    torch.testing.assert_close(turned @ turned.transpose(1, 2), basis, rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.linalg.det(turned), torch.ones(500))
    # Every direction is reached: the mean of a vector in the plane vanishes.
    plane = [a for a in range(3) if a != axis]
    assert turned[:, plane[0]].mean(0).abs()[plane].max() < 0.12


def test_any_rotation_is_uniform_on_the_rotation_group() -> None:
    count = 20_000
    rotations = rotation_matrices(torch.randn(count, 4, generator=seeded(), dtype=torch.float64))
    identity = torch.eye(3, dtype=torch.float64).expand(count, 3, 3)
    torch.testing.assert_close(rotations @ rotations.transpose(1, 2), identity)
    torch.testing.assert_close(torch.linalg.det(rotations), torch.ones(count, dtype=torch.float64))
    # The rotation angle has density (1 - cos a) / pi on [0, pi]: distribution (a - sin a) / pi.
    trace = rotations.diagonal(dim1=1, dim2=2).sum(1)
    angles = torch.arccos(((trace - 1) / 2).clamp(-1, 1)).sort().values
    expected = (angles - angles.sin()) / math.pi
    steps = torch.arange(1, count + 1, dtype=torch.float64) / count
    assert (steps - expected).abs().max() < 1.63 / math.sqrt(count)  # Kolmogorov-Smirnov, 1 % level


def test_any_rotation_turns_points_by_its_matrices() -> None:
    points = clouds()
    turned = RotateAny()(points, seeded(3))
    rotations = rotation_matrices(torch.randn(5, 4, generator=seeded(3)))
    for cloud, rotation, result in zip(points, rotations, turned, strict=True):
        for point, moved in zip(cloud, result, strict=True):
            torch.testing.assert_close(rotation @ point, moved, rtol=1e-5, atol=1e-5)


def test_names_make_a_composition_in_their_order() -> None:
    points = clouds()
    composed = augmentation_from_names(("scale", "jitter", "rotate-up"), "y")
    generator = seeded()
    expected = points
    for step in (Scale(0.8, 1.25), Jitter(0.01, 0.05), RotateUp("y", 180.0)):
        expected = step(expected, generator)
    assert torch.equal(composed(points, seeded()), expected)
    assert torch.equal(augmentation_from_names(())(points, seeded()), points)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: augmentation_from_names(("scale", "jiter")),
            r"scale.*jitter.*rotate-up.*rotate-any.*'jiter'",
        ),
        (lambda: Scale(2.0, 1.0), "low <= high"),
        (lambda: Scale(0.0, 1.0), "low"),
        (lambda: Jitter(-1.0), "at least 0"),
        (lambda: Shift(-1.0), "at least 0"),
        (lambda: Drop(1.5), r"most must be in \[0, 1\), got 1.5"),
        (lambda: RotateUp("x"), "'y', 'z'.*'x'"),  # type: ignore[arg-type]
    ],
)
def test_wrong_options_say_what_is_expected(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PointsetError, match=words):
        make()
