"""The tiled additive score: same logits and gradients as the plain operations, and no hidden layer kept in memory."""

import copy

import pytest
import torch
from torch import Tensor, nn

from pointset.configuration import AttentionOptions
from pointset.nn import MAB, Multihead, Packed
from pointset.nn.fast import additive
from pointset.nn.fast.additive import Side, additive_logits, additive_plainly
from pointset.nn.fast.plan import Way, plan

HEADS, WIDTH, D_QUERY, D_KEY = 3, 4, 5, 7
DIM = HEADS * WIDTH
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}
SIZES = {
    "more keys": (2, 2, 3, 11),
    "more queries": (2, 2, 11, 3),
    "shared queries": (1, 3, 2, 9),
    "more shared queries": (1, 3, 9, 2),
    "one query": (1, 2, 1, 9),
    "one set": (1, 1, 6, 6),
    "fewer queries than a head is wide, many keys": (1, 2, 3, 40),
    "no query": (2, 2, 0, 4),
    "no key": (1, 2, 3, 0),
    "no set": (1, 0, 3, 4),
}
TILES = {"a tile of everything": 2**18, "tiles of some heads": 300, "tiles of some pairs": 40, "tiles of one pair": 1}


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def tensors(queries: int, sets: int, n: int, m: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """Rows and map of the queries, rows and map of the keys, bias, and output weights."""
    sizes = (queries, n, D_QUERY), (DIM, D_QUERY), (sets, m, D_KEY), (DIM, D_KEY), (DIM,), (HEADS, WIDTH)
    return tuple(normal(*size, seed=seed, dtype=dtype).requires_grad_() for seed, size in enumerate(sizes))


def tiled(X: Tensor, W: Tensor, Y: Tensor, V: Tensor, b: Tensor, w: Tensor) -> Tensor:
    return additive_logits(Side(X, W), Side(Y, V), b, w)


def plain(X: Tensor, W: Tensor, Y: Tensor, V: Tensor, b: Tensor, w: Tensor) -> Tensor:
    return additive_plainly(Side(X, W), Side(Y, V), b, w)


def learned(function, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    logits = function(*inputs)
    return logits, *torch.autograd.grad((logits * normal(*logits.shape, seed=9).to(logits.dtype)).sum(), inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("size", SIZES)
def test_tiled_logits_and_gradients_equal_the_plain_ones(size, tile, dtype, monkeypatch):
    monkeypatch.setattr(additive, "tile_size", lambda: TILES[tile])
    inputs = tensors(*SIZES[size], dtype=dtype)
    expected, found = learned(plain, inputs), learned(tiled, inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    with torch.no_grad():
        torch.testing.assert_close(tiled(*inputs), found[0])


@pytest.mark.slow
@pytest.mark.parametrize("size", ["more keys", "more queries", "shared queries"])
def test_derivatives_pass_gradcheck(size):
    inputs = tensors(*SIZES[size])
    assert torch.autograd.gradcheck(tiled, inputs)
    assert torch.autograd.gradgradcheck(tiled, inputs, fast_mode=True)


def test_the_relu_has_gradient_zero_at_zero():
    """At p = -r the derivative of torch's ReLU is 0, and so is ours."""
    inputs = tuple(torch.ones_like(part).requires_grad_() for part in tensors(1, 2, 2, 3))
    with torch.no_grad():
        inputs[4].fill_(-D_QUERY - D_KEY)  # p = D_QUERY, r = D_KEY
    assert plain(*inputs).eq(0).all()
    for one, other in zip(learned(tiled, inputs), learned(plain, inputs), strict=True):
        assert one.eq(0).all()
        assert other.eq(0).all()


@pytest.mark.parametrize("side", [0, 2])
def test_nan_in_the_input_stays_nan_in_the_logits(side):
    inputs = tensors(2, 2, 3, 5)
    with torch.no_grad():
        inputs[side][1, 2, 0] = torch.nan
    torch.testing.assert_close(tiled(*inputs), plain(*inputs), equal_nan=True)
    assert tiled(*inputs).isnan().any()


@pytest.mark.parametrize("factor", [1e-18, 1e15])
def test_small_and_large_numbers(factor):
    inputs = tensors(1, 2, 4, 9, dtype=torch.float32)
    with torch.no_grad():
        for part in (inputs[0], inputs[2], inputs[4]):
            part *= factor
    expected = plain(*(part.double() for part in inputs))
    torch.testing.assert_close(tiled(*inputs).double() / factor, expected / factor, rtol=2e-5, atol=2e-5)


def test_a_piece_of_the_hidden_layer_is_no_larger_than_a_tile(monkeypatch):
    sizes = []

    class Watched(additive.Scratch):
        def __call__(self, *shape: int) -> Tensor:
            found = super().__call__(*shape)
            sizes.append(found.numel())
            return found

    monkeypatch.setattr(additive, "Scratch", Watched)
    monkeypatch.setattr(additive, "tile_size", lambda: 10 * WIDTH)
    tiled(*tensors(2, 2, 3, 7)).sum().backward()
    assert max(sizes) <= 10 * WIDTH
    assert sum(sizes) == 2 * 2 * HEADS * WIDTH * 3 * 7  # forward and backward


def test_nothing_of_the_size_of_the_hidden_layer_is_kept():
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda part: kept.append(part.numel()) or part, lambda part: part):
        tiled(*tensors(1, 2, 50, 60))
    assert kept
    assert max(kept) < HEADS * 50 * 60


def attention(**options) -> Multihead:
    torch.manual_seed(0)
    return Multihead(D_QUERY, D_KEY, DIM, AttentionOptions(heads=HEADS, score="additive", **options)).double()


def plainly(module: nn.Module) -> nn.Module:
    """The module with a hook, so that it uses the plain operations."""
    module = copy.deepcopy(module)
    for part in module.modules():
        part.register_forward_hook(lambda *_: None)
    return module


def answers(module: Multihead, given: str, X: Tensor, Y: Tensor, mask: Tensor | None) -> dict[str, Tensor | None]:
    X, Y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    result = module(X, Y, mask) if given == "rows" else module.output(module.attend(module.query(X), Y, mask))
    (result * normal(*result.shape, seed=7)).sum().backward()
    gradients = {name: part.grad for name, part in module.named_parameters()}
    return {"result": result.detach(), "X": X.grad, "Y": Y.grad, **gradients}


@pytest.mark.parametrize("given", ["rows", "queries"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("weights", ["softmax", "sparsemax", "csoftmax"])
@pytest.mark.parametrize(("queries", "n"), [(1, 2), (3, 2), (3, 40)])
def test_tiled_attention_equals_the_plain_attention(queries, n, weights, masked, given):
    fast = attention(weights=weights, form="paper", temperature=0.5, trained_temperature=True)
    X, Y = normal(queries, n, D_QUERY), normal(3, 20, D_KEY, seed=1)
    mask = normal(3, 20, seed=2) > 0 if masked else None
    if mask is not None:
        mask[1] = False
        Y[2, ~mask[2]] = torch.nan
    way = plan(fast.case(fast.query(X), Y, mask, None))
    assert way is (Way.ADDITIVE_ABSORBED if n == 2 else Way.ADDITIVE)
    slow = plainly(fast)
    assert plan(slow.case(slow.query(X), Y, mask, None)) is Way.EXPLICIT
    expected, found = answers(slow, given, X, Y, mask), answers(fast, given, X, Y, mask)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-10, atol=1e-10, msg=lambda text, name=name: name + text)


@pytest.mark.parametrize("form", ["reference", "paper"])
def test_a_tiled_block_equals_the_plain_one_with_padded_and_packed_sets(form):
    torch.manual_seed(0)
    block = MAB(DIM, D_KEY, DIM, AttentionOptions(heads=HEADS, score="additive", form=form)).double()
    X, Y = normal(3, 12, DIM), normal(3, 6, D_KEY, seed=1)
    expected = plainly(block)(X, Y)
    torch.testing.assert_close(block(X, Y), expected, rtol=1e-10, atol=1e-10)
    rows = torch.cat([X[0], X[1, :4], X[2]])
    found = block(rows, Y, query_mask=Packed((12, 4, 12)))
    torch.testing.assert_close(found, torch.cat([expected[0], expected[1, :4], expected[2]]), rtol=1e-10, atol=1e-10)


def test_weights_are_recorded():
    module, record = attention(), []
    module.record = record.append
    module(normal(2, 3, D_QUERY), normal(2, 8, D_KEY, seed=1))
    assert [part.shape for part in record] == [(2, HEADS, 3, 8)]
    torch.testing.assert_close(record[0].sum(-1), torch.ones(2, HEADS, 3, dtype=torch.float64))


def test_values_are_not_absorbed_when_weights_are_dropped():
    module, Q, Y = attention(attention_dropout=0.5).train(), normal(1, 2, DIM), normal(2, 20, D_KEY)
    assert plan(module.case(Q, Y, None, None)) is Way.ADDITIVE
    assert plan(module.eval().case(Q, Y, None, None)) is Way.ADDITIVE_ABSORBED


def test_unsupported_cases_are_not_tiled():
    Q, Y = normal(1, 2, DIM), normal(2, 20, D_KEY)
    module = attention()
    assert module.case(Q, Y, None, None).additive
    assert not attention(score_layers=2).case(Q, Y, None, None).additive
    assert not plainly(module).case(Q, Y, None, None).additive
    assert not module.case(Q.bfloat16(), Y.bfloat16(), None, None).additive
    with torch.autocast("cpu", torch.bfloat16):
        assert not module.case(Q, Y, None, None).additive


def test_transforms_and_exporters_get_the_plain_operations():
    module, X, Y = attention(), normal(1, 2, D_QUERY), normal(4, 20, D_KEY, seed=1)
    expected = module(X, Y)
    mapped = torch.vmap(lambda y: module(X, y[None])[0])(Y)
    torch.testing.assert_close(mapped, expected, rtol=1e-10, atol=1e-10)
    program = torch.export.export(module, (X, Y)).module()
    torch.testing.assert_close(program(X, Y), expected, rtol=1e-10, atol=1e-10)
    _, slope = torch.func.jvp(lambda y: module(X, y), (Y,), (torch.ones_like(Y),))
    shifted = (module(X, Y + 1e-6) - module(X, Y - 1e-6)) / 2e-6
    torch.testing.assert_close(slope, shifted, rtol=1e-6, atol=1e-7)
