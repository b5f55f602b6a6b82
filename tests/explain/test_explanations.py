"""Rollout, occlusion, critical points, exact support and gradients: by hand, related to each other, and checked."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import asked
from torch import nn

import pointset
from pointset import PointsetError, attention_maps
from pointset.explain.faithfulness import EXPLANATIONS, check_explanations
from pointset.explain.importance import critical_points, exact_support, occlusion_influence, rollout, support_map
from pointset.explain.inspection import network_of
from pointset.zoo.models import ensemble_of

FEW = 17


def cloud(n: int = FEW) -> torch.Tensor:
    return torch.randn(n, 3, generator=torch.Generator().manual_seed(5))


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=4, **{"dim": 16, "heads": 2, "seed": 1, **options}).eval()


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
    others = torch.arange(FEW) != highest
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
    matrix, rows = torch.eye(FEW), None
    for found in maps:
        mean = found.weights.mean(dim=0)
        if found.kind == "reads":
            read = mean
        elif found.kind == "writes":
            matrix = (0.5 * torch.eye(FEW) + 0.5 * mean @ read) @ matrix
        elif found.kind == "pools":
            rows = mean @ matrix
        elif found.points_are == "both":
            matrix = (0.5 * torch.eye(FEW) + 0.5 * mean) @ matrix
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
    torch.testing.assert_close(importance, FEW * pools.weights.mean(dim=(0, 1)))
    with pytest.raises(PointsetError, match="does not pool by attention"):
        EXPLANATIONS["attention"](model_of("isab4-mean"), cloud(), 0)  # reads of its encoder are not the pooling's


class FarPoints(nn.Module):
    """Class 1 if the set has far points: its logit is the sum over points of max(0, radius - 1)."""

    inputs = 3

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, points, mask=None):
        far = (points.norm(dim=2) - 1).clamp(min=0)
        far = far if mask is None else far * mask
        return torch.stack([far.new_zeros(len(far)), self.scale * far.sum(dim=1) - 1], dim=1)


@pytest.fixture
def far_cloud():
    """Forty points inside the unit ball and four far outside."""
    points = torch.randn(44, 3, generator=torch.Generator().manual_seed(0))
    points = 0.5 * points / points.norm(dim=1, keepdim=True)
    points[7], points[8], points[20], points[40] = torch.eye(3).repeat(2, 1)[:4].mul(4)
    return points


@pytest.mark.parametrize("name", ["gradient x input", "integrated gradients"])
def test_gradients_put_the_points_first_that_the_model_needs(far_cloud, name):
    model = FarPoints()
    importance = EXPLANATIONS[name](model, far_cloud, 1)
    assert set(importance.topk(4).indices.tolist()) == {7, 8, 20, 40}
    if name == "integrated gradients":  # they sum to the difference from the origin
        whole, origin = model(torch.stack([far_cloud, torch.zeros_like(far_cloud)])).detach()[:, 1].tolist()
        assert float(importance.sum()) == pytest.approx(whole - origin, rel=0.05)


def test_a_faithful_explanation_beats_the_random_order(far_cloud):
    curves = check_explanations(FarPoints(), [far_cloud] * 3, ["gradient x input"])
    explained, random = curves["gradient x input"].areas, curves["random"].areas
    assert explained["deletion"].mean() < random["deletion"].mean() - 0.1
    assert explained["insertion"].mean() > random["insertion"].mean() + 0.05
    whole = FarPoints()(far_cloud[None]).softmax(dim=1)[0, 1].item()
    for by in curves.values():  # both curves begin with the whole set
        assert by.deletion[0, 0] == by.insertion[0, 0] == pytest.approx(whole)


@pytest.mark.parametrize(("name", "lacks"), [("isab4-pma", {"critical points"}), ("rff-max", {"attention", "rollout"})])
def test_every_explanation_that_a_model_has_is_checked(name, lacks):
    model = pointset.create_model(name, classes=3, dim=16).eval()
    curves = check_explanations(model, [torch.randn(20, 3)])
    assert set(curves) == {*EXPLANATIONS, "random"} - lacks
    assert all(np.isfinite(by.deletion).all() for by in curves.values())


def test_the_same_seed_gives_the_same_random_order(far_cloud):
    first, same, other = (check_explanations(FarPoints(), [far_cloud], ["occlusion"], seed) for seed in (0, 0, 1))
    assert np.array_equal(first["random"].deletion, same["random"].deletion)
    assert not np.array_equal(first["random"].deletion, other["random"].deletion)


N = 120
CLOUD = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
SPARSE = {"pool_weights": ("sparsemax",), "temperature": 0.05}
SUPPORTED = [("rff-max", {}), ("rff-pma", SPARSE), ("rff-pma2", SPARSE), ("none-top8", {}), ("rff-max+pma", SPARSE)]
UNSUPPORTED = [("rff-pma", {}), ("rff-mean", {}), ("isab4-max", {}), ("sab-pma", SPARSE), ("dgcnn", {})]


@pytest.mark.parametrize("local_features", ["none", "upright"])
@pytest.mark.parametrize(("name", "options"), SUPPORTED)
def test_logits_are_those_of_the_deciding_points_alone(name, options, local_features) -> None:
    model = model_of(name, local_features=local_features, **options)
    support = exact_support(model, CLOUD)
    assert support is not None
    assert 0 < support.points.sum() < N
    rows = model.with_numbers(CLOUD[None])  # type: ignore[operator]
    with torch.no_grad():
        expected = model.eval()(rows)
        torch.testing.assert_close(model(rows[:, support.points]), expected, atol=1e-5, rtol=1e-5)
        changed = []
        for point in support.points.nonzero().flatten()[:5]:
            kept = support.points.clone()
            kept[point] = False
            changed.append(float((model(rows[:, kept]) - expected).abs().max()))
    assert max(changed) > 1e-4, "a point that decides can change the logits"
    assert support.change == pytest.approx(0, abs=1e-5)


def test_of_a_maximum_they_are_the_critical_points() -> None:
    model = model_of("rff-max")
    support = exact_support(model, CLOUD)
    assert support is not None
    assert torch.equal(support.points, critical_points(model, CLOUD) > 0)
    weights = support_map(support).weights
    assert weights.shape == (1, 1, N)
    assert float(weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize(("name", "options"), UNSUPPORTED)
def test_there_is_none_where_all_points_have_a_weight_or_points_interact(name, options) -> None:
    assert exact_support(model_of(name, **options), CLOUD) is None


def test_attend_prints_it_and_draws_it(tmp_path: Path, capsys) -> None:
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(8, N, 3)), [0, 1] * 4)
    model = pointset.create_model("rff-max", classes=2, dim=8, local_features="upright")
    pointset.fit(model, sets, pointset.Recipe(epochs=1), run=tmp_path / "run", progress=False)
    np.save(tmp_path / "cloud.npy", CLOUD)
    options = ("--model", tmp_path / "run", "-o", tmp_path / "page.html")
    found = asked(capsys, "attend", tmp_path / "cloud.npy", *options)
    assert found["layers"] == [{"layer": "support", "kind": "support", "shape": [1, 1, N]}]
    assert 0 < found["support"]["support"] <= 8
    assert found["support"]["change"] < 1e-5
    assert "the support: without all other points" in (tmp_path / "page.html").read_text()


def test_of_a_product_of_classifiers_the_network_is_looked_into() -> None:
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(12, N, 3)), [0, 1, 2, 3] * 3)
    svm = pointset.fit(pointset.create_model("features-svm", classes=4), sets, progress=False).model
    told, more = (model_of("rff-max", local_features=kind) for kind in ("upright", "none"))
    members = [told, svm, more]
    product = ensemble_of(members).eval()
    product.preparation = replace(members[0].preparation, points=N, cache_points=N, local_features="upright")
    product.classes = list("abcd")
    seen = pointset.explain.inspect_shape(product, CLOUD)
    assert [entry.kind for entry in seen.maps] == ["support"]
    with pytest.raises(pointset.PointsetError, match="has no network"):
        network_of(ensemble_of([svm, svm]))
