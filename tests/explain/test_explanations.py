"""Rollout, occlusion, critical points and what is pooled: values by hand, and relations between them."""

import math

import pytest
import torch
from torch import nn

import pointset
from pointset.errors import PointsetError
from pointset.explain.faithfulness import EXPLANATIONS
from pointset.explain.importance import critical_points, occlusion_influence, rollout
from pointset.explain.maps import attention_maps

N = 17


def cloud(n: int = N) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(5))


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=4, **{"dim": 16, **options}).eval()


class Decides(nn.Module):
    """A classifier that depends only on the height of the highest point."""

    def __init__(self) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(3.0))

    def forward(self, points: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        top = points[..., 2].masked_fill(~mask, -math.inf).amax(dim=1)
        return torch.stack([self.sharpness * top, torch.zeros_like(top)], dim=1)


def test_occlusion_finds_the_point_that_decides():
    points = cloud()
    highest = int(points[:, 2].argmax())
    found = occlusion_influence(Decides(), points, 0, neighbours=1)
    assert found.argmax() == highest
    others = torch.arange(N) != highest
    assert (found[others] == 0).all()
    whole = (3 * points[:, 2].max()).sigmoid().log()
    without = (3 * points[others, 2].max()).sigmoid().log()
    torch.testing.assert_close(found[highest], whole - without)


def test_occlusion_takes_the_nearest_points_along_and_watches_the_predicted_class():
    points = torch.tensor([[0.0, 0, 0], [0.1, 0, 0], [5.0, 0, 1], [5.1, 0, 0]])
    found = occlusion_influence(Decides(), points, neighbours=2)
    assert (found > 0).tolist() == [False, False, True, True]
    every = cloud(64)
    default, sixteenth = (occlusion_influence(Decides(), every, 0, neighbours=how) for how in (None, 4))
    assert torch.equal(default, sixteenth)


class Counts(Decides):
    """Its first logit is a number that identifies the points that remain."""

    def forward(self, points: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = (mask * torch.arange(1.0, mask.shape[1] + 1)).sum(dim=1) + 0 * self.sharpness
        return torch.stack([kept / 1e3, torch.zeros_like(kept)], dim=1)


def test_occlusion_removes_the_nearest_points_also_far_from_the_origin():
    numbers = torch.arange(40.0)
    grid = (numbers * (numbers + 1) / 2)[:, None] * torch.tensor([0.25, 0, 0])  # gaps 0.25, 0.5, 0.75, ...
    near, far = (occlusion_influence(Counts(), points, 0, neighbours=2) for points in (grid, grid + 10_000.0))
    assert torch.equal(near, far)
    same = occlusion_influence(Counts(), torch.zeros(40, 3), 0, neighbours=1)
    assert (same.diff() > 0).all(), "each of equal points is removed itself"


@pytest.mark.parametrize("name", ["rff-max", "rffp-max", "isab4-max", "sab-max"])
def test_points_that_are_not_critical_can_be_left_out(name):
    model = model_of(name, dim=8).double()
    points = cloud(40).double()
    counts = critical_points(model, points)
    assert counts.sum() == 8
    assert counts.shape == (40,)
    if name == "rff-max":  # elsewhere the others have been read by those that stay
        torch.testing.assert_close(model(points[counts > 0][None]), model(points[None]))
    rows = model.encode(points[None])[0]
    torch.testing.assert_close(rows[counts > 0].amax(dim=0), rows.amax(dim=0))


@pytest.mark.parametrize("name", ["isab4-pma", "sab-pma", "rff-pma", "isab4-pma3"])
def test_rollout_equals_the_product_of_whole_matrices(name):
    maps = attention_maps(model_of(name), cloud())
    matrix, rows = torch.eye(N), None
    for found in maps:
        mean = found.weights.mean(dim=0)
        if found.kind == "reads":
            read = mean
        elif found.kind == "writes":
            matrix = (0.5 * torch.eye(N) + 0.5 * mean @ read) @ matrix
        elif found.kind == "pools":
            rows = mean @ matrix
        elif found.points_are == "both":
            matrix = (0.5 * torch.eye(N) + 0.5 * mean) @ matrix
        else:
            rows = 0.5 * rows + 0.5 * mean @ rows
    torch.testing.assert_close(rollout(maps), rows)
    torch.testing.assert_close(rollout(maps).sum(dim=1), torch.ones(len(rows)))


def test_rollout_refuses_maps_that_do_not_belong_together():
    maps = attention_maps(model_of("isab4-pma"), cloud())
    halves = ([maps[0], *maps[2:]], maps[1:], [maps[0], *maps[3:]], [maps[1], maps[0], *maps[2:]])
    for some in halves:  # without writes, without reads, reads and writes of two blocks, in the wrong order
        with pytest.raises(PointsetError, match=r"encoder.0.reads is not followed by encoder.0.writes: .* all maps"):
            rollout(some)
    with pytest.raises(PointsetError, match="kind 'pools', got 0"):
        rollout(attention_maps(model_of("isab4-max"), cloud()))
    with pytest.raises(PointsetError, match="maps of one cloud, got a batch"):
        rollout(attention_maps(model_of("isab4-pma"), cloud()[None]))


@pytest.mark.parametrize("name", ["isab4-pma", "rff-max+dumlp4"])
def test_pooled_attention_is_the_mean_over_heads_and_seeds_times_points(name):
    model = model_of(name)
    importance, pools = EXPLANATIONS["attention"](model, cloud(), 0), attention_maps(model, cloud())[-1]
    torch.testing.assert_close(importance, N * pools.weights.mean(dim=(0, 1)))
    with pytest.raises(PointsetError, match="does not pool by attention"):
        EXPLANATIONS["attention"](model_of("isab4-mean"), cloud(), 0)  # reads of its encoder are not the pooling's
