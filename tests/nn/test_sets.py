"""Pooling, set norm and the DeepSets layers: values by hand, masks, empty sets."""

import pytest
import torch

from pointset.evaluation.symmetry import check_symmetry
from pointset.nn import EquivariantLayer
from pointset.nn.norms import BatchNorm, GroupNorm, InstanceNorm, SetNorm

X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [99.0, 99.0]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])


@pytest.mark.parametrize("statistic", ["max", "mean"])
def test_equivariant_layer_by_hand(statistic):
    layer = EquivariantLayer(2, 2, statistic)
    with torch.no_grad():
        layer.gamma.weight.copy_(torch.eye(2))
        layer.gamma.bias.fill_(0.5)
    centre = {"max": [3.0, -2.0], "mean": [2.0, -3.0]}[statistic]
    expected = torch.tanh(X[0, :2] - torch.tensor(centre) + 0.5)
    torch.testing.assert_close(layer(X, MASK)[0, :2], expected)


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


@pytest.mark.parametrize("norm", ["none", "layer", "set", "group", "instance", "batch"])
def test_equivariant_layers_take_every_norm(norm):
    layer = EquivariantLayer(2, 8, "max", norm).double()
    assert check_symmetry(layer, dim=2).worst < 1e-12
    expected = torch.tanh(layer.norm(layer.gamma(X.double() - X.double().amax(dim=1, keepdim=True)), None))
    torch.testing.assert_close(layer(X.double()), expected)


def test_batch_norm_counts_real_rows_only():
    """The five real rows equal those normalised by torch's batch norm; values in padding have no effect."""
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
    padded = torch.tensor([[[3.0, -1.0], [7.0, 7.0]]])
    assert torch.equal(BatchNorm(2)(padded, torch.tensor([[True, False]])), torch.tensor([[[3.0, -1.0], [0.0, 0.0]]]))
