"""Blocks, norms, DeepSets layers and dual-MLP attention against the published formulas, in float64, or by hand."""

import math

import pytest
import torch
from torch import Tensor, nn
from toy import moved, normal

import pointset
from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import multiply_adds
from pointset.evaluation.symmetry import check_symmetry
from pointset.nn import EquivariantLayer, Multihead
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, initial_rows
from pointset.nn.encoders.dumlp import InteractionLayer
from pointset.nn.norms import BatchNorm, GroupNorm, InstanceNorm, SetNorm
from pointset.nn.pooling.dumlp import DualMLPPool
from pointset.nn.pooling.pma import AttentionPool

B, N, M, DIM, HEADS = 2, 5, 7, 12, 3


def linear(layer: nn.Linear, rows: Tensor) -> Tensor:
    return rows @ layer.weight.T + layer.bias


def layer_norm(rows: Tensor) -> Tensor:
    mean = rows.mean(-1, keepdim=True)
    return (rows - mean) / ((rows - mean).square().mean(-1, keepdim=True) + 1e-5).sqrt()


def head_outputs(Q: Tensor, K: Tensor, V: Tensor, scale: float) -> list[tuple[Tensor, Tensor]]:
    """(q_j, A_j v_j) of each head, for one set."""
    width = DIM // HEADS
    parts = [slice(j * width, (j + 1) * width) for j in range(HEADS)]
    return [(Q[:, p], torch.softmax(Q[:, p] @ K[:, p].T * scale, dim=1) @ V[:, p]) for p in parts]


def reference_mab(mab: MAB, x: Tensor, y: Tensor, scale: float) -> Tensor:
    """Released code: the projected query is the residual, no W^O, O + ReLU(O W + b), no norm."""
    heads = mab.multihead
    per_head = head_outputs(linear(heads.query, x), linear(heads.key, y), linear(heads.value, y), scale)
    O = torch.cat([q + read for q, read in per_head], dim=1)  # noqa: E741
    return O + torch.relu(linear(mab.feed_forward[0], O))


def paper_mab(mab: MAB, x: Tensor, y: Tensor, scale: float) -> Tensor:
    """Eq. 6 and 7: LN(H + rFF(H)), H = LN(X + Multihead(X, Y, Y))."""
    heads = mab.multihead
    per_head = head_outputs(linear(heads.query, x), linear(heads.key, y), linear(heads.value, y), scale)
    H = layer_norm(x + linear(heads.output, torch.cat([read for _, read in per_head], dim=1)))
    return layer_norm(H + linear(mab.feed_forward[2], torch.relu(linear(mab.feed_forward[0], H))))


TRANSCRIBED = {"reference": reference_mab, "paper": paper_mab}
SCALES = {"model": 1 / math.sqrt(DIM), "head": 1 / math.sqrt(DIM / HEADS)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("form", TRANSCRIBED)
@pytest.mark.parametrize("keys", [M, 200], ids=["few keys", "many keys"])
def test_mab_equals_its_formula(form, scale, keys):
    mab = MAB(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form=form, scale=scale)).double()
    X, Y = normal(B, N, DIM), normal(B, keys, DIM, seed=1)
    expected = torch.stack([TRANSCRIBED[form](mab, x, y, SCALES[scale]) for x, y in zip(X, Y, strict=True)])
    torch.testing.assert_close(mab(X, Y), expected)


@pytest.mark.parametrize("form", TRANSCRIBED)
def test_sab_and_isab_equal_their_formulas(form):
    mab, scale = TRANSCRIBED[form], SCALES["model"]
    X = normal(1, N, DIM)
    sab = SAB(DIM, DIM, AttentionOptions(heads=HEADS, form=form)).double()
    torch.testing.assert_close(sab(X)[0], mab(sab.mab, X[0], X[0], scale))
    isab = ISAB(DIM, DIM, 4, AttentionOptions(heads=HEADS, form=form)).double()
    H = mab(isab.reads, isab.inducing_points[0], X[0], scale)
    torch.testing.assert_close(isab(X)[0], mab(isab.writes, X[0], H, scale))


