"""Scores against their formulas, one pair of a query and a key at a time."""

import math

import pytest
import torch
from torch import Tensor
from toy import normal

from pointset.configuration import AttentionOptions
from pointset.nn import scores
from pointset.nn.scores import SCORES, BilinearScore, DotScore

B, HEADS, N, M, WIDTH = 2, 3, 5, 7, 4


def made(name, **options):
    given = {"scale": 0.3, "temperature": 0.5, **options}
    score = SCORES[name](HEADS * WIDTH, AttentionOptions(heads=HEADS, score=name, **given)).double()
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.normal_()
    return score


def pair_by_pair(score, Q: Tensor, K: Tensor) -> Tensor:
    """The formulas of the module's text, for one query and one key of one head each."""
    temperature = 0.5 if score.log_temperature is None else None
    logits = torch.empty(B, HEADS, N, M, dtype=torch.float64)
    for b in range(B):
        for j in range(HEADS):
            heat = temperature or 0.5 * math.exp(score.log_temperature[j].item())
            for i in range(N):
                for k in range(M):
                    query, key = Q[b, j, i], K[b, j, k]
                    logits[b, j, i, k] = one_pair(score, j, query, key) / heat
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
    score = made(name, score_layers=layers, trained_temperature=trained)
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    torch.testing.assert_close(score(Q, K), pair_by_pair(score, Q, K))


@pytest.mark.parametrize("name", ["dot", "bilinear"])
def test_a_linear_score_may_transform_queries_or_keys(name):
    score = made(name, trained_temperature=True)
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    torch.testing.assert_close(Q @ score.keys(K).mT, score(Q, K))
    torch.testing.assert_close(score.queries(Q) @ K.mT, score(Q, K))


def test_the_bilinear_score_is_initially_the_dot_product():
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    options = [AttentionOptions(heads=HEADS, score=name) for name in ("bilinear", "dot")]
    bilinear, dot = (SCORES[one.score](HEADS * WIDTH, one).double() for one in options)
    torch.testing.assert_close(bilinear(Q, K), dot(Q, K), rtol=0, atol=0)


@pytest.mark.parametrize("layers", [1, 2])
def test_additive_logits_in_pieces_equal_those_computed_at_once(layers, monkeypatch):
    score = made("additive", score_layers=layers)
    inputs = [normal(1, HEADS, N, WIDTH).requires_grad_(), normal(B, HEADS, M, WIDTH, seed=2).requires_grad_()]
    asked = [*inputs, *score.parameters()]
    whole = score(*inputs)
    expected = torch.autograd.grad(whole.square().sum(), asked)
    monkeypatch.setattr(scores, "MOST_HIDDEN", 2 * B * HEADS * M * WIDTH)  # two queries at a time
    pieces = score(*inputs)
    found = torch.autograd.grad(pieces.square().sum(), asked)
    torch.testing.assert_close(pieces, whole)
    torch.testing.assert_close(found, expected)


def test_a_trained_temperature_stays_positive_and_starts_at_the_given_value():
    options = AttentionOptions(heads=HEADS, scale=1.0, temperature=4.0, trained_temperature=True)
    score = DotScore(12, options).double()
    Q, K = normal(B, HEADS, N, WIDTH), normal(B, HEADS, M, WIDTH, seed=2)
    torch.testing.assert_close(score(Q, K), Q @ K.mT / 4)
    with torch.no_grad():
        score.log_temperature.fill_(-30.0)
    assert (score(Q, K) * (Q @ K.mT) > 0).all()
