"""One attention, computed in three ways, against a transcription of the formula and against torch's own module."""

import math

import pytest
import torch
from torch import Tensor

from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import flops
from pointset.nn.attention import Multihead
from pointset.nn.weights import Weights

# Every size differs, so that a swapped axis fails.
B, N, M, DIM_QUERY, DIM_KEY, DIM, HEADS = 2, 3, 7, 5, 11, 12, 4
PAPER = AttentionOptions(heads=HEADS, form="paper")


@pytest.fixture
def attention() -> Multihead:
    torch.manual_seed(0)
    return Multihead(DIM_QUERY, DIM_KEY, DIM, PAPER).double()


def inputs(batch: int = B) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(batch, N, DIM_QUERY, generator=generator, dtype=torch.float64)
    Y = torch.randn(B, M, DIM_KEY, generator=generator, dtype=torch.float64)
    mask = torch.tensor([[True] * 4 + [False] * 3, [True, False] * 3 + [True]])
    return X, Y, mask


def transcribed(attention: Multihead, X: Tensor, Y: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """concat_j(softmax(Q_j K_j^T s) V_j) W^O, one set, one head and one query at a time."""
    result = torch.zeros(Y.shape[0], X.shape[1], DIM, dtype=torch.float64)
    width = DIM // HEADS
    for b in range(Y.shape[0]):
        x = X[b if X.shape[0] > 1 else 0]
        y = Y[b] if mask is None else Y[b][mask[b]]
        for j in range(HEADS):
            part = slice(j * width, (j + 1) * width)
            keys = y @ attention.key.weight[part].T + attention.key.bias[part]
            values = y @ attention.value.weight[part].T + attention.value.bias[part]
            for i in range(X.shape[1]):
                query = attention.query.weight[part] @ x[i] + attention.query.bias[part]
                exponentials = torch.exp(keys @ query * scale)
                result[b, i, part] = (exponentials / exponentials.sum()) @ values
    return result @ attention.output.weight.T + attention.output.bias


@pytest.mark.parametrize("batch", [1, B], ids=["shared queries", "own queries"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("way", ["_absorbed", "_explicit", "_fused"])
def test_every_way_is_the_formula(attention, way, masked, batch):
    X, Y, mask = inputs(batch)
    keep = mask if masked else None
    found = attention.output(getattr(attention, way)(attention.query(X), Y, keep))
    torch.testing.assert_close(found, transcribed(attention, X, Y, keep, 1 / math.sqrt(DIM)))


@pytest.mark.parametrize("way", ["_absorbed", "_explicit"])
def test_every_way_has_the_gradients_of_the_fused_one(attention, way):
    X, Y, mask = inputs()

    def gradients(name: str) -> dict[str, Tensor]:
        attention.zero_grad()
        getattr(attention, name)(attention.query(X), Y, mask).square().sum().backward()
        return {name: parameter.grad for name, parameter in attention.named_parameters() if parameter.grad is not None}

    expected = gradients("_fused")
    found = gradients(way)
    # The key bias cancels in the softmax: its gradient is zero, which the absorbed way need not even compute.
    assert expected.pop("key.bias").abs().max() < 1e-12
    found.pop("key.bias", None)
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


def test_few_queries_are_absorbed_and_many_are_not(attention, monkeypatch):
    ways = []
    for way in ("_absorbed", "_fused", "_explicit"):
        original = getattr(Multihead, way)
        monkeypatch.setattr(
            Multihead,
            way,
            lambda self, *args, way=way, original=original: (ways.append(way), original(self, *args))[1],
        )
    wide = Multihead(16, 16, 16, PAPER)
    wide(torch.randn(1, 1, 16), torch.randn(1, 100, 16))
    wide(torch.randn(1, 100, 16), torch.randn(1, 100, 16))
    wide.record = [].append
    wide(torch.randn(1, 100, 16), torch.randn(1, 100, 16))
    assert ways == ["_absorbed", "_fused", "_explicit"]


@pytest.mark.parametrize("scale", ["model", "head"])
def test_agrees_with_torch(scale):
    """torch.nn.MultiheadAttention scales by sqrt(d / h): ours equals it with "head", and must not with "model"."""
    torch.manual_seed(0)
    ours = Multihead(DIM, DIM, DIM, AttentionOptions(heads=HEADS, form="paper", scale=scale)).double()
    theirs = torch.nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in (ours.query, ours.key, ours.value)]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in (ours.query, ours.key, ours.value)]))
        theirs.out_proj.weight.copy_(ours.output.weight)
        theirs.out_proj.bias.copy_(ours.output.bias)
    X = torch.randn(B, N, DIM, dtype=torch.float64)
    Y = torch.randn(B, M, DIM, dtype=torch.float64)
    mask = inputs()[2]
    record: list[torch.Tensor] = []
    ours.record = record.append
    expected, weights = theirs(X, Y, Y, key_padding_mask=~mask, average_attn_weights=False)
    found = ours(X, Y, mask)
    if scale == "head":
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(record[0], weights)
    else:
        assert (found - expected).abs().max() > 1e-3


