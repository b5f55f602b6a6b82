"""Pooling, set norm and the DeepSets layers: values by hand, masks, empty sets."""

import pytest
import torch

from pointset.nn import EquivariantLayer, MaxPool, MeanPool, SetNorm, SumPool
from pointset.nn.norms import BatchNorm
from pointset.symmetry import check_symmetry

X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [99.0, 99.0]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        (MaxPool(), [[3.0, -2.0], [9.0, 8.0]]),
        (MeanPool(), [[2.0, -3.0], [7.0 / 3, 4.0 / 3]]),
        (SumPool(), [[4.0, -6.0], [7.0, 4.0]]),
    ],
)
def test_pools_by_hand(pool, expected):
    torch.testing.assert_close(pool(X, MASK), torch.tensor(expected).unsqueeze(1))
    torch.testing.assert_close(pool(X[1:], None), torch.tensor(expected[1:]).unsqueeze(1))


@pytest.mark.parametrize("pool", [MaxPool(), MeanPool(), SumPool()])
def test_an_empty_set_pools_to_zero_with_finite_gradients(pool):
    rows = X.clone().requires_grad_()
    pooled = pool(rows, torch.tensor([[False] * 3, [True] * 3]))
    pooled.sum().backward()
    assert (pooled[0] == 0).all()
    assert rows.grad.isfinite().all()
    assert (rows.grad[0] == 0).all()


@pytest.mark.parametrize("statistic", ["max", "mean"])
def test_equivariant_layer_by_hand(statistic):
    layer = EquivariantLayer(2, 2, statistic)
    with torch.no_grad():
        layer.gamma.weight.copy_(torch.eye(2))
        layer.gamma.bias.fill_(0.5)
    centre = {"max": [3.0, -2.0], "mean": [2.0, -3.0]}[statistic]
    expected = torch.tanh(X[0, :2] - torch.tensor(centre) + 0.5)
    torch.testing.assert_close(layer(X, MASK)[0, :2], expected)


@pytest.mark.parametrize("statistic", ["max", "mean"])
def test_equivariant_layers_are_equivariant(statistic):
    found = check_symmetry(EquivariantLayer(3, 8, statistic).double())
    assert found.kind == "equivariant"
    assert found.worst < 1e-12


def test_set_norm_normalises_each_set_over_rows_and_features():
    rows = torch.randn(2, 9, 5, generator=torch.Generator().manual_seed(0)) * 4 + 3
    mask = torch.ones(2, 9, dtype=torch.bool)
    mask[0, 6:] = False
    normed = SetNorm(5)(rows, mask)
    for index in range(2):
        real = normed[index][mask[index]]
        torch.testing.assert_close(real.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
        torch.testing.assert_close(real.var(unbiased=False), torch.tensor(1.0), atol=1e-4, rtol=0)
    assert normed[0][mask[0]].mean(dim=0).abs().max() > 0.05  # features are not centred one by one


def test_set_norm_keeps_differences_of_norm_that_layer_norm_erases():
    rows = torch.tensor([[[1.0, -1.0], [10.0, -10.0]]])
    normed = SetNorm(2)(rows)
    torch.testing.assert_close(normed[0, 1], normed[0, 0] * 10)


@pytest.mark.parametrize("mask", [None, torch.zeros(1, 1, dtype=torch.bool)])
def test_set_norm_of_one_row_or_none_is_finite(mask):
    assert SetNorm(4)(torch.ones(1, 1, 4), mask).isfinite().all()


def test_batch_norm_counts_real_rows_only():
    """Values of the five real rows, normalised by torch's own batch norm; what padding holds has no effect."""
    norm, plain = BatchNorm(2), torch.nn.BatchNorm1d(2)
    spoiled = X.masked_fill(~MASK.unsqueeze(-1), float("nan"))
    found = norm(spoiled, MASK)
    torch.testing.assert_close(found[MASK], plain(X[MASK]))
    assert (found[~MASK] == 0).all()
    torch.testing.assert_close(norm.running_mean, plain.running_mean)
    torch.testing.assert_close(norm(X, None), plain(X.flatten(0, 1)).view_as(X))
    torch.testing.assert_close(norm.eval()(X[:1], MASK[:1])[0, :2], plain.eval()(X[0, :2]))


def test_batch_norm_leaves_a_single_row_alone():
    row = torch.tensor([[[3.0, -1.0]]])
    assert torch.equal(BatchNorm(2)(row), row)
