"""Every way to compute attention, against a transcription of the formula and against torch's own module."""

import math

import pytest
import torch
from torch import Tensor

from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import flops
from pointset.nn.attention import WAYS, Multihead
from pointset.nn.fast.folded import folded
from pointset.nn.fast.packing import Packed
from pointset.nn.fast.plan import FEW_KEYS, FEW_ROUNDED_KEYS, Case, Way, plan
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
@pytest.mark.parametrize("way", ["absorbed", "explicit", "fused", "folded", "absorbed_in_tiles"])
def test_every_way_equals_the_formula(attention, way, masked, batch):
    X, Y, mask = inputs({"absorbed_in_tiles": 1, "folded": B}.get(way, batch))
    keep = mask if masked else None
    if way == "folded":
        found = folded(attention, X, Y, keep)
    else:
        found = attention.output(WAYS[Way[way.upper()]](attention, attention.query(X), Y, keep))
    torch.testing.assert_close(found, transcribed(attention, X, Y, keep, 1 / math.sqrt(DIM)))


@pytest.mark.parametrize("way", [Way.ABSORBED, Way.EXPLICIT])
def test_every_way_has_the_gradients_of_the_fused_one(attention, way):
    X, Y, mask = inputs()

    def gradients(way: Way) -> dict[str, Tensor]:
        attention.zero_grad()
        WAYS[way](attention, attention.query(X), Y, mask).square().sum().backward()
        return {name: parameter.grad for name, parameter in attention.named_parameters() if parameter.grad is not None}

    expected = gradients(Way.FUSED)
    found = gradients(way)
    # The key bias cancels in the softmax: its gradient is zero, which the absorbed way need not even compute.
    assert expected.pop("key.bias").abs().max() < 1e-12
    found.pop("key.bias", None)
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")


CASE = Case(heads=4, dim=16, dim_query=16, dim_key=16, n=100, m=100, queries=3, sets=3)
"""A set that reads itself: nothing is cheaper than the formula."""
FEW_QUERIES = CASE._replace(n=1, queries=1)
FEW = CASE._replace(m=2)
COORDINATES = CASE._replace(dim_query=3, dim_key=3, n=1024, m=1024, queries=1, sets=1)
"""Keys of three numbers, as in a first layer: thin products if absorbed, and just MOST_WEIGHTS weights."""
MORE = COORDINATES._replace(queries=2, sets=2)
PLANNED = {
    "a block with few keys": (FEW._replace(block=True, tiles=True), Way.WRITTEN),
    "a block of packed queries": (FEW._replace(block=True, tiles=True, n=None, packed_queries=True), Way.WRITTEN),
    "a block without tiles": (FEW._replace(block=True), Way.EXPLICIT),
    "a block with more keys than queries": (CASE._replace(block=True, tiles=True, n=2, m=3), Way.EXPLICIT),
    "a block with many keys": (CASE._replace(block=True, tiles=True), Way.FUSED),
    "a block whose queries all sets share": (FEW._replace(block=True, tiles=True, queries=1), Way.EXPLICIT),
    "packed queries": (CASE._replace(n=None, packed_queries=True, packed_keys=True), Way.RUNS),
    "packed keys, few queries": (FEW_QUERIES._replace(packed_keys=True, tiles=True), Way.ABSORBED_IN_TILES),
    "packed keys, few queries, no tiles": (FEW_QUERIES._replace(packed_keys=True), Way.RUNS),
    "packed keys, queries of each set": (CASE._replace(n=1, packed_keys=True, tiles=True), Way.RUNS),
    "packed keys, many queries": (CASE._replace(queries=1, packed_keys=True, tiles=True), Way.RUNS),
    "few keys, then W^O": (FEW._replace(output=True), Way.FOLDED),
    "few keys, then W^O, dropped weights": (FEW._replace(output=True, sum_to_one=False, softmax=False), Way.FOLDED),
    "few keys of shared queries, then W^O": (FEW._replace(output=True, queries=1), Way.EXPLICIT),
    "few keys of an additive score, then W^O": (FEW._replace(output=True, linear=False, softmax=False), Way.EXPLICIT),
    "few keys of an additive score in tiles": (FEW._replace(additive=True, linear=False, softmax=False), Way.ADDITIVE),
    "few queries of an additive score in tiles": (
        FEW_QUERIES._replace(additive=True, linear=False, softmax=False),
        Way.ADDITIVE_ABSORBED,
    ),
    "few queries of an additive score, dropped weights": (
        FEW_QUERIES._replace(additive=True, linear=False, softmax=False, sum_to_one=False),
        Way.ADDITIVE,
    ),
    "many keys, then W^O": (CASE._replace(output=True), Way.FUSED),
    "few queries": (FEW_QUERIES._replace(tiles=True), Way.ABSORBED_IN_TILES),
    "few queries, no tiles": (FEW_QUERIES, Way.ABSORBED),
    "few queries of each set": (CASE._replace(n=1, tiles=True), Way.ABSORBED),
    "few queries, sparse weights": (FEW_QUERIES._replace(softmax=False), Way.ABSORBED),
    "few queries, dropped weights": (FEW_QUERIES._replace(softmax=False, sum_to_one=False), Way.EXPLICIT),
    "few queries, recorded": (FEW_QUERIES._replace(recorded=True), Way.ABSORBED),
    "coordinates, MOST_WEIGHTS weights": (COORDINATES, Way.ABSORBED),
    "coordinates, more weights than that": (MORE, Way.FUSED),
    "coordinates, more weights than that, recorded": (MORE._replace(recorded=True), Way.ABSORBED),
    "coordinates, more weights than that, sparse": (MORE._replace(softmax=False), Way.ABSORBED),
    "coordinates, more weights than that, rounded": (MORE._replace(rounded=True), Way.FUSED),
    "coordinates, FEW_ROUNDED_KEYS": (
        COORDINATES._replace(n=FEW_ROUNDED_KEYS, m=FEW_ROUNDED_KEYS, queries=8, sets=8, rounded=True),
        Way.ABSORBED,
    ),
    "FEW_KEYS keys": (CASE._replace(m=FEW_KEYS), Way.EXPLICIT),
    "FEW_KEYS keys on a GPU": (CASE._replace(m=FEW_KEYS, cpu=False), Way.FUSED),
    "FEW_ROUNDED_KEYS keys": (CASE._replace(m=FEW_ROUNDED_KEYS, rounded=True), Way.EXPLICIT),
    "FEW_ROUNDED_KEYS keys on a GPU": (CASE._replace(m=FEW_ROUNDED_KEYS, rounded=True, cpu=False), Way.FUSED),
    "more keys than that": (CASE._replace(m=FEW_ROUNDED_KEYS + 1, rounded=True), Way.FUSED),
    "many keys, recorded": (CASE._replace(recorded=True), Way.EXPLICIT),
    "many keys, sparse weights": (CASE._replace(softmax=False), Way.EXPLICIT),
    "many keys": (CASE, Way.FUSED),
    "a program for all sizes: a set reads itself": (CASE._replace(n=None, m=None, queries=None, sets=None), Way.FUSED),
    "a program for all sizes: few queries": (FEW_QUERIES._replace(m=None, sets=None), Way.ABSORBED),
    "a program for all sizes: few keys": (FEW._replace(n=None, queries=None, output=True), Way.EXPLICIT),
}


