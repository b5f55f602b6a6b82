"""Poolings without sorting against the papers' formulas, in plain loops over the rows of one set."""

import math

import pytest
import torch
from torch import Tensor, nn

from pointset.nn.pooling.asp import AttentiveStatisticsPool
from pointset.nn.pooling.cov import CovariancePool
from pointset.nn.pooling.gem import GeneralisedMeanPool
from pointset.nn.pooling.repset import ApproxRepSetPool
from pointset.nn.pooling.top import TopPool

DIM = 4


def sets(*sizes: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(n, DIM, generator=generator, dtype=torch.float64) for n in sizes or (1, 2, 7, 40)]


def moved(pool: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in pool.double().parameters():
            parameter += 0.3 * torch.rand(parameter.shape, generator=torch.Generator().manual_seed(1)).double()
    return pool


def pooled(pool: nn.Module, X: Tensor) -> list[float]:
    (found,) = pool(X[None])
    assert found.shape[0] == 1
    return found[0].tolist()


@pytest.mark.parametrize("k", [1, 3, 7, 50])
def test_top_is_the_mean_of_the_largest(k):
    for X in sets():
        largest = [sorted(feature, reverse=True)[:k] for feature in X.T.tolist()]
        assert pooled(TopPool(k), X) == pytest.approx([sum(one) / len(one) for one in largest])


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0, 20.0])
def test_gem_is_the_generalised_mean(exponent):
    pool = GeneralisedMeanPool(exponent).double()
    for X in sets():
        positive = X.clamp(min=1e-6).T.tolist()
        expected = [(sum(x**exponent for x in one) / len(one)) ** (1 / exponent) for one in positive]
        assert pooled(pool, X) == pytest.approx(expected)


def test_gem_trains_its_exponent_and_no_power_overflows():
    pool, X = GeneralisedMeanPool(), torch.tensor([[[0.0, 1e30, 3e38], [-1.0, 2e30, 3e38]]], requires_grad=True)
    assert float(pool.exponent.detach()) == pytest.approx(3.0)
    for log_exponent in (math.log(3), -50.0, 50.0):
        with torch.no_grad():
            pool.log_exponent.fill_(log_exponent)
        found = pool(X)
        found.log().sum().backward()
        assert found.isfinite().all()
        assert X.grad.isfinite().all()
        assert pool.log_exponent.grad.isfinite()
    torch.testing.assert_close(found[0, 0, 1:], torch.tensor([2e30, 3e38]), rtol=2e-3, atol=0)
    assert pool.log_exponent.grad != 0


def test_asp_is_the_weighted_mean_and_deviation():
    pool = moved(AttentiveStatisticsPool(DIM))
    W, b, v = (one.tolist() for one in (pool.hidden.weight, pool.hidden.bias, pool.score.weight[0]))
    for X in sets():
        rows = X.tolist()
        scores = [
            sum(one * max(0.0, math.fsum(map(float.__mul__, w, x)) + c) for one, w, c in zip(v, W, b, strict=True))
            for x in rows
        ]
        powers = [math.exp(score - max(scores)) for score in scores]
        weights = [power / sum(powers) for power in powers]
        means = [sum(a * x[f] for a, x in zip(weights, rows, strict=True)) for f in range(DIM)]
        squares = [sum(a * x[f] ** 2 for a, x in zip(weights, rows, strict=True)) for f in range(DIM)]
        deviations = [math.sqrt(s - m * m + 1e-6) for s, m in zip(squares, means, strict=True)]
        assert pooled(pool, X) == pytest.approx(means + deviations)


def test_cov_is_the_square_root_of_the_covariance():
    pool = moved(CovariancePool(3, DIM, steps=40))  # so many that the root is exact
    for X in sets(12, 40):
        R = (X @ pool.reduce.weight.T + pool.reduce.bias).clamp(min=0).detach()
        values, vectors = torch.linalg.eigh(torch.cov(R.T, correction=0))
        root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
        expected = [float(root[i, j]) for i in range(3) for j in range(i, 3)]
        assert pooled(pool, X) == pytest.approx(expected, abs=1e-9)


def test_repset_sums_the_best_matches():
    pool = moved(ApproxRepSetPool(3, DIM))
    for X in sets():
        expected = [
            sum(max(max(0.0, float(x @ pool.elements.detach()[j, f])) for j in range(3)) for x in X) for f in range(DIM)
        ]
        assert pooled(pool, X) == pytest.approx(expected)
    assert float(ApproxRepSetPool(5, 64).elements.detach().abs().max()) <= 1.0
