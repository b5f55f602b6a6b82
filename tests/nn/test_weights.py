"""Attention weights of a block: functions by head, bounds relative to the set size, coverage, dropout."""

import pytest
import torch
from torch import Tensor
from toy import OWN_WEIGHTS, normal

from pointset.configuration import AttentionOptions
from pointset.nn import Multihead, Weights
from pointset.nn.attention import explicit
from pointset.nn.fast.absorbed import Projection
from pointset.nn.simplex import BOUNDED, WEIGHTS, constrained_sparsemax

B, HEADS, N, M = 2, 4, 3, 7
NAMES = tuple(WEIGHTS)


def logits_of(*shape: int) -> Tensor:
    return 3 * normal(*shape)


def made(name: str | tuple[str, ...], heads: int = HEADS, **options) -> Weights:
    return Weights(AttentionOptions(weights=name, heads=heads, **options))


@pytest.fixture
def mask() -> Tensor:
    return torch.tensor([[True] * 4 + [False] * 3, [True, False] * 3 + [True]])


@pytest.mark.parametrize(
    ("name", "coverage"),
    [(name, "none") for name in NAMES] + [(name, axis) for name in sorted(BOUNDED) for axis in ("seeds", "heads")],
)
def test_weights_of_each_row_sum_to_one_over_the_real_keys(name, coverage, mask):
    found = made(name, bound=1.5, coverage=coverage)(logits_of(B, HEADS, N, M), mask)
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(B, HEADS, N, dtype=torch.float64))
    assert (found >= 0).all()
    assert not found[~mask[:, None, None, :].expand_as(found)].any()


def test_every_head_has_its_own_function():
    names = ("softmax", "sparsemax", "entmax15", "csparsemax")
    logits = logits_of(B, HEADS, N, M)
    found = made(names, bound=2.0)(logits)
    for head, name in enumerate(names):
        alone = made(name, 1, bound=2.0)(logits[:, head : head + 1])
        torch.testing.assert_close(found[:, head : head + 1], alone)
    assert (found[:, 0] > 0).all()
    assert (found[:, 1] == 0).any()


@pytest.mark.parametrize("name", ["csoftmax", "csparsemax"])
def test_the_bound_is_a_multiple_of_uniform_attention(name, mask):
    found = made(name, bound=1.25)(logits_of(B, HEADS, N, M), mask)
    sizes = mask.sum(dim=1).double()[:, None, None, None]
    assert (found * sizes).max() == pytest.approx(1.25)


@pytest.mark.parametrize("name", ["csoftmax", "csparsemax"])
@pytest.mark.parametrize(("coverage", "axis", "sharers"), [("seeds", 2, N), ("heads", 1, HEADS)])
def test_the_weights_of_a_key_sum_to_at_most_its_fertility(name, coverage, axis, sharers, mask):
    logits = logits_of(B, HEADS, N, M)
    alone, covered = (made(name, bound=1.5, coverage=one)(logits, mask).sum(dim=axis) for one in ("none", coverage))
    sizes = mask.sum(dim=1).double()[:, None, None]
    fertility = 1.5 * sharers / sizes
    assert (covered <= fertility + 1e-12).all()
    assert not torch.allclose(covered, alone)


def test_coverage_is_what_the_docstring_says():
    """u_1 = bound T / m, u_(t+1) = u_t minus the weights of row t, each a constrained sparsemax."""
    logits = logits_of(1, 1, 3, M)
    left = torch.full((M,), 1.2 * 3 / M, dtype=torch.float64)
    found = made("csparsemax", 1, bound=1.2, coverage="seeds")(logits)[0, 0]
    for row, weights in zip(logits[0, 0], found, strict=True):
        expected = constrained_sparsemax(row, left)
        torch.testing.assert_close(weights, expected)
        left = (left - expected).clamp(min=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize("coverage", ["seeds", "heads"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("keys", [230, 279, 335])
def test_half_precision_leaves_the_last_seed_a_complete_row(name, coverage, dtype, keys):
    """With bound 1, the bounds left for the last row sum to 1 only if nothing is rounded, not even the key count."""
    shape = (1, 1, 4, keys) if coverage == "seeds" else (1, 4, 1, keys)
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(keys)).to(dtype)
    mask = torch.arange(keys + 30)[None] < keys
    padded = torch.nn.functional.pad(logits, (0, 30))
    weights = made(name, shape[1], bound=1.0, coverage=coverage)
    found = weights(logits)
    assert found.dtype == dtype
    assert torch.equal(found, weights(logits.float()).to(dtype))
    torch.testing.assert_close(weights(padded, mask)[..., :keys], found)


def test_dropped_weights_are_zero_and_the_others_larger():
    weights = made("softmax", attention_dropout=0.25)
    logits = logits_of(B, HEADS, 100, M)
    found, kept = weights.train()(logits), weights.eval()(logits)
    dropped = found == 0
    assert dropped.double().mean() == pytest.approx(0.25, abs=0.03)
    torch.testing.assert_close(found[~dropped], kept[~dropped] / 0.75)


@pytest.mark.parametrize("weights", [*NAMES, ("softmax", "sparsemax", "entmax15", "csoftmax"), *OWN_WEIGHTS])
@pytest.mark.parametrize("score", ["dot", "bilinear", "additive"])
@pytest.mark.parametrize("output", [False, True])
@pytest.mark.parametrize(("n", "m", "sets"), [(2, 90, 1), (2, 50, B), (50, 2, B), (80, 100, B)])
def test_every_order_of_products_gives_the_same_attention(weights, score, output, n, m, sets):
    """The cheapest way against projected keys with explicit weights, in equal values and gradients: for few shared
    queries, few queries, few keys, and many of both.
    """
    form = "paper" if output else "reference"
    options = AttentionOptions(heads=HEADS, form=form, score=score, weights=weights, trained_temperature=True)
    attention = Multihead(5, 6, 8, options).double()
    X, Y = normal(sets, n, 5), normal(B, m, 6, seed=1)
    mask = torch.arange(m).expand(B, m) < torch.tensor([[m], [m - 1]])

    def gradients(result: Tensor) -> list[Tensor | None]:
        return torch.autograd.grad(result.square().sum(), list(attention.parameters()), allow_unused=True)

    found = attention(X, Y, mask)
    K, V = Projection(Y, attention.key), Projection(Y, attention.value)
    expected = attention.output(explicit(attention.query(X), K, V, mask, attention.score, attention.weights))
    torch.testing.assert_close(found, expected)
    for (name, parameter), *both in zip(
        attention.named_parameters(), gradients(found), gradients(expected), strict=True
    ):
        one, other = (torch.zeros_like(parameter) if gradient is None else gradient for gradient in both)
        torch.testing.assert_close(one, other, msg=lambda text, name=name: f"{name}: {text}")
