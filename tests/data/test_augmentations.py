"""PointCutMix: which points are mixed, how many, the mixed labels, and names in recipes."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Generator, Tensor

import pointset
from pointset.data.augmentations import MIXINGS, CutMix, recipe_augmentations
from pointset.data.batches import Batch, batches
from pointset.data.point_sets import PointSets
from pointset.training.objectives import Classification
from pointset.training.recipe import Recipe

BOTH = [CutMix("random"), CutMix("nearest")]


def seeded(seed: int = 0) -> Generator:
    return torch.Generator().manual_seed(seed)


def marked(sets: int, points: int, seed: int = 7) -> Tensor:
    """Random points; the first coordinate of every point of cloud i rounds to i."""
    clouds = torch.rand(sets, points, 3, generator=seeded(seed)) * 0.9 - 0.45
    clouds[..., 0] += torch.arange(sets)[:, None]
    return clouds


def rows(points: Tensor) -> set[tuple[float, ...]]:
    return {tuple(point) for point in points.tolist()}


@pytest.mark.parametrize("mix", BOTH)
def test_every_set_holds_points_of_its_own_and_of_its_partner_by_the_shares_each_at_most_once(mix: CutMix) -> None:
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
def test_half_of_the_sets_are_mixed_with_a_share_uniform_on_0_to_1(mix: CutMix) -> None:
    shares = mix(marked(4000, 50), seeded()).shares
    mixed = shares[shares > 0]
    assert abs(len(mixed) / 4000 - 0.5) < 0.03
    assert mixed.min() == pytest.approx(1 / 50)
    assert mixed.max() == pytest.approx(49 / 50)
    assert abs(mixed.mean() - 0.49) < 0.02
    assert abs((mixed < 0.25).float().mean() - 0.25) < 0.03
    always = CutMix(mix.which, probability=1.0)(marked(100, 50), seeded()).shares
    assert (always > 0).sum() >= 97  # all but those whose partner they are themselves


def test_cutmix_k_replaces_the_points_nearest_to_one_by_the_partners_nearest_to_it() -> None:
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
def test_sets_of_several_sizes_keep_their_sizes_and_take_no_padding(mix: CutMix) -> None:
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


def sets() -> PointSets:
    return pointset.from_arrays(marked(12, 9), np.arange(12) % 3, points=5, normalize="none")


def test_batches_have_both_labels_and_an_epoch_is_the_same_to_the_last_bit() -> None:
    first, again = (list(batches(sets(), 5, seed=0, epoch=1, mix=CutMix("random"))) for _ in range(2))
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
def test_the_loss_is_that_of_the_labels_mixed_by_their_shares(smoothing: float) -> None:
    objective = Classification(sets(), Recipe(label_smoothing=smoothing), 0)
    output = torch.randn(4, 3, generator=seeded(), dtype=torch.float64)
    labels, partners, shares = (
        torch.tensor([0, 1, 2, 0]),
        torch.tensor([1, 1, 3, 2]),
        torch.tensor([0.0, 0.3, 0.8, 0.4]),
    )
    others = labels[partners]
    batch = Batch(torch.zeros(4, 5, 3), None, labels, others, shares.double())
    targets = (1 - shares[:, None]) * F.one_hot(labels, 3) + shares[:, None] * F.one_hot(others, 3)
    found = objective.loss(output, batch)
    torch.testing.assert_close(found.mean, F.cross_entropy(output, targets.double(), label_smoothing=smoothing))
    larger = torch.tensor([0, 1, 0, 0])  # of the third, four fifths are the other's
    assert objective.loss(F.one_hot(larger, 3).double(), batch).sums[0] == 4
    plain = objective.loss(output, Batch(batch.points, None, labels))
    unmixed = objective.loss(output, batch._replace(shares=torch.zeros(4).double()))
    torch.testing.assert_close(plain.mean, unmixed.mean)


@pytest.mark.parametrize("name", sorted(MIXINGS))
def test_a_recipe_names_it_last(name: str) -> None:
    augment, mix = recipe_augmentations(("scale", "drop", name))
    assert (len(augment.steps), mix) == (2, MIXINGS[name])
