"""Attention maps as data, which looking does not change, and measures of specialisation of models made for them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from toy import covering_models, random_cache, small

import pointset
from pointset import DataOptions, PointsetError, PointSets, find_map
from pointset.configuration import AttentionOptions
from pointset.explain import AttentionMap
from pointset.explain.specialisation import DESCRIPTIONS, specialisation, untrained
from pointset.nn.attention import Multihead
from pointset.nn.blocks import ISAB, SAB
from pointset.zoo.local_feature_inputs import fit_local_features
from pointset.zoo.names import parse_name

ATTENDING = [name for name in covering_models() if any(choice.has_maps for choice in parse_name(name))]
ATTENDING += ["sab-pma2", "isab3-pma4", "rff-max+pma+pma2"]
HEADS, INDUCING, N = 2, 5, 11


def clouds(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def is_recording(model: nn.Module) -> bool:
    return any(module.record is not None for module in model.modules() if isinstance(module, Multihead))


def test_maps_come_in_order_with_their_kinds_shapes_and_sides():
    maps = pointset.attention_maps(small("isab5-pma3", heads=HEADS), clouds(N, 3))
    assert [(found.layer, found.kind, tuple(found.weights.shape), found.points_are) for found in maps] == [
        ("encoder.0.reads", "reads", (HEADS, INDUCING, N), "keys"),
        ("encoder.0.writes", "writes", (HEADS, N, INDUCING), "queries"),
        ("encoder.1.reads", "reads", (HEADS, INDUCING, N), "keys"),
        ("encoder.1.writes", "writes", (HEADS, N, INDUCING), "queries"),
        ("pool.pma.mab", "pools", (HEADS, 3, N), "keys"),
        ("pool.sab.mab", "self", (HEADS, 3, 3), "neither"),
    ]
    (first, *_) = pointset.attention_maps(small("sab-max", heads=HEADS), clouds(N, 3))
    assert (first.kind, first.points_are, tuple(first.weights.shape)) == ("self", "both", (HEADS, N, N))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize("name", ATTENDING)
def test_rows_sum_to_one_over_real_keys_and_looking_changes_nothing(name, form):
    model = small(name, heads=HEADS, form=form, dropout=0.0).train()
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


@pytest.mark.parametrize("name", ATTENDING)
def test_a_cloud_of_a_padded_batch_has_the_maps_it_has_alone(name):
    model = small(name, heads=HEADS)
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

        def forward(self, points, mask=None):
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

        def forward(self, points, mask=None):
            return self.last(self.last(self.first(points, mask), mask), mask)

    layers = [found.layer for found in pointset.attention_maps(Tied(), clouds(N, 3))]
    assert layers == ["first.mab", "last.mab", "last.mab"]


def test_measures_by_hand():
    """Of a batch, each cloud is measured by its real keys."""
    rows = torch.tensor([[[[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]]])
    found = AttentionMap("layer", "reads", rows[0], "keys")
    assert found.relative()[0, 1].tolist() == [4.0, 0.0, 0.0, 0.0]
    torch.testing.assert_close(found.entropy(), torch.tensor([[1.0, 0.0, 0.5]]))
    torch.testing.assert_close(found.row_distance(), torch.tensor([(0.75 + 0.5 + 0.5) / 3]))
    one = AttentionMap("layer", "reads", torch.ones(1, 1, 1), "keys")
    assert (math.isnan(one.row_distance().item()), one.entropy().item()) == (True, 1.0)
    mask = torch.tensor([[True, True, False, False], [True] * 4])
    batch = AttentionMap("layer", "pools", torch.cat([rows[:, :, 2:], rows[:, :, :1]]), "keys", mask)
    assert batch.entropy().flatten().tolist() == [1.0, 1.0]
    assert batch.relative()[0].flatten().tolist() == [1.0, 1.0, 0.0, 0.0]
    assert batch[0].entropy().tolist() == [[1.0]]


@pytest.mark.parametrize(("name", "layer"), [("isab5-pma", "encoder.0.writes"), ("sab-max", "encoder.1.mab")])
def test_a_batch_measures_the_distance_of_real_queries_alone(name, layer):
    points, mask = clouds(3, N, 3), torch.ones(3, N, dtype=torch.bool)
    mask[1, 4:] = mask[2, 1:] = False
    found = find_map(pointset.attention_maps(small(name, heads=HEADS), points, mask), layer=layer)
    alone = torch.stack([found[row].row_distance() for row in range(3)])
    torch.testing.assert_close(found.row_distance(), alone, equal_nan=True)
    assert alone[2].isnan().all()


def test_maps_are_found_by_layer_or_kind():
    maps = pointset.attention_maps(small("isab5-pma", heads=HEADS), clouds(N, 3))
    assert find_map(maps, layer="encoder.1.reads") is maps[2]
    assert find_map(maps, kind="pools") is maps[4]
    with pytest.raises(pointset.PointsetError, match=r"2 .*'reads'"):
        find_map(maps, kind="reads")


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


SHAPES, POINTS = 12, 60


@pytest.fixture(scope="module")
def sets() -> PointSets:
    """Points in boxes, of two classes: flat and tall."""
    points = torch.rand(SHAPES, POINTS, 3, generator=torch.Generator().manual_seed(0)) - 0.5
    labels = torch.arange(SHAPES) % 2
    points = points * torch.where(labels == 0, 0.2, 1.0)[:, None, None].expand(-1, -1, 3)
    own = replace(random_cache(SHAPES, classes=2), points=points.numpy())
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

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.isab(points, mask).mean(dim=1)


def test_inducing_points_that_read_different_regions_are_specialised(sets):
    found = specialisation(Looks(200.0), sets, per_class=4)
    assert (found.layer, found.shapes, found.measures["entropy"].shape) == ("isab.reads", 8, (1, 4))
    assert found.measures["entropy"].max() < 0.5
    assert found.measures["overlap"].max() < 0.1
    assert found.measures["specificity"].min() > 0.2
    assert found.measures["stability"].min() > 0.3


@pytest.mark.parametrize("model", [Looks(0.0), Looks(200.0, alike=True)], ids=["read everything", "are equal"])
def test_inducing_points_that_read_the_same_have_no_specificity(sets, model):
    measures = specialisation(model, sets).measures
    assert (measures["entropy"] > 0.999).all() if model.sharpness == 0 else (measures["entropy"] < 0.5).all()
    torch.testing.assert_close(measures["overlap"], torch.ones(1, 4))
    for name in ("specificity", "stability")[: 1 + (model.sharpness == 0)]:
        torch.testing.assert_close(measures[name], torch.zeros(1, 4), atol=1e-5, rtol=0)


@pytest.fixture(scope="module")
def ragged() -> PointSets:
    """Shapes of two classes with 5 to 29 points, all far from the zeros of the padding."""
    generator = torch.Generator().manual_seed(2)
    sizes = [17, 5, 29, 11, 8, 23]
    points = torch.rand(sum(sizes), 3, generator=generator) + torch.tensor([1.0, 2.0, 3.0])
    offsets = np.cumsum([0, *sizes])
    own = replace(
        random_cache(6, classes=2), points=points.numpy(), labels=np.array([0, 1, 1, 0, 1, 0]), offsets=offsets
    )
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
    assert found.measures["consistency"][1, 2].item() == pytest.approx(np.mean(likeness), abs=1e-5)


def test_the_seed_decides_only_the_augmentation(sets):
    model = pointset.create_model("isab4-pma", classes=2, dim=8, heads=2)
    first, same, other = (specialisation(model, sets, seed=seed).measures for seed in (0, 0, 1))
    for name in DESCRIPTIONS:
        assert torch.equal(first[name], same[name])
        assert torch.equal(first[name], other[name]) == (name != "stability")


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
    told = pointset.create_model("isab3-pma", classes=2, dim=8, local_features="upright")
    fit_local_features(told, sets.with_local_features("upright"))
    assert told.numbers.mean.any()
    assert torch.equal(untrained(told).numbers.mean, told.numbers.mean)
    with pytest.raises(PointsetError, match="Looks is not a zoo model"):
        untrained(Looks(1.0))


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
