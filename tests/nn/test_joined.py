"""Poolings joined by `+`: their outputs are concatenated."""

import pytest
import torch
from torch import nn

import pointset
from pointset.nn import MaxPool, MeanPool, Packed, SumPool, registry
from pointset.nn.pooling.joined import JoinedPool

NAN = float("nan")
X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [NAN, NAN]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])


def test_max_and_mean_are_concatenated():
    pool, expected = JoinedPool([MaxPool(), MeanPool()]), torch.tensor([[3, -2, 2, -3], [9, 8, 7 / 3, 4 / 3]])[:, None]
    torch.testing.assert_close(pool(X, MASK), expected)
    torch.testing.assert_close(pool(X[1:]), expected[1:])
    torch.testing.assert_close(pool(torch.cat([X[0, :2], X[1]]), Packed((2, 3))), expected)
    assert (pool(X, torch.zeros_like(MASK)) == 0).all()


class Two(nn.Module):
    """The largest and the smallest row, [B, 2, d]."""

    def forward(self, X, mask=None):
        return torch.cat([X.amax(1, keepdim=True), X.amin(1, keepdim=True)], dim=1)


class Flat(nn.Module):
    """Only the first feature, [B, 1], without an axis of rows."""

    def forward(self, X, mask=None):
        return X.sum(dim=1)[:, :1]


def test_rows_are_laid_out_flat_in_the_order_of_the_name():
    pooled = JoinedPool([SumPool(), Two(), Flat()])(X[1:])
    assert pooled.tolist() == [[[7.0, 4.0, 9.0, 8.0, -7.0, -10.0, 7.0]]]


@pytest.mark.parametrize("encoder", ["rff", "isab3"])
def test_a_joined_model_pools_what_its_poolings_pool(encoder):
    """The first pooling has the same initial weights as alone, and all poolings get the same rows."""
    model = pointset.create_model(f"{encoder}-pma2+max", classes=4, dim=16).eval()
    alone = pointset.create_model(f"{encoder}-pma2", classes=4, dim=16).eval()
    points = torch.randn(3, 9, 3, generator=torch.Generator().manual_seed(0))
    rows = alone.encode(points)
    expected = torch.cat([alone.pool(rows).flatten(1), rows.amax(1)], dim=1)
    torch.testing.assert_close(model.pool(model.encode(points))[:, 0], expected)


@pytest.mark.parametrize(
    ("name", "head", "packed", "maps", "statistic"),
    [
        ("max+pma", "hidden", True, True, "max"),
        ("pma+pma3", "linear", True, True, "max"),
        ("mean+max", "hidden", True, False, "mean"),
        ("max+mean+sum", "hidden", True, False, "max"),
        ("padded+pma", "hidden", False, True, "max"),
    ],
)
def test_a_join_can_do_what_all_of_its_poolings_can(name, head, packed, maps, statistic, monkeypatch):
    monkeypatch.setattr(registry, "PARTS", registry.PARTS.copy())
    registry.register("pooling", "padded")(Two)
    part = registry.find("pooling", name).part
    assert (part.head, part.packed, part.maps, part.statistic) == (head, packed, maps, statistic)


@pytest.mark.parametrize("name", ["max+", "+max", "max++mean", "max+men", "+", "max+rff"])
def test_a_join_with_an_unknown_name_is_not_a_pooling(name):
    assert registry.find("pooling", name) is None
