"""Attention against its formulas and torch's own module, with any weights and in every way to compute it."""

import itertools
import math
from functools import partial

import pytest
import torch
from torch import Tensor
from toy import OWN_WEIGHTS, Sharpened, normal, squashed

import pointset
from pointset import PointsetError, create_model
from pointset.configuration import AttentionOptions
from pointset.explain.importance import rollout
from pointset.nn import ISAB, Weights, scores
from pointset.nn.attention import Multihead, explicit
from pointset.nn.fast import kernels, tiles
from pointset.nn.fast import writing as fast_writing
from pointset.nn.fast.absorbed import Projection, absorbed, absorbed_in_tiles, read_plainly, read_sets
from pointset.nn.fast.kernels import fused
from pointset.nn.fast.writing import write_plainly, write_rows
from pointset.nn.scores import SCORES, BilinearScore, DotScore
from pointset.nn.simplex import BOUNDED, WEIGHTS, constrained_sparsemax

# Every size differs, so that a swapped axis fails.
MASK = torch.tensor([[True] * 4 + [False] * 3, [True, False] * 3 + [True]])
B, N, M, DIM_QUERY, DIM_KEY, DIM, HEADS, WIDTH = 2, 3, 7, 5, 11, 24, 4, 6


def inputs(batch: int = B) -> tuple[Tensor, Tensor, Tensor]:
    return normal(batch, N, DIM_QUERY), normal(B, M, DIM_KEY, seed=1), MASK.clone()


