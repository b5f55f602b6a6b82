"""Every model of the zoo, by its name, under the same demands."""

import numpy as np
import pytest
import torch
from covering import covering_models
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.dropout import Dropout
from pointset.zoo.classifiers import checked
from pointset.zoo.models import Spec, build_body, build_model
from pointset.zoo.names import used_options, zoo_name
from pointset.zoo.options import ModelOptions

ALL = [*covering_models(), "isab5-pma4", "sab-pma2", "isab5-max+pma2", "rffp-aggr.set2set", "rff-aggr.settransformer"]
ENCODERS = [part.listed for part in registry.parts("encoder")]
POOLINGS = [part.listed for part in registry.parts("pooling")]
CLASSES = 7


def model_of(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=CLASSES, dim=16, **options).double().eval()


def clouds(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_invariant_to_order_and_padding(name):
    found = pointset.check_symmetry(model_of(name))
    assert found.kind == "invariant"
    assert found.worst < 1e-10


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_is_equivariant(encoder):
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model_of(f"{encoder}-max")

        def forward(self, points: Tensor, mask: Tensor) -> Tensor:
            return self.model.encode(points, mask)

    found = pointset.check_symmetry(Encoder())
    assert found.kind == "equivariant"
    assert found.worst < 1e-10


@pytest.mark.parametrize("name", ALL)
def test_padding_changes_neither_logits_nor_gradients(name):
    """Any length of padding, any garbage in it; in training mode, so that batch statistics are held to it too."""
    model = model_of(name, dropout=0.0).train()
    points, mask = clouds(3, 9, 3), torch.ones(3, 9, dtype=torch.bool)
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
            torch.testing.assert_close(
                found_gradients[key],
                gradients[key],
                atol=1e-9,
                rtol=1e-7,
                msg=lambda text, key=key: f"{key}: {text}",
            )


@pytest.mark.parametrize("name", ALL)
def test_neither_an_all_true_mask_nor_a_neighbour_changes_a_set(name):
    model, points = model_of(name), clouds(4, 6, 3)
    logits = model(points)
    torch.testing.assert_close(model(points, torch.ones(4, 6, dtype=torch.bool)), logits)
    torch.testing.assert_close(model(points[2:3]), logits[2:3])


@pytest.mark.parametrize("name", ALL)
def test_a_batch_of_one_and_a_set_of_one(name):
    """In both modes: the last batch of an epoch may hold a single shape."""
    for model in (model_of(name), model_of(name).train()):
        for size in (1, 6):
            logits = model(clouds(1, size, 3))
            assert logits.shape == (1, CLASSES)
            assert logits.isfinite().all()


@pytest.mark.parametrize("name", ALL)
def test_an_empty_set_gives_finite_logits_that_depend_on_nothing(name):
    model, points = model_of(name), clouds(2, 5, 3)
    mask = torch.tensor([[True] * 5, [False] * 5])
    logits = model(points, mask)
    assert logits.isfinite().all()
    torch.testing.assert_close(model(points[:, :0])[0], logits[1])
    torch.testing.assert_close(model(points * 3, mask)[1], logits[1])


@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize("name", [name for name in ALL if name != "dgcnn"])
def test_every_parameter_gets_a_gradient(name, form):
    model = model_of(name, form=form).train()
    model(clouds(4, 50, 3)).square().sum().backward()
    # The key bias shifts all logits of a row alike and cancels, in the last layer of logits exactly.
    idle = [n for n, p in model.named_parameters() if (p.grad is None or not p.grad.any()) and "key.bias" not in n]
    assert idle == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isab4-pma", "sab-max", "rff-pma2", "rff-max"])
@pytest.mark.parametrize(
    "options",
    [
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
        {"seeds": "pooled"},
        {"seeds": "statistics"},
        {"initial": "xavier"},
        {"head": "rff"},
        {"layers": 3},
        {"coordinates": "every", "outputs": "all", "form": "paper"},
    ],
    ids=str,
)
def test_every_option_keeps_the_symmetries(name, options):
    assert pointset.check_symmetry(model_of(name, **options)).worst < 1e-10


def test_the_seed_decides_the_weights_and_global_state_does_not():
    before = torch.random.get_rng_state()
    first, again, other = (pointset.create_model("isab16-pma", dim=16, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    for (name, mine), theirs in zip(first.named_parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, theirs), name
    assert not torch.equal(first.head[2].weight, other.head[2].weight)


@pytest.mark.parametrize("name", ["isab5-pma4", "isab5-aggr.deepsets"])
def test_a_spec_builds_the_model_again(name):
    model = pointset.create_model(name, classes=9, dim=16, heads=2, form="paper", seed=3)
    again, points = build_model(model.spec), torch.randn(2, 8, 3)
    assert torch.equal(model.eval()(points), again.eval()(points))
    again.load_state_dict(model.state_dict())


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_body_has_the_weights_of_its_model(pooling):
    """A task puts a head of its own behind it."""
    name, options = f"isab3-{pooling}", ModelOptions(dim=16, row_dropout=0.1)
    before = torch.random.get_rng_state()
    body, model = build_body(name, 5, options, 3), build_model(Spec(name, 4, 5, 3, options))
    assert torch.equal(before, torch.random.get_rng_state())
    weights = nn.ModuleDict({"encoder": nn.ModuleList(body.encoder), "pool": body.pool}).state_dict()
    whole = model.state_dict()
    assert {key.split(".")[0] for key in whole.keys() - weights.keys()} == {"head"}
    assert all(torch.equal(whole[key], value) for key, value in weights.items())
    first = next(layer for layer in model.head if isinstance(layer, nn.Linear))
    assert body.width == first.in_features


@pytest.mark.parametrize(
    ("name", "width"),
    [("max", 16), ("max+mean", 32), ("aggr.softmax", 16), ("aggr.set2set", 32), ("aggr.quantile", 48)],
)
def test_symmetric_poolings_share_encoder_and_decoder(name, width):
    """Rows of a comparison differ in the pooling alone: only the first layer after it knows the width."""
    model = model_of(f"isab3-{name}")
    usual = model_of("isab3-max")
    assert str(model.encoder) == str(usual.encoder)
    for mine, theirs in zip(model.encoder.parameters(), usual.encoder.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert [type(layer) for layer in model.head] == [type(layer) for layer in usual.head]
    assert [tuple(layer.weight.shape) for layer in model.head if isinstance(layer, nn.Linear)] == [
        (16, width),
        (CLASSES, 16),
    ]


@pytest.mark.parametrize("name", ["isab3-max+mean", "isab3-aggr.softmax", "rff-aggr.powermean", "rff-aggr.deepsets"])
def test_mixed_precision_gives_finite_logits_near_the_exact_ones(name):
    model = pointset.create_model(name, classes=CLASSES, dim=16, dropout=0.0)
    points = clouds(3, 300, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(points)
    logits.float().square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters() if parameter.grad is not None)
    exact = model(points)
    assert (logits.float() - exact).abs().max() < 0.05 * exact.abs().max()


def test_the_defaults_are_the_authors_widths():
    """Set Transformer, table 4: 256 wide, 4 heads, 16 inducing points, two ISABs."""
    model = pointset.create_model("isab16-pma")
    assert ModelOptions().dim == 256
    assert [block.inducing_points.shape for block in model.encoder] == [(1, 16, 256)] * 2
    assert model.encoder[0].reads.multihead.heads == 4
    assert model.encoder[0].reads.multihead.score.factor == 1 / 16


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("isab16-pam", "did you mean isab16-pma"),
        ("isab-max", "did you mean"),
        ("isab0-max", "did you mean .*isab16-max"),
        ("rff", "did you mean rff-"),
        ("", "did you mean"),
        ("isab16-max+men", "did you mean isab16-max\\+mean, "),
        ("isba16-max+pma9+softmax", "did you mean isab16-max\\+pma9\\+aggr.softmax, "),
        ("isab16-max+", "did you mean isab16-max\\+"),
        ("isab16-max+aggr.lstm", "aggr.lstm does not pool sets"),
        ("isab16-aggr.sofmax", "no aggregation 'sofmax': did you mean softmax"),
        ("isab16-aggr.", "did you mean"),
        ("isab16-max+cov257", "cov257 gives 33,153 numbers for each set: give at most cov256"),
        ("isab16-pswe", "did you mean isab16-f?pswe64"),
        ("isab16-aggr.lstm", "aggr.lstm does not pool sets: it reads its rows in order"),
        ("softmax-aggr.max", "did you mean"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, words):
    with pytest.raises(PointsetError, match=words):
        pointset.create_model(name)


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("isab16-pma", "isab16-pma"),
        ("rFF + mean", "rff-mean"),
        ("rFFp-mean + mean", "rffp-mean"),
        ("rFFp-max + PMA", "rffp-pma"),
        ("rFFp + sum", "rffp-sum"),
        ("ISAB16 + max+mean", "isab16-max+mean"),
        ("rFFp-mean + mean+PMA", "rffp-mean+pma"),
        ("SAB + PMA4", "sab-pma4"),
        ("SAB + aggr.softmax", "sab-aggr.softmax"),
    ],
)
def test_rows_of_the_papers_tables_are_models(row, name):
    assert zoo_name(row) == name


@pytest.mark.parametrize(
    "row",
    [
        "rFF",
        "rFFp-max + mean",
        "rFFp-max + mean+max",
        "rFF-max + max",
        "SAB + median",
        "ISAB0 + PMA",
        "rFF + mean ",
        "pointnet + max",
    ],
)
def test_other_rows_are_refused(row):
    with pytest.raises(PointsetError, match=f"(?i){row.split()[0].split('-')[0]}"):
        zoo_name(row)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"dim": 10}, "multiple of heads, got dim=10 and heads=4"),
        ({"form": "papre"}, "form must be one of 'reference', 'paper', got 'papre'"),
        ({"norm": "instanse"}, "norm must be one of .*'batch', got 'instanse'"),
        ({"norm": "instance"}, "norm=instance leaves nothing of one pooled row"),
        ({"weights": "sparsmax"}, r"weights must be .* one of 'softmax', 'sparsemax', .* got \('sparsmax',\)"),
        ({"weights": ("softmax", "sparsemax")}, r"weights .* heads=4, got \('softmax', 'sparsemax'\)"),
        ({"coverage": "seeds"}, "coverage='seeds' shares out an upper bound, and weights=softmax have none"),
        ({"weights": "csparsemax", "bound": 0.5}, "bound must be .* at least 1, got 0.5"),
        ({"score": "cosine"}, "score must be one of 'dot', 'bilinear', 'additive', got 'cosine'"),
        ({"scale": "rows"}, "scale must be one of 'model', 'head' or a finite number above 0, got 'rows'"),
        ({"scale": 0.0}, "scale must be .* got 0.0"),
        ({"attention_dropout": 1.0}, "attention_dropout must be .* got 1.0"),
        ({"width": 3}, "'width' is not an option of ModelOptions: known are heads, form"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"layers": 0}, "layers must be .* from 1 to .*got 0"),
        ({"temperature": 0.0}, "temperature must be .* above 0, got 0.0"),
        ({"prenorm": True}, "prenorm needs a norm"),
        ({"prenorm": True, "norm": "none", "form": "paper"}, "prenorm needs a norm"),
        ({"seed": -1}, "seed must be .* got -1"),
        ({"classes": 0}, "classes must be .* at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(PointsetError, match=words):
        pointset.create_model("isab16-pma", **options)


@pytest.mark.parametrize(
    ("points", "mask", "words"),
    [
        (torch.zeros(3), None, r"points must be \[B, n, 3\] or, of one cloud, \[n, 3\], got float32 \[3\]"),
        (torch.zeros(2, 5, 4), None, r"points must be \[B, n, 3\], got float32 \[2, 5, 4\]"),
        (torch.zeros(2, 5, 3).tolist(), None, r"tensor or an array \[B, n, 3\], got list"),
        (None, None, "got None"),
        (torch.zeros(2, 5, 3, dtype=torch.complex64), None, r"real numbers .* got complex64 \[2, 5, 3\]"),
        (np.array([["a", "b", "c"]]), None, r"real numbers .* got <U1 \[1, 3\]"),
        (torch.full((1, 5, 3), 2**40 + 1), None, "int64 .* too large for float32"),
        (torch.zeros(5, 3), torch.ones(4, dtype=torch.bool), r"mask must be bool \[5\].* got bool \[4\]"),
        (torch.zeros(2, 5, 3), [True], r"mask must be bool \[2, 5\].* got list"),
        (torch.zeros(2, 5, 3), torch.ones(2, 4, dtype=torch.bool), r"mask must be bool \[2, 5\]"),
        (torch.zeros(2, 5, 3), torch.ones(2, 5), r"mask must be bool \[2, 5\]"),
    ],
)
def test_wrong_shapes_are_shown(points, mask, words):
    with pytest.raises(ValueError, match=words):
        checked(points, mask, 3)


POINTS = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["rff-max", "isab4-pma", "pointnet"])
@pytest.mark.parametrize(
    ("given", "same"),
    [
        (POINTS.numpy(), POINTS),
        (POINTS.double(), POINTS),
        (POINTS.numpy().astype(">f8"), POINTS),
        (POINTS.numpy()[:, ::-1], POINTS.flip(1)),
        (POINTS[0], POINTS[:1]),
        (POINTS[0].numpy(), POINTS[:1]),
        ((4 * POINTS).to(torch.int16), (4 * POINTS).trunc()),
        ((4 * POINTS).to(torch.int64).numpy(), (4 * POINTS).trunc()),
        (POINTS.half(), POINTS.half().float()),
    ],
)
def test_what_can_be_converted_gives_the_logits_of_the_same_points(name, given, same):
    model = pointset.create_model(name, classes=3).eval()
    with torch.no_grad():
        assert torch.equal(model(given), model(same))
        rows = np.ones(len(given[0]), bool) if len(given) == 2 else None
        if rows is not None:
            assert torch.equal(model(given, np.stack([rows, rows])), model(same))


