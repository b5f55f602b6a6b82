"""Attention maps as data: which attentions a model has, what rows mean, and that recording changes nothing."""

import math

import pytest
import torch
from torch import nn
from toy import covering_models

import pointset
from pointset.explain.maps import AttentionMap, find_map
from pointset.nn.attention import Multihead
from pointset.nn.blocks import SAB
from pointset.zoo.names import parse_name

ATTENDING = [name for name in covering_models() if any(choice.has_maps for choice in parse_name(name))]
ATTENDING += ["sab-pma2", "isab3-pma4", "rff-max+pma+pma2"]
HEADS, INDUCING, N = 2, 5, 11


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=4, **{"dim": 16, "heads": HEADS, **options})


def clouds(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def is_recording(model: nn.Module) -> bool:
    return any(module.record is not None for module in model.modules() if isinstance(module, Multihead))


def test_maps_come_in_order_with_their_kinds_shapes_and_sides():
    maps = pointset.attention_maps(model_of("isab5-pma3"), clouds(N, 3))
    assert [(found.layer, found.kind, tuple(found.weights.shape), found.points_are) for found in maps] == [
        ("encoder.0.reads", "reads", (HEADS, INDUCING, N), "keys"),
        ("encoder.0.writes", "writes", (HEADS, N, INDUCING), "queries"),
        ("encoder.1.reads", "reads", (HEADS, INDUCING, N), "keys"),
        ("encoder.1.writes", "writes", (HEADS, N, INDUCING), "queries"),
        ("pool.pma.mab", "pools", (HEADS, 3, N), "keys"),
        ("pool.sab.mab", "self", (HEADS, 3, 3), "neither"),
    ]
    (first, *_) = pointset.attention_maps(model_of("sab-max"), clouds(N, 3))
    assert (first.kind, first.points_are, tuple(first.weights.shape)) == ("self", "both", (HEADS, N, N))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize("name", ATTENDING)
def test_rows_sum_to_one_over_real_keys_and_looking_changes_nothing(name, form):
    model = model_of(name, form=form, dropout=0.0).train()
    points, mask = clouds(2, N, 3), torch.ones(2, N, dtype=torch.bool)
    mask[1, 4:] = False
    before, modes = model(points, mask), [module.training for module in model.modules()]
    before.sum().backward()
    gradients = {key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None}
    maps = pointset.attention_maps(model, points, mask)
    assert [module.training for module in model.modules()] == modes
    assert not is_recording(model)
    assert {key for key, p in model.named_parameters() if p.grad is not None} == set(gradients)
    assert all(torch.equal(model.get_parameter(key).grad, kept) for key, kept in gradients.items())
    torch.testing.assert_close(model(points, mask), before, atol=0, rtol=0)
    for found in maps:
        one = found[1]
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:2]))
        if found.points_are == "keys":
            assert (found.weights[1, :, :, 4:] == 0).all()
            assert one.weights.shape[2] == 4
        if found.points_are == "queries":
            assert one.weights.shape[1] == 4


@pytest.mark.parametrize("name", ATTENDING)
def test_a_cloud_of_a_padded_batch_has_the_maps_it_has_alone(name):
    model = model_of(name)
    points, mask = clouds(2, N, 3), torch.ones(2, N, dtype=torch.bool)
    mask[1, 6:] = False
    points[1, 6:] = math.nan  # a coordinate in padding may be anything
    together = pointset.attention_maps(model, points, mask)
    alone = pointset.attention_maps(model, points[1, :6])
    for batch, one in zip(together, alone, strict=True):
        assert (batch.layer, batch.kind, batch.points_are) == (one.layer, one.kind, one.points_are)
        torch.testing.assert_close(batch[1].weights, one.weights)
        assert len(batch) == 2
    for masked, one in zip(pointset.attention_maps(model, points[1], mask[1]), alone, strict=True):
        torch.testing.assert_close(masked.weights, one.weights)


