"""Metrics of predictions, by hand and against their definitions."""

from pathlib import Path

import numpy as np
import pytest
import torch

import pointset
from pointset.data.catalogue.folders import ShapeFile
from pointset.evaluation import Evaluation
from pointset.evaluation.shape_files import accuracy_of, guess
from pointset.zoo.predicting import Prediction


def evaluation(predicted: list[int], labels: list[int], classes: int = 4) -> Evaluation:
    return Evaluation(np.eye(classes, dtype=np.float32)[predicted] * 3, np.array(labels), list("abcd"[:classes]))


def test_accuracy_counts_shapes_and_mean_class_accuracy_counts_classes():
    found = evaluation(predicted=[0, 0, 0, 1, 1, 1], labels=[0, 0, 0, 0, 1, 1])
    assert found.accuracy == pytest.approx(5 / 6)
    assert found.per_class == {"a": 0.75, "b": 1.0}  # c and d have no shape
    assert found.mean_class_accuracy == pytest.approx(0.875)


@pytest.mark.slow
def test_every_shape_is_used_once_and_the_batch_size_does_not_matter(clouds_folder):
    test = pointset.load_dataset(clouds_folder, "test", 32)
    model = pointset.create_model("isab4-pma", classes=3, dim=16).train()
    results = [pointset.evaluate(model, test, batch_size=size) for size in (1, 7, 1000)]
    assert model.training  # left as it was
    for found in results:
        assert found.logits.shape == (60, 3)
        np.testing.assert_allclose(found.logits, results[0].logits, atol=1e-5)
        np.testing.assert_array_equal(found.labels, test.labels)


def test_five_classes_are_shown_with_the_entropy_of_all_classes():
    logits = np.log(np.array([[1, 2, 3, 4, 5, 6, 7]])).astype(np.float32)
    (found,) = guess([ShapeFile(Path("a"), "a")], Prediction(torch.from_numpy(logits), 0.5), list("abcdefg"), [9])
    shares = np.arange(1, 8) ** 2 / 140
    assert [name for name, _ in found.likeliest] == list("gfedc")
    assert [share for _, share in found.likeliest] == pytest.approx(shares[:1:-1].tolist(), rel=1e-5)
    assert found.entropy == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-5)
    assert found.as_row()["class_5"] == "c"


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(["bed", "night_stand"], (2 / 3, 3)), (["bed", "Bed"], (0.0, 2)), (["x", "y"], (0.0, 0))],
)
def test_classes_are_compared_by_name_and_spelling_does_not_matter_where_it_decides_nothing(classes, expected):
    prediction = Prediction(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    shapes = [ShapeFile(Path(true), "a", true) for true in ("Night-Stand", "Bed", "bed", "cat")]
    found = guess(shapes, prediction, classes, [9] * 4)
    assert accuracy_of(found, classes) == pytest.approx(expected)
