"""What models are called with: types, shapes, precisions."""

import numpy as np
import pytest
import torch

import pointset
from pointset.zoo.classifiers import Classifier, checked_points


@pytest.mark.parametrize(
    ("points", "mask", "words"),
    [
        (torch.zeros(3), None, r"points must be \[B, n, 3\] or, of one cloud, \[n, 3\], got float32 \[3\]"),
        (torch.zeros(2, 5, 4), None, r"points must be \[B, n, 3\], got float32 \[2, 5, 4\]"),
        (torch.zeros(2, 5, 3).tolist(), None, r"points must be \[B, n, 3\], got list: give a tensor or an array"),
        (torch.zeros(2, 5, 3, dtype=torch.complex64), None, r"got complex64 \[2, 5, 3\]: .* real numbers"),
        (np.array([["a", "b", "c"]]), None, r"got <U1 \[1, 3\]: .* real numbers"),
        (torch.full((1, 5, 3), 2**40 + 1), None, "int64 .* too large for float32"),
        (torch.zeros(5, 3), torch.ones(4, dtype=torch.bool), r"mask must be bool \[5\].* got bool \[4\]"),
        (torch.zeros(2, 5, 3), [True], r"mask must be bool \[2, 5\].* got list"),
        (torch.zeros(2, 5, 3), torch.ones(2, 5), r"mask must be bool \[2, 5\]"),
    ],
)
def test_wrong_shapes_are_shown(points, mask, words):
    with pytest.raises(ValueError, match=words):
        checked_points(Classifier(3), points, mask)


POINTS = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["rff-max", "isab4-pma", "pointnet"])
@pytest.mark.parametrize(
    ("given", "same"),
    [
        (POINTS.numpy(), POINTS),
        (POINTS.double(), POINTS),
        (POINTS.numpy().astype(">f8"), POINTS),
        (POINTS.numpy()[:, ::-1], POINTS.flip(1)),
        (POINTS[0], POINTS[:1]),
        (POINTS[0].numpy(), POINTS[:1]),
        ((4 * POINTS).to(torch.int16), (4 * POINTS).trunc()),
        ((4 * POINTS).to(torch.int64).numpy(), (4 * POINTS).trunc()),
        (POINTS.half(), POINTS.half().float()),
    ],
)
def test_what_can_be_converted_gives_the_logits_of_the_same_points(name, given, same):
    model = pointset.create_model(name, classes=3).eval()
    with torch.no_grad():
        assert torch.equal(model(given), model(same))
        rows = np.ones(len(given[0]), bool) if len(given) == 2 else None
        if rows is not None:
            assert torch.equal(model(given, np.stack([rows, rows])), model(same))


def test_a_model_in_double_precision_takes_single_points_and_an_empty_batch_has_no_logits():
    model = pointset.create_model("rff-max", classes=3).double().eval()
    assert model(POINTS).dtype == torch.float64
    assert model(POINTS[:0]).shape == (0, 3)