def test_nothing_is_kept_after_an_error_and_each_part_keeps_its_mode():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.sab, self.frozen = SAB(3, 8), nn.Dropout().eval()

        def forward(self, points, mask):
            self.sab(points, mask)
            raise KeyError("broken")

    model = Broken()
    with pytest.raises(KeyError):
        pointset.attention_maps(model, clouds(N, 3))
    assert not is_recording(model)
    assert model.training
    assert not model.frozen.training


def test_an_attention_that_is_used_twice_has_two_maps_in_the_order_of_use():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = SAB(8, 8), SAB(3, 8)

        def forward(self, points, mask):
            return self.last(self.last(self.first(points, mask), mask), mask)

    layers = [found.layer for found in pointset.attention_maps(Tied(), clouds(N, 3))]
    assert layers == ["first.mab", "last.mab", "last.mab"]


def by_hand(rows: list[list[float]], **changes) -> AttentionMap:
    return AttentionMap("layer", "reads", torch.tensor([rows]), "keys", **changes)


def test_measures_by_hand():
    found = by_hand([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]])
    assert found.relative()[0, 1].tolist() == [4.0, 0.0, 0.0, 0.0]
    torch.testing.assert_close(found.entropy(), torch.tensor([[1.0, 0.0, 0.5]]))
    torch.testing.assert_close(found.row_distance(), torch.tensor([(0.75 + 0.5 + 0.5) / 3]))
    assert math.isnan(by_hand([[1.0]]).row_distance().item())
    assert by_hand([[1.0]]).entropy().item() == 1.0


def test_a_batch_measures_each_cloud_by_its_real_keys():
    weights = torch.tensor([[[[0.5, 0.5, 0.0, 0.0]]], [[[0.25, 0.25, 0.25, 0.25]]]])
    mask = torch.tensor([[True, True, False, False], [True] * 4])
    found = AttentionMap("layer", "pools", weights, "keys", mask)
    assert found.entropy().flatten().tolist() == [1.0, 1.0]
    assert found.relative()[0].flatten().tolist() == [1.0, 1.0, 0.0, 0.0]
    assert found[0].entropy().tolist() == [[1.0]]


@pytest.mark.parametrize(("name", "layer"), [("isab5-pma", "encoder.0.writes"), ("sab-max", "encoder.1.mab")])
def test_a_batch_measures_the_distance_of_real_queries_alone(name, layer):
    points, mask = clouds(3, N, 3), torch.ones(3, N, dtype=torch.bool)
    mask[1, 4:] = mask[2, 1:] = False
    found = find_map(pointset.attention_maps(model_of(name), points, mask), layer=layer)
    alone = torch.stack([found[row].row_distance() for row in range(3)])
    torch.testing.assert_close(found.row_distance(), alone, equal_nan=True)
    assert alone[2].isnan().all()


def test_maps_are_found_by_layer_or_kind():
    maps = pointset.attention_maps(model_of("isab5-pma"), clouds(N, 3))
    assert find_map(maps, layer="encoder.1.reads") is maps[2]
    assert find_map(maps, kind="pools") is maps[4]
    for wanted, words in (
        ({"layer": "encoder.9"}, "'encoder.9': .* encoder.0.reads"),
        ({"kind": "reads"}, "2 .*'reads'"),
    ):
        with pytest.raises(pointset.PointsetError, match=words):
            find_map(maps, **wanted)


def test_the_table_has_a_line_per_weight():
    model = pointset.create_model("isab3-pma2", classes=4, dim=16, heads=2)
    points = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    reads = pointset.attention_maps(model, points[0])[2]
    table = reads.to_pandas()
    assert list(table.columns) == ["layer", "kind", "head", "query", "key", "weight", "relative"]
    line = table[(table["head"] == 1) & (table["query"] == 2) & (table["key"] == 6)]
    assert line.weight.item() == pytest.approx(float(reads.weights[1, 2, 6]))
    assert line.relative.item() == pytest.approx(7 * float(reads.weights[1, 2, 6]))
    assert table.groupby(["head", "query"]).weight.sum().to_numpy() == pytest.approx(1.0)
    mask = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])
    table = pointset.attention_maps(model, points, mask)[0].to_pandas()  # padding is left out
    assert table.groupby("cloud")["key"].max().tolist() == [6, 3]