def test_a_model_in_double_precision_takes_single_points_and_an_empty_batch_has_no_logits():
    model = pointset.create_model("rff-max", classes=3).double().eval()
    assert model(POINTS).dtype == torch.float64
    assert model(POINTS[:0]).shape == (0, 3)
    assert model.packed(POINTS[0].numpy(), np.zeros(7, int)).shape == (1, 3)


CHANGED = {
    "dim": 20,
    "heads": 2,
    "layers": 5,
    "form": "paper",
    "scale": "head",
    "norm": "set",
    "dropout": 0.3,
    "seeds": "pooled",
    "initial": "xavier",
    "temperature": 2.0,
    "trained_temperature": True,
    "row_dropout": 0.3,
    "coordinates": "every",
    "outputs": "all",
    "attention_dropout": 0.3,
    "weights": "sparsemax",
    "pool_weights": "entmax15",
    "head": "rff",
    "head_dim": 24,
    "head_norm": "batch",
    "pooled_dropout": 0.1,
    "score": "bilinear",
}


@pytest.mark.parametrize(("name", "layers"), [("rff-max", 4), ("rffp-max", 3), ("isab3-max", 2), ("sab-max", 2)])
def test_rows_are_dropped_once_after_each_layer(name, layers):
    encoder = model_of(name, row_dropout=0.3).encoder
    dropped = [one.rowwise[0] for one in encoder if hasattr(one, "rowwise") and isinstance(one.rowwise[0], Dropout)]
    assert [one.rate for one in dropped] == [0.3] * layers
    assert encoder[-1].rowwise[0] is dropped[-1]