def test_weights_of_padding_are_exactly_zero_and_rows_sum_to_one():
    logits = torch.randn(B, HEADS, N, M) * 50
    mask = inputs()[2]
    weights = Weights(AttentionOptions(heads=HEADS))(logits, mask)
    assert (weights.masked_select(~mask[:, None, None, :]) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, HEADS, N))


@pytest.mark.parametrize("way", ["_absorbed", "_explicit", "_fused"])
def test_an_empty_set_answers_zero_with_finite_gradients(way, monkeypatch):
    monkeypatch.setattr(Multihead, "_absorbing_is_cheaper", lambda *_: way == "_absorbed")
    attention = Multihead(DIM_QUERY, DIM_KEY, DIM, AttentionOptions(heads=HEADS))
    attention.record = [].append if way == "_explicit" else None
    X, Y, mask = inputs()
    X, Y = X.float(), Y.float().requires_grad_()
    mask[1] = False
    result = attention(X, Y, mask)
    result.sum().backward()
    assert (result[1] == 0).all()
    assert (result[0] != 0).any()
    assert Y.grad.isfinite().all()
    assert (Y.grad[1] == 0).all()


def test_gradcheck():
    torch.manual_seed(0)
    attention = Multihead(2, 3, 4, AttentionOptions(heads=2, form="paper")).double()
    X = torch.randn(1, 2, 2, dtype=torch.float64, requires_grad=True)
    Y = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    for way in (attention._absorbed, attention._explicit, attention._fused):
        torch.autograd.gradcheck(lambda X, Y, way=way: way(attention.query(X), Y, mask), (X, Y))


@pytest.mark.parametrize("masked", [False, True])
def test_folding_both_projections_into_few_keys_changes_nothing(masked):
    block = Multihead(12, 20, 24, AttentionOptions(heads=3, form="paper")).double()
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(2, 50, 12, generator=generator, dtype=torch.double, requires_grad=True)
    Y = torch.randn(2, 2, 20, generator=generator, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True, False], [False, False]]) if masked else None
    inputs = (X, Y, *block.parameters())
    assert block._folding_is_cheaper(X, Y, None)
    found, expected = block(X, Y, mask), block.output(block.attend(block.query(X), Y, mask))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    gradients = (torch.autograd.grad(out.square().sum(), inputs, allow_unused=True) for out in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-11)


def test_folding_saves_operations():
    block = Multihead(32, 32, 32, AttentionOptions(heads=2, form="paper"))
    X, Y = torch.zeros(1, 500, 32), torch.zeros(1, 4, 32)
    with torch.no_grad():
        assert flops(lambda: block(X, Y)) == 2 * (2 * 4 * 32**2 + 2 * 4 * 32**2 + 2 * 500 * 2 * 4 * 32 + 4 * 32)
