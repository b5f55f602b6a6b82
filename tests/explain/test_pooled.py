"""The influence of each point on the pooled vector, for every kind of pooling."""

import pytest
import torch

import pointset
from pointset.errors import PointsetError
from pointset.explain.critical_points import critical_points, pooled_from

CLOUD = torch.randn(12, 3, generator=torch.Generator().manual_seed(0))


def looked(name: str):
    return pooled_from(pointset.create_model(name, classes=3, dim=8, seed=0).eval(), CLOUD)


def test_pooled_attention_is_the_mean_over_heads_and_seeds_times_points():
    model = pointset.create_model("isab4-pma", classes=3, dim=8, seed=0).eval()
    pools = pointset.attention_maps(model, CLOUD)[-1]
    found = pooled_from(model, CLOUD)
    assert found.kind == "attention"
    torch.testing.assert_close(found.values, 12 * pools.weights.mean(dim=(0, 1)))
    assert found.values.mean() == pytest.approx(1.0, abs=1e-5)


def test_a_max_pool_counts_features_and_a_mean_gives_none():
    model = pointset.create_model("rff-max", classes=3, dim=8, seed=0).eval()
    found = pooled_from(model, CLOUD)
    assert (found.kind, found.values.tolist()) == ("features", critical_points(model, CLOUD).tolist())
    assert looked("rff-mean") is None
    assert looked("isab4-mean") is None, "reads of its encoder are not the pooling's"
    assert looked("rff-max+dumlp4").kind == "attention"


def test_points_that_do_not_fit_are_named():
    with pytest.raises(PointsetError, match=r"\[n, 3\]"):
        pooled_from(pointset.create_model("rff-mean", classes=3, dim=8), torch.zeros(4, 2))
