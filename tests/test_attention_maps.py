"""Maps as data: which attentions there are, what their rows mean, and that looking changes nothing."""

import pytest
import torch

import pointset
from pointset.nn.attention import Multihead


def test_maps_come_in_order_with_their_kinds_and_shapes():
    model = pointset.create_model("isab5-pma3", classes=4, dim=16, heads=2)
    maps = pointset.attention_maps(model, torch.randn(11, 3))
    assert [(found.layer, found.kind, tuple(found.weights.shape)) for found in maps] == [
        ("encoder.0.reads", "reads", (1, 2, 5, 11)),
        ("encoder.0.writes", "writes", (1, 2, 11, 5)),
        ("encoder.1.reads", "reads", (1, 2, 5, 11)),
        ("encoder.1.writes", "writes", (1, 2, 11, 5)),
        ("pool.pma.mab", "pools", (1, 2, 3, 11)),
        ("pool.sab.mab", "self", (1, 2, 3, 3)),
    ]
    assert all(torch.allclose(found.weights.sum(-1), torch.ones(())) for found in maps)


def test_padding_is_never_looked_at():
    model = pointset.create_model("sab-pma", classes=4, dim=16)
    mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])
    for found in pointset.attention_maps(model, torch.randn(2, 6, 3), mask):
        assert (found.weights[1, :, :, 2:] == 0).all()
        assert (found.weights[1, :, :, :2] > 0).all()


@pytest.mark.parametrize("name", ["sab-max", "isab16-pma", "rff-pma4"])
def test_looking_changes_nothing(name):
    model = pointset.create_model(name, classes=4, dim=16).train()
    points = torch.randn(2, 9, 3)
    before = model.eval()(points)
    model.train()
    pointset.attention_maps(model, points)
    assert model.training
    assert all(module.record is None for module in model.modules() if isinstance(module, Multihead))
    torch.testing.assert_close(model.eval()(points), before, atol=0, rtol=0)


def test_logits_with_and_without_maps_agree():
    model = pointset.create_model("sab-pma", classes=4, dim=16).eval()
    points, plain = torch.randn(2, 40, 3), []
    attentions = [module for module in model.modules() if isinstance(module, Multihead)]
    plain = model(points)
    for attention in attentions:
        attention.record = []
    torch.testing.assert_close(model(points), plain, atol=1e-6, rtol=0)


def test_a_model_without_attention_is_refused():
    with pytest.raises(pointset.PointsetError, match="has no attention to look at"):
        pointset.attention_maps(pointset.create_model("rff-max", dim=16), torch.randn(4, 3))


def test_the_name_is_the_function_whatever_is_imported_first():
    import pointset.attention_maps as module_or_function  # noqa: F401

    assert callable(pointset.attention_maps)
