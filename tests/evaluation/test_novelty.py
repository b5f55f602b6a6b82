"""Detection of shapes unlike the training shapes: both scores by hand, and a trained model."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import mahalanobis
from torch import nn

import pointset
from pointset.errors import PointsetError
from pointset.evaluation.novelty import (
    ClassMeans,
    Detector,
    auroc,
    energy,
    fit_threshold,
    load_detector,
    measure_strangers,
    save_means,
)
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import padded_batches, predict, predict_in_pieces
from pointset.zoo.pretrained import Unlike


def test_energy_is_minus_the_log_of_the_sum_of_exponentials():
    assert energy(np.log(np.array([[1.0, 2.0, 5.0], [0.5, 0.25, 0.25]]))) == pytest.approx([-np.log(8.0), 0.0])
    assert energy(np.array([[1e4, 0.0]], dtype=np.float32)) == pytest.approx([-1e4])


def test_the_threshold_has_95_percent_below_it():
    scores = np.random.default_rng(0).permutation(1000).astype(float)
    assert (scores < fit_threshold(scores)).sum() == 950
    with pytest.raises(PointsetError, match="held-out shapes, got 0"):
        fit_threshold(np.array([]))


def test_strangers_have_larger_scores():
    assert auroc(np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])) == 1.0
    assert auroc(np.array([1.0, 4.0]), np.array([3.0])) == 0.5


def test_the_distance_is_to_the_nearest_mean_under_one_covariance():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 2], 200)
    rows = rng.normal(size=(400, 3)) * [1.0, 2.0, 0.0] + 10.0 * (labels == 2)[:, None]  # the last is always 0 or 10
    found = ClassMeans.fit(rows.astype(np.float32), labels)
    np.testing.assert_allclose(found.means, [rows[:200].mean(axis=0), rows[200:].mean(axis=0)], atol=1e-5)
    np.testing.assert_allclose(np.linalg.inv(found.precision)[:2, :2], np.diag([1, 4]), atol=0.5)
    points = np.array([[0, 0, 0], [10, 10, 10], [0, 3, 0], [0, 0, 3]], dtype=np.float32)
    nearest = [min(mahalanobis(x, mean, found.precision) ** 2 for mean in found.means) for x in points]
    np.testing.assert_allclose(found.distances(points), nearest, rtol=1e-4)
    assert nearest[3] > nearest[2] > nearest[0], "what never varied in training counts, too"


@pytest.mark.parametrize("name", ["rff-max", "isab4-pma2", "sab-mean", "dgcnn"])
def test_the_features_are_the_input_of_the_last_layer(name):
    model = pointset.create_model(name, classes=3, dim=8, heads=2).eval()
    *_, last = (layer for layer in model.modules() if getattr(getattr(layer, "weight", None), "ndim", 0) == 2)
    predictions = [predict(model, padded_batches(torch.randn(3, size, 3)), last_rows=True) for size in (24, 30)]
    if name == "rff-max":
        predictions.append(predict_in_pieces(model, [torch.randn(9, 3)], last_rows=True))
    for found in predictions:
        torch.testing.assert_close(found.last_rows @ last.weight.detach().T + last.bias.detach(), found.logits)
    assert not last._forward_pre_hooks


def test_a_model_without_a_last_layer_says_so_when_it_is_asked():
    flat = nn.Module()
    flat.forward = lambda points, mask: points.sum(dim=1)
    prediction = predict(flat, [(torch.ones(2, 5, 2), None)], last_rows=True)
    with pytest.raises(PointsetError, match="no last linear layer"):
        Detector(0.0, ClassMeans(np.zeros((2, 2)), np.eye(2))).scores(prediction)


def test_strangers_of_a_trained_model(clouds_folder, tmp_path):
    sets = pointset.load_dataset(clouds_folder, points=16)
    test = pointset.load_dataset(clouds_folder, "test", points=16)
    train, held_out = sets.split_validation(0.3, seed=0)
    model = pointset.fit(pointset.create_model("rff-max", 3, dim=8), train, Recipe(epochs=2), progress=False).model
    strangers = pointset.from_arrays(np.eye(3)[:2].repeat(4, 0)[None].repeat(5, 0), ["line"] * 5)  # two places
    found = measure_strangers(model, train, held_out, test, {"lines": strangers})
    prediction = predict(model, strangers, last_rows=True)
    for score, one in found.items():
        assert one.detector.score == score
        assert 0 <= one.flagged < 0.5
        assert one.as_dict()["auroc"] == {"lines": one.auroc["lines"]}
        scores = one.detector.scores(prediction)
        assert one.found == {"lines": np.mean(scores > one.detector.threshold)}
    assert found["distance"].auroc["lines"] > 0.9
    save_means(tmp_path, found["distance"].detector.means)
    again = load_detector(Unlike(score="distance", threshold=found["distance"].detector.threshold), tmp_path)
    np.testing.assert_array_equal(again.scores(prediction), scores)
    assert load_detector(Unlike(score="energy", threshold=-2.0), tmp_path).score == "energy"
