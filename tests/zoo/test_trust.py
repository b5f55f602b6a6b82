"""The temperature by the distance from the training shapes: by hand, in predictions, and on disk."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis
from torch import nn

import pointset
from pointset.errors import PointsetError
from pointset.zoo.pretrained import TrustFigures
from pointset.zoo.trust import TRUST_FILE, Trust, load_trust


def make_trust(width: int = 3, median: float = 2.0, exponent: float = 0.5) -> Trust:
    generator = torch.Generator().manual_seed(0)
    half = torch.randn(width, width, generator=generator)
    return Trust(torch.randn(2, width, generator=generator), half @ half.T + torch.eye(width), median, exponent)


def test_the_distance_is_to_the_nearest_mean_under_one_covariance():
    trust, rows = make_trust(), torch.randn(5, 3)
    expected = [min(mahalanobis(x, mean, trust.precision) ** 2 for mean in trust.means) for x in rows]
    np.testing.assert_allclose(trust.distances(rows), expected, rtol=1e-5)
    assert trust.distances(trust.means).tolist() == pytest.approx([0, 0], abs=1e-9)


def test_the_factor_is_one_near_the_means_and_grows_with_the_distance():
    trust = make_trust()
    near, far = trust.means[:1] + 1e-3, trust.means[:1] + 10.0
    assert trust.factors(trust.novelty(near)).tolist() == [[1.0]]
    assert trust.factors(trust.novelty(far)).item() == pytest.approx(float(trust.distances(far) / 2.0) ** 0.5)


def test_probabilities_of_foreign_shapes_are_smaller_and_classes_stay():
    model = pointset.create_model("rff-max", classes=3, dim=8).eval()
    (*_, last) = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    clouds = torch.randn(6, 30, 3, generator=torch.Generator().manual_seed(0))
    plain = model.predict_proba(clouds)
    model.temperature, model.trust = 0.5, Trust(torch.zeros(2, last.in_features), torch.eye(last.in_features), 1e9, 1.0)
    torch.testing.assert_close(model.predict_proba(clouds), (model(clouds) / 0.5).softmax(dim=1))
    model.trust = Trust(model.trust.means, model.trust.precision, 1e-6, 1.0)
    doubtful = model.predict_proba(clouds)
    assert (doubtful.max(dim=1).values < plain.max(dim=1).values).all()
    assert torch.equal(model.predict(clouds), plain.argmax(dim=1))
    assert not last._forward_pre_hooks


def test_what_is_saved_is_loaded(tmp_path):
    trust = make_trust()
    trust.save(tmp_path)
    again = load_trust(TrustFigures(median=2.0, exponent=0.5), tmp_path)
    assert torch.equal(again.novelty(rows := torch.randn(4, 3)), trust.novelty(rows))
    (tmp_path / TRUST_FILE).write_bytes(b"?")
    with pytest.raises(PointsetError, match=TRUST_FILE):
        load_trust(TrustFigures(median=2.0, exponent=0.5), tmp_path)
