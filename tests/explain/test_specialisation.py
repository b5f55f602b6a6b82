"""Measures of specialisation, on models constructed to have extreme values."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from toy import pool

import pointset
from pointset.configuration import AttentionOptions
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.explain.specialisation import DESCRIPTIONS, specialisation, untrained
from pointset.nn.blocks import ISAB
from pointset.zoo.neighbourhood_inputs import fit_numbers

SHAPES, POINTS = 12, 60


@pytest.fixture(scope="module")
def sets() -> PointSets:
    """Points in boxes, of two classes: flat and tall."""
    points = torch.rand(SHAPES, POINTS, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    labels = torch.arange(SHAPES) % 2
    points = points * torch.where(labels == 0, 0.2, 1.0)[:, None, None].expand(-1, -1, 3)
    own = replace(pool(SHAPES, classes=2), points=points.numpy())
    return PointSets(own, DataOptions(points=POINTS, normalize="none"))


class Looks(nn.Module):
    """One ISAB with one head whose inducing point i attends along direction i, with the given sharpness."""

    def __init__(self, sharpness: float, alike: bool = False) -> None:
        super().__init__()
        self.sharpness = sharpness
        self.isab = ISAB(3, 4, inducing=4, options=AttentionOptions(heads=1))
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.zero_()
            directions = torch.tensor([[1.0, 0, 0, 0], [-1, 0, 0, 0], [0, 1, 0, 0], [0, -1, 0, 0]])
            self.isab.inducing_points.copy_(directions[:1].expand(4, -1) if alike else directions)
            self.isab.reads.multihead.query.weight.copy_(torch.eye(4) * sharpness)
            self.isab.reads.multihead.key.weight.copy_(torch.eye(4)[:, :3])

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return self.isab(points, mask).mean(dim=1)


def test_inducing_points_that_read_different_regions_are_specialised(sets):
    found = specialisation(Looks(200.0), sets, per_class=4)
    assert (found.layer, found.shapes, found.measures["entropy"].shape) == ("isab.reads", 8, (1, 4))
    assert found.measures["entropy"].max() < 0.5
    assert found.measures["overlap"].max() < 0.1
    assert found.measures["own place"].min() > 0.2
    assert found.measures["steadiness"].min() > 0.3


@pytest.mark.parametrize("model", [Looks(0.0), Looks(200.0, alike=True)], ids=["read everything", "are equal"])
def test_inducing_points_that_read_the_same_have_no_own_place(sets, model):
    measures = specialisation(model, sets).measures
    assert (measures["entropy"] > 0.999).all() if model.sharpness == 0 else (measures["entropy"] < 0.5).all()
    torch.testing.assert_close(measures["overlap"], torch.ones(1, 4))
    for name in ("own place", "steadiness")[: 1 + (model.sharpness == 0)]:
        torch.testing.assert_close(measures[name], torch.zeros(1, 4), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def ragged() -> PointSets:
    """Shapes of two classes with 5 to 29 points, all far from the zeros of the padding."""
    generator = torch.Generator().manual_seed(2)
    sizes = [17, 5, 29, 11, 8, 23]
    points = torch.rand(sum(sizes), 3, generator=generator) + torch.tensor([1.0, 2.0, 3.0])
    offsets = np.cumsum([0, *sizes])
    own = replace(pool(6, classes=2), points=points.numpy(), labels=np.array([0, 1, 1, 0, 1, 0]), offsets=offsets)
    return PointSets(own, DataOptions(points=29, normalize="none"))


def test_padding_of_ragged_sets_does_not_affect_the_measures(ragged):
    """Compared with one pass per shape without padding, and regions computed by numpy's histogram."""
    model = pointset.create_model("isab4-pma", classes=2, dim=8, heads=2)
    clouds = [ragged[row][0] for row in range(6)]
    maps = [pointset.attention_maps(model, cloud)[0] for cloud in clouds]
    found = specialisation(model, ragged)
    torch.testing.assert_close(found.measures["entropy"], torch.stack([one.entropy() for one in maps]).mean(dim=0))
    distance = torch.stack([one.row_distance() for one in maps]).mean(dim=0)
    torch.testing.assert_close(1 - found.measures["overlap"].mean(dim=1), distance)
    everything = torch.cat(clouds).numpy()
    edges = [np.linspace(low, high, 5) for low, high in zip(everything.min(0), everything.max(0), strict=True)]

    def region(row: int, head: int, inducing: int) -> np.ndarray:
        weights = maps[row].weights[head, inducing].double().numpy()
        return np.histogramdd(clouds[row].numpy(), edges, weights=weights)[0]

    pairs = [(0, 3), (0, 5), (3, 5), (1, 2), (1, 4), (2, 4)]
    # As many pairs of each class: the mean over pairs is that over classes.
    likeness = [1 - np.abs(region(a, 1, 2) - region(b, 1, 2)).sum() / 2 for a, b in pairs]
    assert found.measures["same place"][1, 2].item() == pytest.approx(np.mean(likeness), abs=1e-5)


def test_the_seed_decides_only_the_augmentation(sets):
    model = pointset.create_model("isab4-pma", classes=2, dim=8, heads=2)
    first, same, other = (specialisation(model, sets, seed=seed).measures for seed in (0, 0, 1))
    for name in DESCRIPTIONS:
        assert torch.equal(first[name], same[name])
        assert torch.equal(first[name], other[name]) == (name != "steadiness")


def test_the_control_is_the_same_model_with_fresh_weights(sets):
    model = pointset.create_model("isab3-pma", classes=2, dim=8, seed=4)
    control = untrained(model)
    assert control.spec.seed == 5
    assert not torch.equal(control.encoder[0].inducing_points, model.encoder[0].inducing_points)
    trained, fresh = (specialisation(one, sets, "encoder.1.reads") for one in (model, control))
    table = trained.table(fresh)
    assert all(name in table for name in DESCRIPTIONS)
    assert set(trained.measures) == set(DESCRIPTIONS)
    assert "untrained" in table
    with pytest.raises(PointsetError, match="Looks is not a zoo model"):
        untrained(Looks(1.0))


def test_the_control_standardises_numbers_of_neighbourhoods_as_the_model_does(sets):
    model = pointset.create_model("isab3-pma", classes=2, dim=8, neighbourhoods="oriented")
    fit_numbers(model, sets.with_neighbourhoods("oriented"))
    assert torch.equal(untrained(model).numbers.mean, model.numbers.mean)
    assert model.numbers.is_fitted


def test_seeds_are_measured_like_inducing_points(sets):
    """Three equal seeds, and three that share a bound on the weights of each point."""
    sharp = {"pool_weights": "csparsemax", "bound": 1.0, "temperature": 1e-3}
    found = []
    for coverage in ("none", "seeds"):
        model = pointset.create_model("rff-pma3", classes=2, dim=8, **sharp, coverage=coverage)
        with torch.no_grad():
            model.pool.pma.seeds.copy_(model.pool.pma.seeds[:, :1].expand_as(model.pool.pma.seeds))
        found.append(specialisation(model, sets))
    assert [one.layer for one in found] == ["pool.pma.mab"] * 2
    torch.testing.assert_close(found[0].measures["overlap"], torch.ones(4, 3))
    assert found[1].measures["overlap"].max() < 0.5
    single = specialisation(pointset.create_model("sab-pma", classes=2, dim=8), sets)
    assert single.measures["overlap"].isnan().all()
    assert single.measures["entropy"].isfinite().all()