def transcribed(attention: Multihead, X: Tensor, Y: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """concat_j(w(Q_j K_j^T s) V_j) W^O with w = softmax or another, one set, one head and one query at a time."""
    result = torch.zeros(Y.shape[0], X.shape[1], DIM, dtype=torch.float64)
    own = [*attention.weights.functions.values()]
    for b in range(Y.shape[0]):
        x = X[b if X.shape[0] > 1 else 0]
        y = Y[b] if mask is None else Y[b][mask[b]]
        for j in range(HEADS):
            part = slice(j * WIDTH, (j + 1) * WIDTH)
            keys = y @ attention.key.weight[part].T + attention.key.bias[part]
            values = y @ attention.value.weight[part].T + attention.value.bias[part]
            for i in range(X.shape[1]):
                query = attention.query.weight[part] @ x[i] + attention.query.bias[part]
                logits = (keys @ query * scale)[None, None, None]
                weights = own[0](logits, None) if own else logits.exp() / logits.exp().sum()
                result[b, i, part] = weights[0, 0, 0] @ values
    return result @ attention.output.weight.T + attention.output.bias


KERNELS = {kernel.__name__: kernel for kernel in (explicit, fused, absorbed, absorbed_in_tiles)}


@pytest.mark.parametrize("batch", [1, B], ids=["shared queries", "own queries"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("kernel", "weights"), [*((name, "softmax") for name in KERNELS), *(("explicit", own) for own in OWN_WEIGHTS)]
)
def test_every_kernel_equals_the_formula(kernel, weights, masked, batch):
    options = AttentionOptions(heads=HEADS, form="paper", weights=weights)
    attention = Multihead(DIM_QUERY, DIM_KEY, DIM, options).double()
    X, Y, mask = inputs(1 if kernel == "absorbed_in_tiles" else batch)
    keep = mask if masked else None
    Q, K, V = attention.query(X), Projection(Y, attention.key), Projection(Y, attention.value)
    result = attention.output(KERNELS[kernel](Q, K, V, keep, attention.score, attention.weights))
    torch.testing.assert_close(result, transcribed(attention, X, Y, keep, 1 / math.sqrt(DIM)))


def test_agrees_with_torch():
    """torch.nn.MultiheadAttention scales by sqrt(d / h)."""
    ours = Multihead(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form="paper", scale="head")).double()
    theirs = torch.nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in (ours.query, ours.key, ours.value)]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in (ours.query, ours.key, ours.value)]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    X, Y, mask = normal(B, N, DIM), normal(B, M, DIM, seed=1), inputs()[2]
    record: list[Tensor] = []
    ours.record = record.append
    expected, weights = theirs(X, Y, Y, key_padding_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(ours(X, Y, mask), expected)
    torch.testing.assert_close(record[0], weights)


@pytest.mark.parametrize("kernel", KERNELS)
def test_attention_to_an_empty_set_is_zero_with_finite_gradients(kernel, monkeypatch):
    monkeypatch.setattr("pointset.nn.attention.choose_kernel", lambda *_: KERNELS[kernel])
    attention = Multihead(DIM_QUERY, DIM_KEY, DIM, AttentionOptions(heads=HEADS))
    X, Y, mask = inputs(1)
    X, Y = X.float(), Y.float().requires_grad_()
    mask[1] = False
    result = attention(X, Y, mask)
    result.sum().backward()
    assert (result[1] == 0).all()
    assert (result[0] != 0).any()
    assert Y.grad.isfinite().all()
    assert (Y.grad[1] == 0).all()


def test_every_block_has_its_own_copy_of_a_module_of_weights():
    shared = Sharpened()
    isab = ISAB(8, 8, 3, AttentionOptions(heads=2, weights=shared)).double()
    isab(normal(3, 5, 8)).sum().backward()
    powers = [parameter for name, parameter in isab.named_parameters() if name.endswith("power")]
    assert len(powers) == 2
    assert all(power is not shared.power and power.grad is not None for power in powers)


def test_maps_of_ones_own_weights_need_not_sum_to_one():
    model = pointset.create_model("isab3-pma2", classes=4, dim=8, heads=2, weights=squashed).eval().double()
    maps = pointset.attention_maps(model, normal(1, 9, 3))
    assert [found.kind for found in maps] == ["reads", "writes", "reads", "writes", "pools", "self"]
    assert all(((found.weights >= 0) & (found.weights <= 1)).all() for found in maps)
    assert any((found.weights.sum(dim=-1) - 1).abs().max() > 0.1 for found in maps)
    assert all(found.entropy().isfinite().all() and found.entropy().max() <= 1 + 1e-6 for found in maps)
    with pytest.raises(PointsetError, match=r"rows that sum to 1, and encoder\.0\.reads has other rows"):
        rollout([found[0] for found in maps])


def score_of(name, **options):
    given = {"scale": 0.3, "temperature": 0.5, **options}
    score = SCORES[name](DIM, AttentionOptions(heads=HEADS, score=name, **given)).double()
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.normal_()
    return score


def pair_by_pair(score, Q: Tensor, K: Tensor) -> Tensor:
    """The formulas of the module's text, for one query and one key of one head each."""
    temperature = 0.5 if score.log_temperature is None else None
    logits = torch.empty(B, HEADS, N, M, dtype=torch.float64)
    for b, j, i, k in itertools.product(*map(range, logits.shape)):
        heat = temperature or 0.5 * math.exp(score.log_temperature[j].item())
        logits[b, j, i, k] = one_pair(score, j, Q[b, j, i], K[b, j, k]) / heat
    return logits


def one_pair(score, j: int, query: Tensor, key: Tensor) -> Tensor:
    if isinstance(score, BilinearScore):
        return 0.3 * key @ score.weight[j] @ query
    if isinstance(score, DotScore):
        return 0.3 * key @ query
    W = torch.cat([score.of_key[j], score.of_query[j]]).T  # [c, 2 c]
    hidden = torch.relu(W @ torch.cat([key, query]))
    for weight in score.hidden:
        hidden = torch.relu(weight[j].T @ hidden)
    return score.out[j] @ hidden


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(("name", "layers"), [("dot", 1), ("bilinear", 1), ("additive", 1), ("additive", 3)])
def test_logits_are_the_formula(name, layers, trained):
    score = score_of(name, score_layers=layers, trained_temperature=trained)
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    torch.testing.assert_close(score(Q, K), pair_by_pair(score, Q, K))


def test_the_bilinear_score_is_initially_the_dot_product():
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    options = [AttentionOptions(heads=HEADS, score=name) for name in ("bilinear", "dot")]
    bilinear, dot = (SCORES[one.score](DIM, one).double() for one in options)
    torch.testing.assert_close(bilinear(Q, K), dot(Q, K), rtol=0, atol=0)


@pytest.mark.parametrize("layers", [1, 2])
def test_additive_logits_in_pieces_equal_those_computed_at_once(layers, monkeypatch):
    score = score_of("additive", score_layers=layers)
    inputs = [normal(1, HEADS, N, WIDTH).requires_grad_(), normal(B, HEADS, M, WIDTH, seed=2).requires_grad_()]
    asked = [*inputs, *score.parameters()]
    whole = score(*inputs)
    expected = torch.autograd.grad(whole.square().sum(), asked)
    monkeypatch.setattr(scores, "MOST_HIDDEN", 2 * B * HEADS * M * WIDTH)  # two queries at a time
    pieces = score(*inputs)
    found = torch.autograd.grad(pieces.square().sum(), asked)
    torch.testing.assert_close(pieces, whole)
    torch.testing.assert_close(found, expected)


NAMES = tuple(WEIGHTS)


def logits_of(*shape: int) -> Tensor:
    return 3 * normal(*shape)


def weights_of(name: str | tuple[str, ...], heads: int = HEADS, **options) -> Weights:
    return Weights(AttentionOptions(weights=name, heads=heads, **options))


def test_every_head_has_its_own_function():
    names = ("softmax", "sparsemax", "entmax15", "csparsemax")
    logits = logits_of(B, HEADS, N, M)
    found = weights_of(names, bound=2.0)(logits)
    for head, name in enumerate(names):
        alone = weights_of(name, 1, bound=2.0)(logits[:, head : head + 1])
        torch.testing.assert_close(found[:, head : head + 1], alone)
    assert (found[:, 0] > 0).all()
    assert (found[:, 1] == 0).any()


@pytest.mark.parametrize("name", ["csoftmax", "csparsemax"])
@pytest.mark.parametrize(("coverage", "axis", "sharers"), [("seeds", 2, N), ("heads", 1, HEADS)])
def test_a_weight_is_at_most_its_bound_and_a_key_has_at_most_its_fertility(name, coverage, axis, sharers):
    logits, uniform = logits_of(B, HEADS, N, M), 1 / MASK.sum(dim=1).double()[:, None, None, None]
    alone, covered = (weights_of(name, bound=1.5, coverage=one)(logits, MASK) for one in ("none", coverage))
    assert (alone / uniform).max() == pytest.approx(1.5)
    assert (covered.sum(dim=axis) <= 1.5 * sharers * uniform[..., 0] + 1e-12).all()
    assert not torch.allclose(covered.sum(dim=axis), alone.sum(dim=axis))
    for found in (alone, covered):
        torch.testing.assert_close(found.sum(dim=-1), torch.ones(B, HEADS, N, dtype=torch.float64))
        assert (found >= 0).all()
        assert not found[~MASK[:, None, None, :].expand_as(found)].any()


def test_coverage_is_what_the_docstring_says():
    """u_1 = bound T / m, u_(t+1) = u_t minus the weights of row t, each a constrained sparsemax."""
    logits = logits_of(1, 1, 3, M)
    left = torch.full((M,), 1.2 * 3 / M, dtype=torch.float64)
    found = weights_of("csparsemax", 1, bound=1.2, coverage="seeds")(logits)[0, 0]
    for row, weights in zip(logits[0, 0], found, strict=True):
        expected = constrained_sparsemax(row, left)
        torch.testing.assert_close(weights, expected)
        left = (left - expected).clamp(min=0)


@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize(("coverage", "dtype", "keys"), [("seeds", torch.bfloat16, 279), ("heads", torch.float16, 335)])
def test_half_precision_leaves_the_last_seed_a_complete_row(name, coverage, dtype, keys):
    """With bound 1, the bounds left for the last row sum to 1 only if nothing is rounded, not even the key count."""
    shape = (1, 1, 4, keys) if coverage == "seeds" else (1, 4, 1, keys)
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(keys)).to(dtype)
    mask = torch.arange(keys + 30)[None] < keys
    padded = torch.nn.functional.pad(logits, (0, 30))
    weights = weights_of(name, shape[1], bound=1.0, coverage=coverage)
    found = weights(logits)
    assert found.dtype == dtype
    assert torch.equal(found, weights(logits.float()).to(dtype))
    torch.testing.assert_close(weights(padded, mask)[..., :keys], found)