@pytest.mark.parametrize("form", TRANSCRIBED)
def test_with_prenorm_the_sums_are_not_normalised(form):
    """H = X + Multihead(N(X), N(Y)), O = H + rFF(N(H)); of the released form Q = N(X) W^Q in place of X."""
    mab = MAB(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form=form, norm="layer", prenorm=True)).double()
    x, y = normal(N, DIM), normal(M, DIM, seed=1)
    heads = mab.multihead
    Q, K, V = linear(heads.query, layer_norm(x)), linear(heads.key, layer_norm(y)), linear(heads.value, layer_norm(y))
    read = torch.cat([read for _, read in head_outputs(Q, K, V, SCALES["model"])], dim=1)
    if form == "paper":
        H = x + linear(heads.output, read)
        fed = linear(mab.feed_forward[2], torch.relu(linear(mab.feed_forward[0], layer_norm(H))))
    else:
        H = Q + read
        fed = torch.relu(linear(mab.feed_forward[0], layer_norm(H)))
    torch.testing.assert_close(mab(x[None], y[None])[0], H + fed)


def test_seeds_are_linear_functions_of_the_pooled_set():
    pma = PMA(DIM, 5, AttentionOptions(heads=HEADS), "max").double()
    X = normal(1, N, DIM)
    maps, bias = pma.pooled_seeds.maps.weight.reshape(5, DIM, DIM), pma.pooled_seeds.maps.bias.reshape(5, DIM)
    S = torch.stack([maps[seed] @ X[0].amax(0) + bias[seed] for seed in range(5)])
    torch.testing.assert_close(pma(X)[0], reference_mab(pma.mab, S, X[0], SCALES["model"]))


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("form", TRANSCRIBED)
def test_the_published_decoder_is_its_formula(form, seeds):
    """Eq. 15 and 16: rFF(SAB(PMA_k(Z))), for a whole set and a padded set; with gradients."""
    options = AttentionOptions(heads=HEADS, form=form)
    values = {"dim": DIM, "dropout": 0.0, "pool_seeds": "trained", "initial": "normal"}
    decoder = AttentionPool(seeds, **values, attention=options, pool_attention=options, decoder="rff").double()
    mab, scale, Z = TRANSCRIBED[form], SCALES["model"], normal(2, N, DIM)

    def transcribed(z: Tensor) -> Tensor:
        fed, last = decoder.pma.feed_forward, decoder.feed_forward
        z = linear(fed[2], torch.relu(linear(fed[0], z))) if form == "paper" else z
        H = mab(decoder.pma.mab, decoder.pma.seeds[0], z, scale)
        H = mab(decoder.sab.mab, H, H, scale)
        return linear(last[2], torch.relu(linear(last[0], H)))

    expected = torch.stack([transcribed(Z[0]), transcribed(Z[1, :3])])
    mask = torch.tensor([[True] * N, [True] * 3 + [False] * (N - 3)])
    torch.testing.assert_close(decoder(Z, mask), expected)
    transcribed_ones = [value for name, value in decoder.named_parameters() if "norm" not in name]
    losses = [found.square().sum() for found in (decoder(Z, mask), expected)]
    found, wanted = (torch.autograd.grad(loss, transcribed_ones, materialize_grads=True) for loss in losses)
    torch.testing.assert_close(found, wanted)


def test_normal_rows_start_further_apart_than_the_released_ones():
    spread = {name: torch.pdist(initial_rows(16, 256, name)[0]).mean() for name in ("normal", "xavier")}
    assert spread["normal"] > 20 * spread["xavier"]
    assert initial_rows(16, 256, "xavier").abs().max() <= math.sqrt(6 / (17 * 256))


X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [99.0, 99.0]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize("mask", [None, torch.zeros(1, 1, dtype=torch.bool)])
@pytest.mark.parametrize("norm", [SetNorm, GroupNorm, InstanceNorm])
def test_norms_of_one_row_or_none_are_finite(norm, mask):
    assert norm(4)(torch.ones(1, 1, 4), mask).isfinite().all()


