"""Models of the zoo: order, padding, options, names; and networks with local features as inputs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toy import OWN_WEIGHTS, covering_models, normal

import pointset
from pointset import PointsetError, Recipe
from pointset.data import Preparation, make_shape
from pointset.data.axes import UP_TO_Z
from pointset.data.local_features import WIDTHS, cloud_local_features
from pointset.nn import registry
from pointset.zoo.local_feature_inputs import turn_inputs
from pointset.zoo.names import LOCAL_FEATURES, used_options, zoo_name

FURTHER = ["isab5-pma4", "sab-pma2", "isab5-max+pma2", "rffp-aggr.set2set", "rff-aggr.settransformer"]
FEW = [name for name in covering_models() if not name.startswith("isab16-") or name.endswith("-max")] + FURTHER
"""Every encoder and every pooling."""
CLASSES = 7


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=CLASSES, **{"dim": 16, **options}).double().eval()


ENCODERS = [part.listed for part in registry.entries("encoder")]
OPTIONS = [
    {"form": "paper"},
    {"form": "paper", "norm": "set", "prenorm": True},
    {"norm": "layer"},
    {"norm": "set", "prenorm": True},
    {"scale": "head", "temperature": 0.5},
    {"scale": 0.7, "trained_temperature": True, "score": "bilinear"},
    {"score": "additive", "score_layers": 2},
    {"weights": "sparsemax", "norm": "group"},
    {"weights": ("entmax15", "csoftmax", "softmax", "csparsemax"), "norm": "instance", "prenorm": True},
    {"weights": "csparsemax", "coverage": "seeds", "bound": 1.0},
    {"weights": "csoftmax", "coverage": "heads", "bound": 1.5},
    {"pool_seeds": "mean"},
    {"pool_seeds": "max"},
    {"initial": "xavier"},
    {"decoder": "rff"},
    {"layers": 3},
    *({"weights": own} for own in OWN_WEIGHTS),
]
WITH_OPTIONS = [("isab4-pma", one) for one in OPTIONS]
WITH_OPTIONS += [("sab-max", one) for one in OPTIONS if {"form", "norm"} & one.keys()]


def title(value: object) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", str(value))  # of a function: another in each process


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in FEW), *WITH_OPTIONS], ids=title)
def test_invariant_to_order_and_padding(name, options):
    found = pointset.check_symmetry(model_of(name, **options))
    assert found.kind == "invariant"
    assert found.worst < 1e-8


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_is_equivariant(encoder):
    found = pointset.check_symmetry(model_of(f"{encoder}-max").encode)
    assert found.kind == "equivariant"
    assert found.worst < 1e-8


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in FEW), *WITH_OPTIONS], ids=title)
def test_padding_changes_neither_logits_nor_gradients(name, options):
    """For any length and content of padding, in training mode, so that batch statistics are tested too."""
    model = model_of(name, dropout=0.0, **options).train()
    points, mask = normal(3, 9, 3), torch.ones(3, 9, dtype=torch.bool)
    mask[1, 4:] = False

    def outcome(points: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        model.zero_grad()
        logits = model(points, mask)
        logits.square().sum().backward()
        return logits, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    logits, gradients = outcome(points, mask)
    assert gradients
    for extra in (1, 50):
        garbage = torch.full((3, extra, 3), float("nan"), dtype=torch.float64)
        padded, padding = torch.cat([points, garbage], 1), torch.zeros(3, extra, dtype=torch.bool)
        found, found_gradients = outcome(padded, torch.cat([mask, padding], 1))
        torch.testing.assert_close(found, logits)
        # The absorbed way leaves the key bias out, whose gradient is zero.
        assert all("key.bias" in key for key in gradients.keys() ^ found_gradients.keys())
        for key in gradients.keys() & found_gradients.keys():
            pair = found_gradients[key], gradients[key]
            torch.testing.assert_close(*pair, atol=1e-9, rtol=1e-7, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("name", FEW)
def test_an_empty_set_gives_finite_logits_that_depend_on_nothing(name):
    model, points = model_of(name), normal(2, 5, 3)
    mask = torch.tensor([[True] * 5, [False] * 5])
    logits = model(points, mask)
    assert logits.isfinite().all()
    torch.testing.assert_close(model(points[:, :0])[0], logits[1])
    torch.testing.assert_close(model(points * 3, mask)[1], logits[1])


@pytest.mark.parametrize("name", [name for name in FEW if name != "dgcnn"])
def test_every_parameter_gets_a_gradient(name):
    model = model_of(name, form="paper").train()
    model(normal(4, 50, 3)).square().sum().backward()
    # The key bias shifts all logits of a row alike and cancels, in the last layer of logits exactly.
    idle = [n for n, p in model.named_parameters() if (p.grad is None or not p.grad.any()) and "key.bias" not in n]
    assert idle == []


CHANGED = {"dim": 20, "heads": 2, "layers": 5, "form": "paper", "scale": "head", "norm": "set", "dropout": 0.35}
CHANGED |= {"pool_seeds": "mean", "initial": "xavier", "temperature": 2.0, "trained_temperature": True}
CHANGED |= {"attention_dropout": 0.3, "weights": "sparsemax", "pool_weights": "entmax15", "score": "bilinear"}
CHANGED |= {"decoder": "rff", "head_dim": 24, "head_norm": "batch", "pooled_dropout": 0.1}
CHANGED_WITH = [
    ("prenorm", True, {"norm": "layer"}),
    ("score_layers", 2, {"score": "additive"}),
    ("bound", 1.5, {"weights": "csparsemax"}),
    ("coverage", "heads", {"weights": "csparsemax"}),
]
"""Options that change something beside others only."""


def what_it_is(name: str, options: dict) -> tuple:
    """Everything in which two models can differ: structure, weights, and outputs in training."""
    model = model_of(name, **options).train()
    torch.manual_seed(0)
    logits = model(normal(5, 9, 3))
    return logits.tolist(), [(key, value.shape) for key, value in model.state_dict().items()]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FEW if "rff-" in name or not name.endswith(("-mean", "-pma"))])
def test_used_options_are_those_that_change_the_model(name):
    plain = what_it_is(name, {})
    changing = {option for option, value in CHANGED.items() if what_it_is(name, {option: value}) != plain}
    for option, value, other in CHANGED_WITH:
        if what_it_is(name, {**other, option: value}) != what_it_is(name, other):
            changing |= {option}
    # Local features need more points; of torch-geometric's aggregations, two use heads.
    untested = LOCAL_FEATURES | ({"heads"} if "aggr" in name else set())
    assert used_options(name) - untested == changing - untested


def test_prenorm_does_not_take_the_size_of_a_cloud_away():
    """As layer norms of raw coordinates would."""
    model, X = model_of("isab5-max", norm="layer", prenorm=True), normal(2, 9, 3)
    assert (model(3 * X) - model(X)).abs().max() > 1e-3


def test_weights_of_the_pooling_are_not_those_of_the_layer_after_it():
    pool = model_of("rff-pma2", pool_weights="sparsemax").pool
    assert [set(block.mab.multihead.weights.names) for block in (pool.pma, pool.sab)] == [{"sparsemax"}, {"softmax"}]


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_the_head_has_the_width_the_norm_and_the_rates_that_are_asked_for(norm):
    options = {"head_dim": 24, "head_norm": norm, "pooled_dropout": 0.0, "dropout": 0.25}
    head = model_of("rff-max", **options).head
    linear = [one for one in head if isinstance(one, nn.Linear)]
    assert [(one.in_features, one.out_features) for one in linear] == [(16, 24), (24, CLASSES)]
    assert (linear[0].bias is None) == (norm == "batch")  # which would take it away again
    assert [one.p for one in head if isinstance(one, nn.Dropout)] == [0.0, 0.25]
    names = [type(one).__name__ for one in head]
    assert ("LayerNorm" in names, "BatchNorm" in names) == (norm == "layer", norm == "batch")


def test_the_seed_decides_the_weights_and_global_state_does_not():
    before = torch.random.get_rng_state()
    first, again, other = (pointset.create_model("isab16-pma", dim=16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    for (name, mine), theirs in zip(first.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs), name
    assert not torch.equal(first.head[2].weight, other.head[2].weight)


@pytest.mark.parametrize(
    ("name", "width"),
    [("max", 16), ("max+mean", 32), ("aggr.softmax", 16), ("aggr.set2set", 32), ("aggr.quantile", 48)],
)
def test_symmetric_poolings_share_encoder_and_decoder(name, width):
    """Rows of a comparison differ only in the pooling, and in the first layer after it, which depends on the width."""
    model = model_of(f"isab3-{name}")
    usual = model_of("isab3-max")
    for mine, theirs in zip(model.encoder.parameters(), usual.encoder.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    linear = [layer for layer in model.head if isinstance(layer, nn.Linear)]
    assert [tuple(layer.weight.shape) for layer in linear] == [(16, width), (CLASSES, 16)]


TITLES = {"rFF + mean": "rff-mean", "rFFp-mean + mean": "rffp-mean", "rFFp-max + PMA": "rffp-pma"}
TITLES |= {"rFFp + sum": "rffp-sum", "ISAB16 + max+mean": "isab16-max+mean", "SAB + PMA4": "sab-pma4"}
TITLES |= {"rFFp-mean + mean+PMA": "rffp-mean+pma", "SAB + aggr.softmax": "sab-aggr.softmax"}


def test_rows_of_the_papers_tables_are_models_and_others_are_refused():
    assert {row: zoo_name(row) for row in TITLES} == TITLES
    for row in ("rFF", "rFFp-max + mean", "rFFp-max + mean+max", "rFF-max + max", "SAB + median", "ISAB0 + PMA"):
        with pytest.raises(PointsetError, match=f"(?i){row.split()[0].split('-')[0]}"):
            zoo_name(row)


NAMES = [*(f"{encoder}-max" for encoder in ("none", "rff", "rffp", "sab", "isab4", "dumlp4")), "rff-pma", "rff-dumlp4"]
POOLINGS = [f"none-{name}" for name in ("mean", "cov8", "pswe8", "fspool", "top2", "asp", "gem", "max+pma")]


def network(name: str = "rff-max", kind: str = "upright", **options: Any) -> Any:
    return pointset.create_model(name, classes=3, dim=8, heads=2, local_features=kind, seed=1, **options)


def sets_of(count: int = 12, points: int = 60) -> pointset.PointSets:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, points, 3)) * np.where(np.arange(count) % 3 == 0, 0.1, 1.0)[:, None, None] ** [0, 0, 1]
    return pointset.from_arrays(X, np.arange(count) % 3, points=20)


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "upright") for name in NAMES + POOLINGS), ("isab4-max", "invariant")]
)
def test_every_model_takes_bare_points_and_points_with_their_numbers(name: str, kind: str) -> None:
    model, points = network(name, kind).eval(), torch.randn(2, 50, 3, generator=torch.Generator().manual_seed(0))
    numbers = torch.from_numpy(np.stack([cloud_local_features(cloud.numpy(), kind) for cloud in points]))
    with torch.no_grad():
        bare = model(points)
        torch.testing.assert_close(model(torch.cat([points, numbers], dim=2)), bare, atol=1e-3, rtol=1e-3)
        mask = torch.arange(60) < torch.tensor([50, 50])[:, None]
        padded = torch.cat([points, torch.full((2, 10, 3), torch.nan)], dim=1)
        torch.testing.assert_close(model(padded, mask), bare, atol=1e-4, rtol=1e-4)
    assert model.widths == (3, 3 + WIDTHS[kind])
    with pytest.raises(pointset.PointsetError, match=r"\[B, n, 3\]"):
        model(torch.randn(2, 50, 5))


def test_noise_and_dropout_are_for_training_alone() -> None:
    model, points = network(local_feature_noise=1.0, local_feature_dropout=0.5, dropout=0.0), torch.randn(64, 40, 3)
    with torch.no_grad():
        assert torch.equal(model.eval()(points), model(points))
        assert not torch.allclose(model.train()(points), model(points))
        rows = model.numbers(points)
    dropped = (rows[..., 3:] == 0).flatten(1).all(dim=1)
    assert 16 < dropped.sum() < 48


@pytest.mark.parametrize("how", ["none", "principal-axes"])
def test_training_standardises_the_numbers_and_needs_coordinates_alone(how: str) -> None:
    model, sets = network(), sets_of().normalized(how)
    pointset.fit(model, sets, Recipe(epochs=1), progress=False)
    numbers = sets.with_local_features("upright").points[..., 3:].flatten(0, 1).numpy()
    np.testing.assert_allclose(model.numbers.mean, numbers.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(model.numbers.deviation, numbers.std(axis=0).clip(1e-3), atol=1e-4)
    assert model.preparation.local_features == "upright"
    assert pointset.evaluate(model, sets).logits.shape == (12, 3)
    assert model.embed(sets.point_cache.cloud(0)).shape[0] == 1


@pytest.mark.parametrize("kind", ["none", "upright"])
@pytest.mark.parametrize("name", ["isab4-max", "rff-max", "dumlp4-max+dumlp4", "isab4-pma", "none-dumlp8"])
def test_weights_of_one_upward_axis_serve_shapes_of_another(name: str, kind: str) -> None:
    model, points = network(name, kind).eval(), torch.randn(2, 40, 3)
    if kind == "upright":
        model.numbers.fit(torch.randn(100, WIDTHS["upright"]) + 1)
    turn = torch.tensor(UP_TO_Z["z"]).T @ torch.tensor(UP_TO_Z["y"])
    with torch.no_grad():
        expected = model(points @ turn.T)
        turn_inputs(model, turn)
        torch.testing.assert_close(model(points), expected, atol=1e-4, rtol=1e-4)


def test_fine_tuning_keeps_the_scale_and_turns_the_inputs_to_the_axis_of_the_sets(tmp_path: Path) -> None:
    clouds, recipe = np.random.default_rng(1).normal(size=(6, 30, 3)), Recipe(epochs=1, learning_rate=1e-12)
    pointset.fit(network(), sets_of(), Recipe(epochs=1), run=tmp_path, progress=False)
    trained: Any = pointset.load_model(tmp_path)
    turned = clouds @ (torch.tensor(UP_TO_Z["z"]).T @ torch.tensor(UP_TO_Z["y"])).numpy().T
    for normalize, seen in (("unit-sphere", turned), ("principal-axes", None)):
        lying = pointset.from_arrays(clouds, [0, 1] * 3, up="y", normalize=normalize)
        model: Any = pointset.create_model("rff-max", ["0", "1"], pretrained=tmp_path)
        pointset.fit(model, lying, recipe, progress=False)
        if seen is None:
            assert all(map(torch.allclose, model.encoder.parameters(), trained.encoder.parameters()))
        else:
            upright = pointset.from_arrays(seen, [0, 1] * 3, normalize=normalize)
            np.testing.assert_allclose(model.embed(lying), trained.embed(upright), atol=1e-3, rtol=1e-3)
            assert torch.equal(model.numbers.mean.abs().sort().values, trained.numbers.mean.abs().sort().values)
        assert model.preparation.up == lying.up


@pytest.mark.slow
def test_an_exported_file_takes_bare_points(tmp_path: Path) -> None:
    model = network("rff-pma", "invariant").eval()
    assert pointset.export_model(model, tmp_path / "model.onnx", mask=True) < 1e-3


@pytest.mark.parametrize(
    ("options", "rate"), [({}, 0.5), ({"dim": 512}, 0.5), ({"dim": 64}, 0.125), ({"dropout": 0.3}, 0.3)]
)
def test_the_default_dropout_is_that_of_the_width(options: dict[str, Any], rate: float) -> None:
    assert pointset.ModelOptions(**options).dropout_rate == rate
    model: Any = pointset.create_model("rff-max", classes=3, **options)
    assert {module.p for module in model.head if hasattr(module, "p")} == {rate}


@pytest.mark.parametrize("pretrained", [None, "modelnet40-1024"])
def test_names_of_classes_are_kept(pretrained):
    model = pointset.create_model("isab16-pma", np.array(["cat", "dog"]), pretrained=pretrained)
    assert (model.classes, model.spec.classes) == (["cat", "dog"], 2)
    assert pointset.create_model("isab16-pma", np.int64(5), pretrained=pretrained).spec.classes == 5
    with pytest.warns(UserWarning, match="untrained" if pretrained else "no preparation"):
        assert model.classify(torch.rand(600, 3))[0]["class"] in ("cat", "dog")


@pytest.mark.parametrize("wrong", ["3", "chair", 3.0, True, ["a", "a"], [], 0])
def test_what_are_no_classes(wrong):
    for name in ("rff-max", "isab16-pma.modelnet40-1024"):
        with pytest.raises(PointsetError, match=r"classes(:| must be a whole number).*(got|given twice)"):
            pointset.create_model(name, wrong)


def test_an_untrained_model_samples_meshes_as_a_cache_does() -> None:
    prepared = pointset.create_model("rff-max", 2, dim=8).prepare(make_shape("stool", "test", 0))
    assert prepared.points.shape == (Preparation().cache_points, 3)
