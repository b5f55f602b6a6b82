"""Augmentations and mixtures of clouds: what each keeps and changes, masks, seeds, normals, labels."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.svm import SVC
from torch import Generator, Tensor

import pointset
from pointset import PointsetError, PointSets, Recipe
from pointset.data import (
    Background,
    Compose,
    Crop,
    CutMix,
    Drop,
    Jitter,
    RotateAny,
    RotateUp,
    Scale,
    Shift,
    Stretch,
    Thin,
    Uneven,
    augmentation_from_names,
)
from pointset.data.batches import Batch, batches
from pointset.data.rotations import Columns, rotation_matrices
from pointset.training.objectives import Classification

IMPERFECT: list[Any] = [kind(probability=1.0) for kind in (Background, Crop, Uneven, Thin)]
ALL: list[Any] = [
    *(Scale(), Stretch(), Jitter(), Shift(), RotateUp(), RotateUp("y", 18.0), RotateAny(), Drop()),
    *IMPERFECT,
]


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def clouds(sets: int = 5, points: int = 7, seed: int = 99) -> Tensor:
    return torch.randn(sets, points, 3, generator=seeded(seed))


def large_clouds(sets: int = 6) -> Tensor:
    return clouds(sets, 200) * 2 + 1


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_the_generator_decides_everything_and_the_input_is_left_alone(augmentation):
    points = large_clouds()
    before = points.clone()
    first, again, other = (augmentation(points, seeded(seed)) for seed in (0, 0, 1))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    assert torch.equal(points, before)
    assert not np.shares_memory(first.numpy(), points.numpy())


@pytest.mark.parametrize("augmentation", ALL, ids=repr)
def test_padded_rows_come_out_as_zeros_and_do_not_count(augmentation):
    points = large_clouds(sets=3)
    mask = torch.ones(3, 200, dtype=torch.bool)
    mask[1, 50:] = mask[2] = False
    points[~mask] = 1e6
    result = augmentation(points, seeded(), mask)
    assert (result[~mask] == 0).all()
    assert result.abs().max() < 100
    if augmentation not in IMPERFECT:  # which draw among the real points alone
        torch.testing.assert_close(result[mask], augmentation(points, seeded())[mask])
    assert augmentation(torch.ones(2, 5, 3), seeded()).isfinite().all()


@pytest.mark.parametrize(
    ("augmentation", "axes", "low", "high"),
    [(Scale(0.5, 3.0), 1, 0.5, 3.0), (Stretch(2.5), 3, 0.4, 2.5), (Shift(0.3), 3, -0.3, 0.3)],
)
def test_clouds_are_scaled_and_shifted_as_a_whole(augmentation, axes, low, high):
    points = clouds(sets=400)
    changed = augmentation(points, seeded())
    numbers = changed - points if low < 0 else changed / points
    own = numbers[:, :1, :axes]
    torch.testing.assert_close(numbers, own.expand_as(numbers), rtol=1e-4, atol=1e-6)
    assert low - 1e-5 <= own.min() < low + 0.04 * (high - low)
    assert high - 0.04 * (high - low) < own.max() <= high + 1e-5
    assert axes == 1 or abs(np.corrcoef(own[:, 0].T.numpy())[0, 1]) < 0.15


def test_jitter_is_clipped_normal_noise():
    points = clouds(sets=50, points=400)
    noise = Jitter(0.5, 0.7)(points, seeded()) - points
    assert noise.abs().max() <= 0.7 + 1e-5
    clipped = torch.randn(10**6, generator=seeded(5)).mul(0.5).clamp(-0.7, 0.7)
    assert abs(float(noise.std() - clipped.std())) < 0.01


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("scale", 0.8, 1.25),
        ("stretch", 0.8, 1.25),
        ("stretch-wide", 2 / 3, 3 / 2),
        ("shift", 0.9, 1.1),
        ("shift-wide", 0.8, 1.2),
        ("rotate-up-18", 27.0, 63.0),
    ],
)
def test_a_named_augmentation_moves_the_point_1_1_1_as_far_as_published(name, low, high):
    x, y, _ = augmentation_from_names((name,), "z")(torch.ones(3000, 1, 3), seeded()).unbind(2)
    reached = torch.rad2deg(torch.atan2(y, x)) if name == "rotate-up-18" else x
    assert (float(reached.min()), float(reached.max())) == pytest.approx((low, high), abs=0.01 * (high - low))


def test_augmentations_are_composed_and_printed_and_names_build_them():
    augment = Compose([RotateUp(), Stretch(1.5), Jitter(0.01)])
    expected = "RotateUp(up='z', degrees=180.0), Stretch(limit=1.5), Jitter(sigma=0.01, clip=0.05)"
    assert repr(augment) == f"Compose([{expected}])"
    named = augmentation_from_names(("rotate-up", "stretch-wide", "jitter"))
    assert repr(named) == repr(augment)
    points = large_clouds()
    result = augment(points, seeded())
    torch.testing.assert_close(named(points, seeded()), result, rtol=0, atol=0)
    generator, stepped = seeded(), points
    for step in augment.steps:
        stepped = step(stepped, generator)
    torch.testing.assert_close(stepped, result, rtol=0, atol=0)
    with pytest.raises(PointsetError, match="limit"):
        Stretch(0.0)


def test_drop_moves_a_uniform_share_of_the_points_onto_the_first_real_one():
    points = clouds(sets=2000, points=65)
    result = Drop(0.875)(points, seeded())
    dropped = (result == points[:, :1]).all(dim=2)[:, 1:]
    assert torch.equal(result[:, 1:][~dropped], points[:, 1:][~dropped])
    shares = dropped.float().mean(dim=1)
    assert abs(shares.mean() - 0.875 / 2) < 0.02
    assert abs((shares < 0.875 / 4).float().mean() - 1 / 4) < 0.04
    assert torch.equal(Drop(0.0)(points, seeded()), points)
    points, mask = clouds(sets=4, points=9), torch.ones(4, 9, dtype=torch.bool)
    mask[1, :3] = mask[2, 5:] = mask[3] = False
    result = Drop(0.875)(points, seeded(), mask)
    for row, first in enumerate((0, 3, 0)):
        unmoved = (result[row] == points[row]).all(dim=1)
        repeated = (result[row] == points[row, first]).all(dim=1)
        assert ((unmoved | repeated) == mask[row]).all()
    assert (result[3] == 0).all()


@pytest.mark.parametrize(("up", "axis"), [("y", 1), ("z", 2)])
def test_rotation_about_up_keeps_heights_and_distances_and_handedness(up, axis):
    basis = torch.eye(3).expand(500, 3, 3)
    turned = RotateUp(up)(basis, seeded())  # type: ignore[arg-type]
    torch.testing.assert_close(turned[..., axis], basis[..., axis])
    torch.testing.assert_close(turned @ turned.transpose(1, 2), basis, rtol=0, atol=1e-5)
    torch.testing.assert_close(torch.linalg.det(turned), torch.ones(500))
    # Every direction is reached: the mean of a vector in the plane vanishes.
    plane = [a for a in range(3) if a != axis]
    assert turned[:, plane[0]].mean(0).abs()[plane].max() < 0.12


def test_any_rotation_is_uniform_on_the_rotation_group():
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
    points = clouds()
    matrices = rotation_matrices(torch.randn(5, 4, generator=seeded(3)))
    torch.testing.assert_close(RotateAny()(points, seeded(3)), points @ matrices.mT, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("augmentation", IMPERFECT, ids=repr)
def test_an_imperfect_cloud_keeps_its_mean_and_deviation(augmentation):
    points, mask = large_clouds(), torch.ones(6, 200, dtype=torch.bool)
    mask[3:, :150] = False
    for real in (None, mask):
        result = augmentation(points, seeded(), real)
        given = points if real is None else points * mask[..., None]
        assert not torch.allclose(result, given)
        count = mask.sum(dim=1)[:, None, None] if real is not None else 200
        means = [cloud.sum(dim=1, keepdim=True) / count for cloud in (result, given)]
        torch.testing.assert_close(*means, rtol=0, atol=1e-5)
        torch.testing.assert_close(result.norm(dim=(1, 2)), given.norm(dim=(1, 2)), rtol=1e-4, atol=0)


@pytest.mark.parametrize("kind", [Background, Crop, Uneven, Thin])
def test_a_share_of_the_clouds_is_imperfect(kind):
    points = large_clouds(sets=1000)
    much = {"least": 0.1} if kind is Thin else {"most": 0.9}
    changed = (kind(**much, probability=0.3)(points, seeded()) - points).abs().amax(dim=(1, 2)) > 1e-4
    assert abs(changed.float().mean() - 0.3) < 0.05


def test_background_is_spread_over_a_cube_as_large_as_the_cloud():
    points = torch.nn.functional.normalize(clouds(sets=100, points=1000), dim=2)
    result = Background(most=0.5, probability=1.0)(points, seeded())
    ratio = result.norm(dim=2) / result.norm(dim=2).median(dim=1, keepdim=True).values  # 1 for points of the sphere
    moved = (ratio - 1).abs() > 0.1
    assert 0.15 < moved.float().mean() < 0.3
    assert 1.6 < ratio.max() < 1.2 * math.sqrt(3)


def test_a_crop_leaves_one_side_of_a_plane():
    points = torch.cat([large_clouds(sets=50), torch.arange(200.0)[None, :, None].expand(50, -1, 1)], dim=2)
    result = Crop(most=0.6, probability=1.0)(points, seeded())
    shares = []
    for cloud, cut in zip(points, result, strict=True):
        rows = cut[:, 3].long()  # a feature goes with its point
        left = torch.zeros(200, dtype=torch.bool)
        left[rows] = True
        assert torch.equal(rows[left], torch.arange(200)[left])  # those that are left keep their rows
        shares.append(1 - left.float().mean())
        if 0 < left.sum() < 200:
            plane = SVC(kernel="linear", C=1e4).fit(cloud[:, :3], left)
            assert plane.score(cloud[:, :3], left) > 0.99
    assert 0.25 < torch.stack(shares).mean() < 0.35
    assert max(shares) <= 0.6
    few = Crop(most=0.5, probability=1.0)(points[:, :3], seeded())
    assert min(len(cloud.unique(dim=0)) for cloud in few) == 2  # no more than half is cut off


def test_a_thinned_cloud_has_fewer_points_log_uniformly():
    result = Thin(least=1 / 16, probability=1.0)(large_clouds(sets=400), seeded())
    shares = torch.tensor([len(cloud.unique(dim=0)) / 200 for cloud in result])
    assert shares.min() >= 1 / 16
    assert shares.log().mean() == pytest.approx(math.log(1 / 16) / 2, abs=0.12)


def test_uneven_density_falls_along_a_direction():
    points = torch.cat([large_clouds(sets=300), torch.arange(200.0)[None, :, None].expand(300, -1, 1)], dim=2)
    result = Uneven(most=1.5, probability=1.0)(points, seeded())
    drawn = torch.stack([points[row, result[row, :, 3].long(), :3] for row in range(300)])
    shift = (drawn.mean(dim=1) - points[..., :3].mean(dim=1)).norm(dim=1)
    # A fall of the density by s per deviation moves the mean of a normal cloud by s deviations of 2.
    assert shift.mean() / 2 == pytest.approx(1.5 / 2, abs=0.08)


@pytest.fixture(scope="module")
def surface():
    """Points of a tetrahedron with their normals, [40, 6]."""
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    mesh = pointset.data.Mesh(corners, np.array([[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]))
    return torch.tensor(np.hstack(pointset.data.sample_points(mesh, 40, seed=0, normals=True)))


@pytest.mark.parametrize("name", ["stretch", "rotate-up", "rotate-any", "rotate-up-18", "scale", "jitter", "shift"])
@pytest.mark.parametrize("up", ["y", "z"])
def test_normals_stay_normal_to_the_surface_and_features_stay(name, up, surface):
    beside = torch.rand(1, 40, 2, generator=seeded())
    given = torch.cat([surface[None], beside], dim=2)
    changed = augmentation_from_names((name,), up)(given, seeded(1), columns=Columns(normals=True))
    assert torch.equal(changed[..., 6:], beside)
    assert torch.equal(augmentation_from_names((name,), up)(surface[None, :, :3], seeded(1)), changed[..., :3])
    if name in ("jitter", "shift"):
        assert torch.equal(changed[..., 3:], given[..., 3:])
        return
    # Tangents, the differences of points of one face, are what the map made of them: normals are normal to them.
    for face in surface[:, 3:].unique(dim=0):
        mine = (surface[:, 3:] == face).all(dim=1).nonzero()[:, 0]
        tangents = changed[0, mine, :3] - changed[0, mine[0], :3]
        torch.testing.assert_close(tangents @ changed[0, mine[0], 3:6], torch.zeros(len(mine)), atol=1e-5, rtol=0)
    torch.testing.assert_close(changed[0, :, 3:6].norm(dim=1), torch.ones(40))


BOTH = [CutMix("random"), CutMix("nearest")]


def marked(sets: int, points: int, seed: int = 7) -> Tensor:
    """Random points; the first coordinate of every point of cloud i rounds to i."""
    clouds = torch.rand(sets, points, 3, generator=seeded(seed)) * 0.9 - 0.45
    clouds[..., 0] += torch.arange(sets)[:, None]
    return clouds


def rows(points: Tensor) -> set[tuple[float, ...]]:
    return {tuple(point) for point in points.tolist()}


@pytest.mark.parametrize("mix", BOTH)
def test_every_set_holds_points_of_its_own_and_of_its_partner_by_the_shares_each_at_most_once(mix):
    clouds = marked(300, 20)
    before = clouds.clone()
    found = mix(clouds, seeded())
    assert torch.equal(clouds, before)
    came = found.points[..., 0].round().long() != torch.arange(300)[:, None]
    torch.testing.assert_close(came.float().mean(dim=1), found.shares)
    for row, partner in enumerate(found.partners.tolist()):
        own, theirs = found.points[row][~came[row]], found.points[row][came[row]]
        assert rows(own) <= rows(clouds[row])
        assert rows(theirs) <= rows(clouds[partner])
        assert len(rows(found.points[row])) == 20
    assert sorted(found.partners.tolist()) == list(range(300))


@pytest.mark.parametrize("mix", BOTH)
def test_half_of_the_sets_are_mixed_with_a_share_uniform_on_0_to_1(mix):
    shares = mix(marked(4000, 50), seeded()).shares
    mixed = shares[shares > 0]
    assert abs(len(mixed) / 4000 - 0.5) < 0.03
    assert mixed.min() == pytest.approx(1 / 50)
    assert mixed.max() == pytest.approx(49 / 50)
    assert abs(mixed.mean() - 0.49) < 0.02
    assert abs((mixed < 0.25).float().mean() - 0.25) < 0.03
    always = CutMix(mix.which, probability=1.0)(marked(100, 50), seeded()).shares
    assert (always > 0).sum() >= 97  # all but those whose partner they are themselves


def test_cutmix_k_replaces_the_points_nearest_to_one_by_the_partners_nearest_to_it():
    clouds = torch.rand(40, 30, 3, generator=seeded(1))
    found = CutMix("nearest", probability=1.0)(clouds, seeded())
    for row, partner in enumerate(found.partners.tolist()):
        count = round(float(found.shares[row]) * 30)
        kept = rows(found.points[row]) & rows(clouds[row])
        gone, came = (rows(clouds[row]) - kept), rows(found.points[row]) - kept
        assert len(gone) == len(came) == count
        both = (clouds[row], clouds[partner])
        ways = [tuple(rows(nearest(cloud, centre, count)) for cloud in both) for centre in clouds[row]]
        assert count == 0 or (gone, came) in ways


def nearest(cloud: Tensor, centre: Tensor, count: int) -> Tensor:
    return cloud[(cloud - centre).square().sum(dim=1).argsort()[:count]]


@pytest.mark.parametrize("mix", BOTH)
def test_sets_of_several_sizes_keep_their_sizes_and_take_no_padding(mix):
    clouds, sizes = marked(60, 12), torch.arange(60) % 13
    mask = torch.arange(12) < sizes[:, None]
    clouds[~mask] = 0.0
    found = mix(clouds, seeded(), mask)
    assert (found.points[~mask] == 0).all()
    assert (found.points[mask] != 0).any(dim=1).all()
    assert (found.shares[sizes < 2] == 0).all()
    assert (found.shares > 0).sum() > 15
    came = (found.points[..., 0].round().long() != torch.arange(60)[:, None]) & mask
    torch.testing.assert_close(came.sum(dim=1) / sizes.clamp(min=1), found.shares)


def mixed_sets() -> PointSets:
    return pointset.from_arrays(marked(12, 9), np.arange(12) % 3, points=5, normalize="none")


def test_batches_have_both_labels_and_an_epoch_is_the_same_to_the_last_bit():
    first, again = (list(batches(mixed_sets(), 5, seed=0, epoch=1, mix=CutMix("random"))) for _ in range(2))
    for one, other in zip(first, again, strict=True):
        assert one.others is not None
        assert torch.equal(one.points, other.points)
        shapes = one.points[..., 0].round().long()
        for held, label, second, share in zip(shapes, one.labels, one.others, one.shares, strict=True):
            found = {int(shape) % 3 for shape in held}
            assert found <= {int(label), int(second)}
            assert share == 0 or int(second) in found
    assert any((batch.shares > 0).any() for batch in first)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_the_loss_is_that_of_the_labels_mixed_by_their_shares(smoothing):
    objective = Classification(mixed_sets(), Recipe(label_smoothing=smoothing), 0)
    output = torch.randn(4, 3, generator=seeded(), dtype=torch.float64)
    labels, others, shares = torch.tensor([0, 1, 2, 0]), torch.tensor([1, 1, 0, 2]), torch.tensor([0.0, 0.3, 0.8, 0.4])
    batch = Batch(torch.zeros(4, 5, 3), None, labels, others, shares.double())
    targets = (1 - shares[:, None]) * F.one_hot(labels, 3) + shares[:, None] * F.one_hot(others, 3)
    found = objective.loss(output, batch)
    torch.testing.assert_close(found.mean, F.cross_entropy(output, targets.double(), label_smoothing=smoothing))
    larger = torch.tensor([0, 1, 0, 0])  # of the third, four fifths are the other's
    assert objective.loss(F.one_hot(larger, 3).double(), batch).sums[0] == 4
    plain = objective.loss(output, Batch(batch.points, None, labels))
    unmixed = objective.loss(output, batch._replace(shares=torch.zeros(4).double()))
    torch.testing.assert_close(plain.mean, unmixed.mean)