def test_dropped_weights_are_zero_and_the_others_larger():
    weights = weights_of("softmax", attention_dropout=0.25)
    logits = logits_of(B, HEADS, 100, M)
    found, kept = weights.train()(logits), weights.eval()(logits)
    dropped = found == 0
    assert dropped.double().mean() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(found[~dropped], kept[~dropped] / 0.75)


@pytest.mark.parametrize("weights", [*NAMES, ("softmax", "sparsemax", "entmax15", "csoftmax"), *OWN_WEIGHTS])
@pytest.mark.parametrize("score", ["dot", "bilinear", "additive"])
@pytest.mark.parametrize(("n", "m", "sets"), [(2, 90, 1), (2, 50, B), (50, 2, B), (80, 100, B)])
def test_every_order_of_products_gives_the_same_attention(weights, score, n, m, sets):
    """The cheapest way against projected keys with explicit weights, in equal values and gradients: for few shared
    queries, few queries, few keys, and many of both.
    """
    options = AttentionOptions(heads=HEADS, form="paper", score=score, weights=weights, trained_temperature=True)
    attention = Multihead(5, 6, 8, options).double()
    X, Y = normal(sets, n, 5), normal(B, m, 6, seed=1)
    mask = torch.arange(m).expand(B, m) < torch.tensor([[m], [m - 1]])

    def gradients(result: Tensor) -> list[Tensor | None]:
        return torch.autograd.grad(result.square().sum(), list(attention.parameters()), allow_unused=True)

    found = attention(X, Y, mask)
    K, V = Projection(Y, attention.key), Projection(Y, attention.value)
    expected = attention.output(explicit(attention.query(X), K, V, mask, attention.score, attention.weights))
    torch.testing.assert_close(found, expected)
    for (name, weight), *both in zip(attention.named_parameters(), gradients(found), gradients(expected), strict=True):
        one, other = (torch.zeros_like(weight) if gradient is None else gradient for gradient in both)
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")


