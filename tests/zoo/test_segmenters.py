"""Networks that label every point: equivariant, exact with padding; empty sets; bad names."""

import pytest
import torch

import pointset
from pointset.errors import PointsetError

B, N, D, CLASSES, DIM = 3, 11, 4, 5, 16
NAMES = [name for name in pointset.list_models() if "-" in name]


def segmenter(name: str, **options) -> torch.nn.Module:
    return pointset.create_segmenter(name, CLASSES, dim=DIM, heads=2, inputs=D, **options).eval()


def sets(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Points [B, N, D] whose padding is not zero, and sizes 11, 4 and 0."""
    points = torch.randn(B, N, D, generator=torch.Generator().manual_seed(seed))
    return points, torch.arange(N) < torch.tensor([N, 4, 0])[:, None]


@pytest.mark.parametrize("name", NAMES)
def test_labels_move_with_their_points_and_padding_changes_nothing(name):
    model, (points, mask) = segmenter(name), sets()
    order = torch.randperm(N, generator=torch.Generator().manual_seed(1))
    whole = model(points)
    assert whole.shape == (B, N, CLASSES)
    torch.testing.assert_close(model(points[:, order]), whole[:, order], atol=1e-4, rtol=1e-4)
    padded = model(points, mask)
    torch.testing.assert_close(padded[0], whole[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(padded[1, :4], model(points[1:2, :4])[0], atol=1e-4, rtol=1e-4)
    assert not padded[~mask].any()
    assert model(points[:2, :0]).shape == (2, 0, CLASSES)


def test_predictions_are_those_of_the_real_points_of_each_cloud():
    model, (points, mask) = segmenter("isab16-pma"), sets()
    clouds = [points[0].numpy(), points[1, :4].numpy()]
    labels, probabilities = model.predict(clouds), model.predict_proba(points[:2], mask[:2])
    assert [len(row) for row in labels] == [N, 4]
    for row, chances in zip(labels, probabilities, strict=True):
        assert row.tolist() == chances.argmax(dim=1).tolist()
        torch.testing.assert_close(chances.sum(dim=1), torch.ones(len(row)))


def test_the_description_of_a_segmenter_builds_it_again():
    from pointset.zoo.models import build_model, spec_of

    model = segmenter("isab16-pma", seed=3)
    again = build_model(spec_of(model.spec.as_dict())).eval()
    points, _ = sets()
    assert torch.equal(again(points), model(points))
    assert "per_point" not in pointset.create_model("rff-max", CLASSES).spec.as_dict()


@pytest.mark.parametrize(("name", "words"), [("pointnet", "pointnet has no rows"), ("isab-pmo", "isab16-pma")])
def test_models_without_rows_cannot_label_points(name, words):
    with pytest.raises(PointsetError, match=words):
        pointset.create_segmenter(name, CLASSES)
