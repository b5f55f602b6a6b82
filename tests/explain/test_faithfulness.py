import numpy as np
import pytest
import torch
from torch import nn

import pointset
from pointset.explain.faithfulness import EXPLANATIONS, check_explanations


class FarPoints(nn.Module):
    """Class 1 if the set has far points: its logit is the sum over points of max(0, radius - 1)."""

    inputs = 3

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, points, mask=None):
        far = (points.norm(dim=2) - 1).clamp(min=0)
        far = far if mask is None else far * mask
        return torch.stack([far.new_zeros(len(far)), self.scale * far.sum(dim=1) - 1], dim=1)


@pytest.fixture
def cloud():
    """Forty points inside the unit ball and four far outside."""
    points = torch.randn(44, 3, generator=torch.Generator().manual_seed(0))
    points = 0.5 * points / points.norm(dim=1, keepdim=True)
    points[7], points[8], points[20], points[40] = torch.eye(3).repeat(2, 1)[:4].mul(4)
    return points


@pytest.mark.parametrize("name", ["gradient x input", "integrated gradients"])
def test_gradients_put_the_points_first_that_the_model_needs(cloud, name):
    model = FarPoints()
    importance = EXPLANATIONS[name](model, cloud, 1)
    assert set(importance.topk(4).indices.tolist()) == {7, 8, 20, 40}
    if name == "integrated gradients":  # they sum to the difference from the origin
        whole, origin = model(torch.stack([cloud, torch.zeros_like(cloud)])).detach()[:, 1].tolist()
        assert float(importance.sum()) == pytest.approx(whole - origin, rel=0.05)


def test_a_faithful_explanation_beats_the_random_order(cloud):
    curves = check_explanations(FarPoints(), [cloud] * 3, ["gradient x input"])
    explained, random = curves["gradient x input"].areas, curves["random"].areas
    assert explained["deletion"].mean() < random["deletion"].mean() - 0.1
    assert explained["insertion"].mean() > random["insertion"].mean() + 0.05
    whole = FarPoints()(cloud[None]).softmax(dim=1)[0, 1].item()
    for by in curves.values():  # both curves begin with the whole set
        assert by.deletion[0, 0] == by.insertion[0, 0] == pytest.approx(whole)


@pytest.mark.parametrize(
    ("name", "missing"), [("isab4-pma", {"critical points"}), ("rff-max", {"attention", "rollout"})]
)
def test_every_explanation_that_a_model_has_is_checked(name, missing):
    model = pointset.create_model(name, classes=3, dim=16).eval()
    curves = check_explanations(model, [torch.randn(20, 3)])
    assert set(curves) == {*EXPLANATIONS, "random"} - missing
    assert all(np.isfinite(by.deletion).all() for by in curves.values())


def test_the_same_seed_gives_the_same_random_order(cloud):
    first, same, other = (check_explanations(FarPoints(), [cloud], ["occlusion"], seed) for seed in (0, 0, 1))
    assert np.array_equal(first["random"].deletion, same["random"].deletion)
    assert not np.array_equal(first["random"].deletion, other["random"].deletion)