CHANGED_WITH = [
    ("prenorm", True, {"norm": "layer"}),
    ("score_layers", 2, {"score": "additive"}),
    ("bound", 1.5, {"weights": "csparsemax"}),
    ("coverage", "heads", {"weights": "csparsemax"}),
]
"""Options that change something beside others only."""


def what_it_is(name: str, options: dict) -> tuple:
    """Everything that tells two models apart: structure, weights, and what they answer in training."""
    model = pointset.create_model(name, classes=CLASSES, **{"dim": 16, **options}).double().train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        logits = model(clouds(5, 9, 3))
    return logits.tolist(), [(key, value.shape) for key, value in model.state_dict().items()]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_used_options_are_those_that_change_the_model(name):
    plain = what_it_is(name, {})
    changing = {option for option, value in CHANGED.items() if what_it_is(name, {option: value}) != plain}
    for option, value, other in CHANGED_WITH:
        if what_it_is(name, {**other, option: value}) != what_it_is(name, other):
            changing |= {option}
    assert used_options(name) == changing


@pytest.mark.parametrize("name", ["isab99999999999-max", "sab-pma5000"])
def test_too_many_rows_are_refused_before_memory_is_asked_for(name):
    with pytest.raises(PointsetError, match="at most 4096"):
        pointset.create_model(name)