@pytest.mark.parametrize(("norm", "groups"), [(SetNorm, 1), (GroupNorm, 8), (InstanceNorm, 24)])
def test_norms_of_sets_are_torch_s_group_norm_of_each_set(norm, groups):
    """torch needs features before rows, and no padding. 24 features have gcd(24, 8) = 8 groups."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2, 9, 24, generator=generator, dtype=torch.float64) * 4 + 3
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 6:] = False
    ours, theirs = norm(24).double(), torch.nn.GroupNorm(groups, 24).double()
    with torch.no_grad():
        ours.weight.copy_(torch.randn(24, generator=generator))
        ours.bias.copy_(torch.randn(24, generator=generator))
    theirs.load_state_dict(ours.state_dict())
    found = ours(rows.masked_fill(~mask.unsqueeze(-1), float("nan")), mask)
    for index in range(2):
        real = rows[index][mask[index]]
        torch.testing.assert_close(found[index][mask[index]], theirs(real.T[None])[0].T)


@pytest.mark.parametrize(("statistic", "centre"), [("max", torch.amax), ("mean", torch.mean)])
@pytest.mark.parametrize("norm", ["none", "layer", "set", "group", "instance", "batch"])
def test_equivariant_layers_are_their_formula_with_every_norm(norm, statistic, centre):
    layer, rows = EquivariantLayer(2, 8, statistic, norm).double(), X.double()
    assert check_symmetry(layer, dim=2).worst < 1e-12
    expected = torch.tanh(layer.norm(layer.gamma(rows - centre(rows, dim=1, keepdim=True)), None))
    torch.testing.assert_close(layer(rows), expected)


def test_batch_norm_counts_real_rows_only_and_leaves_a_single_one_alone():
    """The five real rows equal those normalised by torch's batch norm; values in padding have no effect."""
    norm, plain = BatchNorm(2), torch.nn.BatchNorm1d(2)
    spoiled = X.masked_fill(~MASK.unsqueeze(-1), float("nan"))
    found = norm(spoiled, MASK)
    torch.testing.assert_close(found[MASK], plain(X[MASK]))
    assert (found[~MASK] == 0).all()
    torch.testing.assert_close(norm.running_mean, plain.running_mean)
    torch.testing.assert_close(norm(X, None), plain(X.flatten(0, 1)).view_as(X))
    torch.testing.assert_close(norm.eval()(X[:1], MASK[:1])[0, :2], plain.eval()(X[0, :2]))
    padded, first = X[:1, :2], torch.tensor([[True, False]])
    assert torch.equal(BatchNorm(2)(padded[:, :1]), padded[:, :1])
    assert torch.equal(BatchNorm(2)(padded, first), padded * first[..., None])


LENGTHS = (5, 9, 0, 1, 9)
NORMS = ("batch", "none", "layer")


def sets(width: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(length, width, generator=generator, dtype=torch.float64) for length in LENGTHS]


def padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Batch and mask, with NaN in the padding."""
    X = torch.full((len(rows), max(LENGTHS), rows[0].shape[1]), torch.nan, dtype=torch.float64)
    mask = torch.zeros(X.shape[:2], dtype=torch.bool)
    for number, one in enumerate(rows):
        X[number, : len(one)], mask[number, : len(one)] = one, True
    return X, mask


def normed(rows: list[Tensor], norm: nn.Module) -> list[Tensor]:
    """Rows of all sets through batch norm or layer norm, by the formula."""
    if not list(norm.parameters()):
        return rows
    together = torch.cat(rows)
    if not hasattr(norm, "running_mean"):
        mean, variance = together.mean(1, keepdim=True), together.var(1, correction=0, keepdim=True)
    elif norm.training:
        mean, variance = together.mean(0), together.var(0, correction=0)
    else:
        mean, variance = norm.running_mean, norm.running_var
    together = (together - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    return list(together.split([len(one) for one in rows]))


def linears(rows: list[Tensor], layer: nn.Linear) -> list[Tensor]:
    bias = 0.0 if layer.bias is None else layer.bias
    return [one @ layer.weight.T + bias for one in rows]


def network(rows: list[Tensor], layers: nn.Module) -> list[Tensor]:
    for number, (one, norm) in enumerate(zip(layers.linear, layers.norm, strict=True)):
        rows = [row.clamp(min=0) for row in rows] if number else rows
        rows = normed(linears(rows, one), norm)
    return rows


def read(rows: list[Tensor], module: nn.Module) -> list[Tensor]:
    """A^T V of each set."""
    pairs = zip(network(rows, module.logits), network(rows, module.values), strict=True)
    found = []
    for logits, values in pairs:
        weights = (logits - logits.max(dim=0).values).exp() if len(logits) else logits
        weights = weights / weights.sum(dim=0)
        found.append(sum((torch.outer(a, v) for a, v in zip(weights, values, strict=True)), torch.zeros(module.k, 4)))
    return found


def interacted(rows: list[Tensor], module: InteractionLayer) -> list[Tensor]:
    shared = [S.double().flatten() @ module.summary.weight.T for S in read(rows, module.reads)]
    changed = [own + one for own, one in zip(linears(rows, module.rows), shared, strict=True)]
    pairs = zip(rows, normed(changed, module.norm), strict=True)
    return [row + one.clamp(min=0) for row, one in pairs]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("width", "hidden"), [(3, [4, 16]), (15, [4, 16]), (16, [16]), (20, [16])])
def test_the_pooling_is_its_formula(width, hidden, train, norm):
    pool, rows = moved(DualMLPPool(6, width, 16, norm)).train(train), sets(width)
    assert [one.out_features for one in pool.logits.linear] == [*hidden, 6]
    assert [one.out_features for one in pool.values.linear] == [*hidden, 4]
    expected = torch.stack([one.double() for one in read(rows, pool)])
    found = pool(*padded(rows))
    assert found.shape == (5, 6, 4)
    assert (found[2] == 0).all()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
def test_the_encoder_is_its_formula(train, norm):
    """A stem ReLU(N(X W)), then two interaction layers."""
    model, rows = moved(pointset.create_model("dumlp3-max", classes=4, dim=16, norm=norm)).train(train), sets(3)
    stem, *layers = model.encoder
    expected = [one.clamp(min=0) for one in network(rows, stem)]
    for layer in layers:
        expected = interacted(expected, layer)
    X, mask = padded(rows)
    torch.testing.assert_close(model.encode(X, mask)[mask], torch.cat(expected))
    with torch.no_grad():  # works in place
        torch.testing.assert_close(model.encode(X, mask)[mask], torch.cat(expected))


def test_the_published_network_has_its_number_of_parameters_and_operations():
    """3 -> 32 -> 128 -> 32 twice, no bias before a batch norm, 1024 -> 256 -> 40."""
    model = pointset.create_model("none-dumlp32", classes=40, dim=128, head_dim=256, head_norm="batch")
    assert sum(one.numel() for one in model.parameters()) == 290_280
    assert multiply_adds(model, 100) == 2_032_384


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["dumlp16-max", "rff-dumlp32", "rff-aggr.softmax"])
def test_a_model_converted_to_another_type_returns_logits_of_that_type(name, dtype):
    """`model.half()`: sums are in float32, but the layers after them have weights of the model's type."""
    points = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
    expected = pointset.create_model(name, classes=4, dim=16).eval()(points)
    model = pointset.create_model(name, classes=4, dim=16).eval().to(dtype)
    mask = torch.ones(2, 9, dtype=torch.bool)
    for found in (model(points.to(dtype)), model(points.to(dtype), mask)):
        assert found.dtype == dtype
        torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(
    ("block", "sizes"), [(Multihead, (3, 5, 8)), (MAB, (8, 5, 8)), (SAB, (8, 8)), (ISAB, (8, 8)), (PMA, (8,))]
)
def test_options_of_attention_are_keywords_of_the_blocks(block, sizes):
    changes = {"heads": 2, "form": "paper", "score": "bilinear"}
    by_name, by_options = block(*sizes, **changes), block(*sizes, options=AttentionOptions(**changes))
    assert repr(by_name) == repr(by_options) != repr(block(*sizes))
    assert {module.heads for module in by_name.modules() if isinstance(module, Multihead)} == {2}
