"""Training networks that label points: it learns and loads; metrics; data and models that do not fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import jaccard_score
from toy import write_labelled

import pointset
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.evaluation import PointEvaluation, evaluate_points
from pointset.training.objectives import Classification
from pointset.training.recipe import Recipe

RECIPE = Recipe(epochs=3, batch_size=3, learning_rate=1e-2, validation=0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("labelled") / "rooms")


@pytest.fixture(scope="module")
def sets(folder) -> dict[str, PointSets]:
    return {
        split: pointset.load_dataset(folder, split, 32, labels="label", progress=False) for split in ("train", "test")
    }


def small(name: str = "rff-max", classes: int = 2, **options: Any) -> torch.nn.Module:
    return pointset.create_segmenter(name, classes, dim=16, dropout=0.1, **options)


@pytest.mark.parametrize("name", ["rff-max", "isab16-pma"])
def test_it_learns_which_points_are_above_the_middle(sets, name):
    model = small(name)
    fitted = pointset.fit(model, sets["train"], Recipe(epochs=30, batch_size=3, learning_rate=1e-2), progress=False)
    result = evaluate_points(model, sets["test"])
    assert fitted.history[-1]["loss"] < fitted.history[0]["loss"]
    assert result.accuracy > 0.9
    assert model.classes == ["2", "6"]
    cloud = sets["test"].points[0][sets["test"].mask[0]]
    assert model.predict(cloud)[0].tolist() == model(cloud)[0].argmax(dim=1).tolist()


def test_a_run_is_loaded_with_its_classes(sets, tmp_path):
    fitted = pointset.fit(small(), sets["train"], RECIPE, run=tmp_path / "run", progress=False)
    assert {"validation_accuracy", "validation_iou"} <= set(fitted.history[-1])
    model, run = pointset.load_run(tmp_path / "run")
    assert (model.classes, run["model"]["per_point"], run["data"]["labels"]) == (["2", "6"], True, "label")
    with torch.no_grad():
        assert torch.equal(model(sets["test"].points), fitted.model(sets["test"].points))


def test_metrics_are_those_of_scikit_learn_over_all_labelled_points(sets):
    model = small()
    pointset.fit(model, sets["train"], Recipe(epochs=1), progress=False)
    result, labels, mask = evaluate_points(model, sets["test"]), sets["test"].point_labels, sets["test"].mask
    known = labels >= 0
    predicted = model(sets["test"].points, mask).argmax(dim=2)[known].numpy()
    assert result.accuracy == pytest.approx((predicted == labels[known].numpy()).mean())
    assert result.mean_iou == pytest.approx(jaccard_score(labels[known], predicted, average="macro"))
    assert result.summary()["points"] == int(known.sum())


def test_a_class_that_occurs_nowhere_has_no_iou():
    logits = np.eye(4, dtype=np.float32)[[0, 1, 1, 3]]
    result = PointEvaluation(logits, np.array([0, 1, 0, 1]), ["a", "b", "c", "d"])
    assert result.iou == {"a": 0.5, "b": pytest.approx(1 / 3), "d": 0.0}


def test_classes_are_matched_by_name(sets, tmp_path):
    model = small(classes=3)
    model.classes = ["6", "9", "2"]
    result = evaluate_points(model, sets["test"])
    assert result.classes == ["6", "9", "2"]
    assert set(result.labels.tolist()) == {0, 2}
    model.classes = ["2", "9", "7"]
    with pytest.raises(PointsetError, match="'6'"):
        evaluate_points(model, sets["test"])


def test_balanced_weights_count_points(sets):
    objective = Classification(sets["train"], Recipe(class_weights="balanced"), 0)
    counts = torch.bincount(sets["train"].point_labels[sets["train"].point_labels >= 0]).float()
    assert objective.weights is not None
    assert (objective.weights @ counts / counts.sum()).item() == pytest.approx(1.0)


def test_models_and_data_that_do_not_fit_are_refused(sets, folder):
    plain = pointset.load_dataset(folder, "train", 32, progress=False)
    cases = {
        "create_segmenter": (pointset.create_model("rff-max", 2, dim=8), sets["train"], RECIPE),
        "predicts labels of points, and rooms has classes.* labels=": (small(), plain, RECIPE),
        "classes=2": (small(classes=5), sets["train"], RECIPE),
        "background": (small(), sets["train"], Recipe(augment=("background",))),
    }
    for words, (model, data, recipe) in cases.items():
        with pytest.raises(PointsetError, match=words):
            pointset.fit(model, data, recipe, progress=False)
    with pytest.raises(PointsetError, match="without labels"):
        evaluate_points(small(), plain)
    with pytest.raises(PointsetError, match="evaluate_points"):
        pointset.evaluate(small(), plain)