@pytest.mark.parametrize("norm", ["none", "layer", "batch"])
def test_the_head_has_the_width_the_norm_and_the_rates_that_are_asked_for(norm):
    options = {"head_dim": 24, "head_norm": norm, "pooled_dropout": 0.0, "dropout": 0.25}
    head = model_of("rff-max", **options).head
    linear = [one for one in head if isinstance(one, nn.Linear)]
    assert [(one.in_features, one.out_features) for one in linear] == [(16, 24), (24, CLASSES)]
    assert (linear[0].bias is None) == (norm == "batch")  # which would take it away again
    assert [one.rate for one in head if isinstance(one, Dropout)] == [0.0, 0.25]
    names = [type(one).__name__ for one in head]
    assert ("LayerNorm" in names, "VectorBatchNorm" in names) == (norm == "layer", norm == "batch")


def test_batch_norm_in_the_head_is_torch_s_and_a_single_set_trains():
    model = model_of("rff-max", head_norm="batch", dropout=0.0).train()
    flat, rate, linear, norm = model.head[:4]
    pooled = clouds(5, 1, 16)
    expected = nn.BatchNorm1d(16).double()(linear(pooled[:, 0]))
    torch.testing.assert_close(norm(linear(rate(flat(pooled)))), expected)
    one = model(clouds(1, 9, 3))
    one.sum().backward()
    assert one.isfinite().all()
    assert linear.weight.grad.abs().sum() > 0