@pytest.mark.parametrize("title", PLANNED)
def test_the_plan_is_its_table(title):
    case, way = PLANNED[title]
    assert plan(case) is way


def test_the_table_has_every_way():
    assert {way for _, way in PLANNED.values()} == set(Way)


def test_the_case_describes_the_rows():
    """For shared queries and masked keys in three sets, with recording, packed sets and autocast."""
    attention = Multihead(5, 6, 8, AttentionOptions(heads=2, form="paper"))
    Q, Y, mask = torch.zeros(1, 4, 8), torch.zeros(3, 7, 6), torch.ones(3, 7, dtype=torch.bool)
    case = attention.case(Q, Y, mask, None)
    assert case == Case(heads=2, dim=8, dim_query=5, dim_key=6, n=4, m=7, queries=1, sets=3, tiles=True)
    assert attention.case(Q, Y, mask, None, projected=False).output
    packed = attention.case(Q, Y.flatten(0, 1), Packed((20, 1)), None)
    assert packed == case._replace(m=10, sets=21, packed_keys=True)
    assert attention.case(Q[0], Y, None, Packed((4,))).n is None
    with torch.autocast("cpu", torch.bfloat16):
        assert attention.case(Q, Y, mask, None) == case._replace(tiles=False, rounded=True)
        assert not attention.case(Q.double(), Y.double(), mask, None).rounded
    assert attention.case(Q.bfloat16(), Y.bfloat16(), mask, None).rounded
    attention.record = [].append
    assert attention.case(Q, Y, mask, None) == case._replace(tiles=False, recorded=True)


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


@pytest.mark.parametrize("way", WAYS)
def test_attention_to_an_empty_set_is_zero_with_finite_gradients(way, monkeypatch):
    monkeypatch.setattr("pointset.nn.attention.plan", lambda case: way)
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


def test_gradcheck():
    torch.manual_seed(0)
    attention = Multihead(2, 3, 4, AttentionOptions(heads=2, form="paper")).double()
    X = torch.randn(1, 2, 2, dtype=torch.float64, requires_grad=True)
    Y = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    for way in WAYS.values():
        torch.autograd.gradcheck(lambda X, Y, way=way: way(attention, attention.query(X), Y, mask), (X, Y))


@pytest.mark.parametrize("masked", [False, True])
def test_folding_both_projections_into_few_keys_changes_nothing(masked):
    block = Multihead(12, 20, 24, AttentionOptions(heads=3, form="paper")).double()
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(2, 50, 12, generator=generator, dtype=torch.double, requires_grad=True)
    Y = torch.randn(2, 2, 20, generator=generator, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True, False], [False, False]]) if masked else None
    inputs = (X, Y, *block.parameters())
    assert plan(block.case(X, Y, mask, None, projected=False)) is Way.FOLDED
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
