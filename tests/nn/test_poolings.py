"""Poolings of one set against the papers' formulas, or by hand; masks, gradients, mixed precision; joined poolings."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toy import moved, normal

import pointset
from pointset.nn import (
    AttentiveStatisticsPool,
    CovariancePool,
    FPSWEPool,
    FSPool,
    GeMPool,
    PSWEPool,
    RepSetPool,
    TopKPool,
    registry,
)
from pointset.nn.modules import OneRowPool
from pointset.nn.norms import NORMS
from pointset.nn.pooling.aggregation import AGGREGATIONS
from pointset.nn.scores import SCORES
from pointset.nn.simplex import WEIGHTS

DIM = 4
NAN = float("nan")
X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [NAN, NAN]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])
WHOLE = [part.listed for part in registry.entries("pooling") if OneRowPool in getattr(part.module, "__mro__", ())]
EVERY = sorted({*WHOLE, *(f"aggr.{name}" for name in AGGREGATIONS)})


def sets(*sizes: int) -> list[Tensor]:
    return [normal(n, DIM, seed=n) for n in sizes or (1, 2, 7, 40)]


def assert_pools(pool: nn.Module, X: Tensor, *expected: Tensor) -> None:
    torch.testing.assert_close(pool(X[None])[0, 0], torch.cat(expected).detach())


@pytest.mark.parametrize("k", [1, 3, 7, 50])
def test_top_is_the_mean_of_the_largest(k):
    for X in sets():
        assert_pools(TopKPool(k), X, X.sort(dim=0, descending=True).values[:k].mean(dim=0))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 3.0, 20.0])
def test_gem_is_the_generalised_mean(exponent):
    pool = GeMPool(exponent).double()
    for X in sets():
        assert_pools(pool, X, (X.clamp(min=1e-6) ** exponent).mean(dim=0) ** (1 / exponent))


def test_gem_trains_its_exponent_and_no_power_overflows():
    pool, X = GeMPool(), torch.tensor([[[0.0, 1e30, 3e38], [-1.0, 2e30, 3e38]]], requires_grad=True)
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
    for X in sets():
        scores = (X @ pool.hidden.weight.T + pool.hidden.bias).relu() @ pool.score.weight[0]
        weights = scores.exp() / scores.exp().sum()
        mean = weights @ X
        assert_pools(pool, X, mean, (weights @ X.square() - mean.square() + 1e-6).sqrt())


def test_cov_is_the_square_root_of_the_covariance():
    pool = moved(CovariancePool(3, DIM, steps=40))  # so many that the root is exact
    for X in sets(12, 40):
        R = (X @ pool.reduce.weight.T + pool.reduce.bias).clamp(min=0).detach()
        values, vectors = torch.linalg.eigh(torch.cov(R.T, correction=0))
        root = (vectors * values.clamp(min=0).sqrt()) @ vectors.T
        torch.testing.assert_close(pool(X[None])[0, 0], root[*torch.triu_indices(3, 3)], atol=1e-9, rtol=1e-6)


def test_repset_sums_the_best_matches():
    pool = moved(RepSetPool(3, DIM))
    for X in sets():
        assert_pools(pool, X, torch.einsum("nd,jfd->njf", X, pool.elements).relu().amax(dim=1).sum(dim=0))
    assert float(RepSetPool(5, 64).elements.detach().abs().max()) <= 1.0


@pytest.mark.parametrize("pieces", [1, 4, 20])
def test_fspool_is_the_papers_sum(pieces):
    pool = FSPool(DIM, pieces).double()
    for X in sets(1, 2, 7, 20, 21, 64):
        places, falling = np.linspace(0, 1, len(X)), X.sort(dim=0, descending=True).values.T.numpy()
        weights = [np.interp(places, np.linspace(0, 1, pieces + 1), values) for values in pool.values.tolist()]
        assert_pools(pool, X, torch.from_numpy((weights * falling).sum(axis=1)))


def quantile(values: list[float], p: float) -> float:
    """Quantile of sorted values, with the i-th (from 1) at i / (n + 1); linear through the nearest two."""
    if len(values) == 1:
        return values[0]
    at = p * (len(values) + 1) - 1
    low = min(max(math.floor(at), 0), len(values) - 2)
    return values[low] + (at - low) * (values[low + 1] - values[low])


@pytest.mark.parametrize("m", [1, 5, 7, 30])
@pytest.mark.parametrize("make", [PSWEPool, FPSWEPool])
def test_pswe_moves_each_point_of_the_reference_to_its_quantile(m, make):
    pool = make(m, DIM).double()
    if make is PSWEPool:
        with torch.no_grad():
            pool.reference.normal_()  # in any order
            pool.slices += torch.rand(DIM, DIM)
    for X in sets(1, 2, 7, 20, 21, 64):
        expected = []
        for f in range(DIM):
            theta = pool.slices[f] / pool.slices[f].norm() if make is PSWEPool else torch.eye(DIM).double()[f]
            values, reference = sorted((X @ theta).tolist()), pool.reference[f].tolist()
            moved = [quantile(values, (sorted(reference).index(r) + 1) / (m + 1)) for r in reference]
            expected.append(sum(w * (r - q) for w, r, q in zip(pool.scales[f].tolist(), reference, moved, strict=True)))
        assert_pools(pool, X, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max", [[3, -2], [9, 8]]),
        ("aggr.min", [[1, -4], [-7, -10]]),
        ("mean", [[2, -3], [7 / 3, 4 / 3]]),
        ("sum", [[4, -6], [7, 4]]),
        ("max+mean", [[3, -2, 2, -3], [9, 8, 7 / 3, 4 / 3]]),
        ("aggr.mul", [[3, 8], [-315, -480]]),
        ("aggr.var", [[1, 1], [416 / 9, 584 / 9]]),
        ("aggr.std", [[1, 1], [math.sqrt(416) / 3, math.sqrt(584) / 3]]),
        ("aggr.variancepreserving", [[4 / math.sqrt(2), -6 / math.sqrt(2)], [7 / math.sqrt(3), 4 / math.sqrt(3)]]),
        ("aggr.median", [[1, -4], [5, 6]]),
        ("aggr.quantile", [[1.5, -3.5, 2, -3, 2.5, -2.5], [-1, -2, 5, 6, 7, 7]]),
        ("aggr.sort", [[1, -2, 3, -4] + [0] * 28, [-7, 8, 5, 6, 9, -10] + [0] * 26]),
        # Negative numbers are clamped to 1e-4 and large ones to 100: the powers, too.
        ("aggr.powermean", [[2, 1e-4], [(14 + 1e-4) / 3, (14 + 1e-4) / 3]]),
    ],
)
def test_values_by_hand(name, expected):
    pool = part_of("pooling", name, dim=2)
    found = pool(X, MASK)
    torch.testing.assert_close(found.reshape(2, -1), torch.tensor(expected).float())
    torch.testing.assert_close(pool(X[1:]), found[1:])
    assert (pool(X, torch.zeros_like(MASK)) == 0).all()


def part_of(kind: str, listed: str, dim: int = 8) -> nn.Module:
    model = pointset.create_model(f"{listed}-max" if kind == "encoder" else f"rff-{listed}", dim=dim, heads=2)
    return model.encoder if kind == "encoder" else model.pool


@pytest.mark.parametrize("listed", EVERY)
@pytest.mark.parametrize("training", [True, False])
def test_an_empty_set_pools_to_zero_and_no_gradient_is_lost_or_broken(listed, training):
    """NaN in the padding, which is nowhere, scattered, everywhere, around one row, or before the last rows."""
    rows = ["1111111", "0101100", "0000000", "0010000", "0000111"]
    mask = torch.tensor([[digit == "1" for digit in row] for row in rows])
    Z = normal(5, 7, 8, seed=1).masked_fill(~mask.unsqueeze(-1), NAN).requires_grad_()
    pool = moved(part_of("pooling", listed)).train(training)
    pooled = pool(Z, mask)
    pooled.square().sum().backward()
    assert (pooled[2] == 0).all()
    assert pooled.isfinite().all()
    assert Z.grad.isfinite().all()
    assert Z.grad[mask].any()
    assert (Z.grad[~mask] == 0).all()
    assert [key for key, value in pool.named_parameters() if value.grad is None or not value.grad.any()] == []


@pytest.mark.parametrize(("kind", "listed"), [*(("pooling", one) for one in [*WHOLE, "dumlp3"]), ("encoder", "dumlp3")])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_exact(kind, listed, masked):
    part = moved(part_of(kind, listed))
    mask = torch.arange(5) < torch.tensor([[5], [1], [3]]) if masked else None
    names, parameters = zip(*part.named_parameters(), strict=True) if [*part.parameters()] else ((), ())

    def call(X: Tensor, *values: Tensor) -> Tensor:
        return torch.func.functional_call(part, dict(zip(names, values, strict=True)), (X, mask))

    rows = normal(3, 5, 3 if kind == "encoder" else 8).requires_grad_()
    assert torch.autograd.gradcheck(call, (rows, *parameters), fast_mode=True)


@pytest.mark.parametrize("listed", EVERY)
def test_mixed_precision_pools_in_float32(listed):
    """1,000 rows: a count in bfloat16 would stop at 256."""
    pool, rows = moved(part_of("pooling", listed)).float(), normal(2, 1000, 8, dtype=torch.bfloat16).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pool(rows)
    mixed.sum().backward()
    assert mixed.dtype == torch.float32
    assert rows.grad.isfinite().all()
    torch.testing.assert_close(mixed, pool(rows.float()))


@pytest.mark.parametrize("encoder", ["rff", "isab3"])
def test_a_joined_model_pools_what_its_poolings_pool(encoder):
    """The first pooling has the same initial weights as alone, and all poolings get the same rows."""
    model = pointset.create_model(f"{encoder}-pma2+max", classes=4, dim=16).eval()
    alone = pointset.create_model(f"{encoder}-pma2", classes=4, dim=16).eval()
    points = torch.randn(3, 9, 3, generator=torch.Generator().manual_seed(0))
    rows = alone.encode(points)
    expected = torch.cat([alone.pool(rows).flatten(1), rows.amax(1)], dim=1)
    torch.testing.assert_close(model.pool(model.encode(points))[:, 0], expected)


def test_a_join_can_do_what_all_of_its_poolings_can():
    joins = [registry.find_builder("pooling", name) for name in ("max+pma", "pma+pma3", "mean+max")]
    found = [(part.head, part.has_maps, part.statistic) for part in joins]
    assert found == [("hidden", True, "max"), ("linear", True, "max"), ("hidden", False, "mean")]
    assert not any(
        registry.find_builder("pooling", name) for name in ("max+", "+max", "max++mean", "max+men", "max+rff")
    )


def test_everything_registered_is_exported_under_its_name():
    registered = [entry.module for kind in ("encoder", "pooling", "model") for entry in registry.entries(kind)]
    classes = [cls for cls in registered if cls.__module__.startswith("pointset.")]
    assert len(classes) > 20
    for exported in [*classes, *NORMS.values(), *SCORES.values(), *WEIGHTS.values()]:
        assert getattr(pointset.nn, exported.__name__) is exported
        assert exported.__name__ in pointset.nn.__all__
        assert ">>> " in exported.__doc__