SETS, ROWS = 7, 23


@pytest.fixture
def small_tiles(monkeypatch):
    """Sets the size of tiles to a few rows, so that small sets have many tiles."""
    monkeypatch.setattr(tiles, "tile_size", lambda: 64)


def plain_operations(monkeypatch):
    for module in (kernels, fast_writing):
        monkeypatch.setattr(module, "may_tile", lambda *_: False)


def gradients(function, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    inputs = tuple(part.detach().clone().requires_grad_() for part in inputs)
    out = function(*inputs)
    weights = normal(*out.shape, seed=9)
    return out.detach(), *torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize("rows", [0, 1, 3, 23])
@pytest.mark.parametrize("masked", [False, True])
def test_reading(small_tiles, masked, rows):
    X, queries = normal(SETS, rows, 6), normal(11, 6, seed=1)
    keep = normal(SETS, rows, seed=2) > 0 if masked else None
    if keep is not None:
        keep[1] = False
    expected = gradients(lambda *inputs: read_plainly(*inputs, keep), (X, queries))
    found = gradients(lambda *inputs: read_sets(*inputs, keep), (X, queries))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert keep is None or found[0][1].eq(0).all()
    with torch.no_grad():
        torch.testing.assert_close(read_sets(X, queries, keep), expected[0], rtol=1e-12, atol=1e-12)


def written_inputs(sets: int = SETS, rows: int = ROWS) -> tuple[Tensor, ...]:
    """X, K, V, the two maps and their biases: three keys, width 8 from 5."""
    keys = (sets, 3, 8)
    sizes = ((sets, rows, 5), keys, keys, (8, 5), (8,), (8, 8), (8,))
    return tuple(normal(*size, seed=seed) for seed, size in enumerate(sizes))


@pytest.mark.parametrize("rows", [0, 1, 3, 23])
def test_writing(small_tiles, rows):
    expected, found = (
        gradients(partial(write, heads=2), written_inputs(rows=rows)) for write in (write_plainly, write_rows)
    )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(
            partial(write_rows, heads=2)(*written_inputs(rows=rows)), expected[0], rtol=1e-12, atol=1e-12
        )


@pytest.mark.slow
def test_second_derivatives(small_tiles):
    inputs = tuple(part.requires_grad_() for part in written_inputs(2, 3))
    assert torch.autograd.gradgradcheck(partial(write_rows, heads=2), inputs, fast_mode=True)
    inputs = (normal(2, 3, 6).requires_grad_(), normal(4, 6, seed=1).requires_grad_())
    assert torch.autograd.gradgradcheck(read_sets, inputs)


def test_the_tiled_way_is_chosen(monkeypatch):
    """Otherwise the test above would compare the plain operations with themselves."""
    model, taken = create_model("isab3-pma", classes=5, dim=32), []

    def watched(call):
        return lambda *arguments, **named: taken.append(call.__name__) or call(*arguments, **named)

    monkeypatch.setattr("pointset.nn.fast.absorbed.read_sets", watched(read_sets))
    monkeypatch.setattr(fast_writing, "write_rows", watched(write_rows))
    model(normal(3, 83, 3).float())
    assert taken == ["read_sets", "write_rows"] * 2 + ["read_sets"]
    plain_operations(monkeypatch)
    model(normal(3, 83, 3).float())
    assert len(taken) == 5


def test_transforms_and_autocast_get_the_plain_operations():
    model = create_model("isab4-pma", classes=5, dim=16, dropout=0.0).double()
    points = normal(2, 70, 3)

    def first(one: Tensor) -> Tensor:
        return model(one)[0, 0]

    gradient = torch.func.grad(first)(points)
    direction = normal(2, 70, 3, seed=1)
    _, change = torch.func.jvp(first, (points,), (direction,))
    torch.testing.assert_close(change, (gradient * direction).sum())
    each = torch.func.vmap(lambda one: model(one[None])[0])(points)
    torch.testing.assert_close(each, model(points))
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert model(points.float()).dtype == torch.bfloat16
