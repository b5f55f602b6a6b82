"""Metrics of predictions and calibration: by hand, against torchmetrics, and temperatures of held-out shapes."""

import json
import math
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from command_line import succeed

import pointset
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.dataset import load_split
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation
from pointset.evaluation.calibration import brier_score, fit_temperature, probabilities, reliability
from pointset.evaluation.predictions import validation_temperature
from pointset.evaluation.shape_files import accuracy_of, guess
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import Prediction

SHAPES, CLASSES = 211, 5


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray]:
    """Logits three times as large as those from which the labels were drawn."""
    rng = np.random.default_rng(0)
    logits = 1.5 * rng.normal(size=(SHAPES, CLASSES)).astype(np.float32)
    labels = [rng.choice(CLASSES, p=chances) for chances in probabilities(logits)]
    return 3 * logits, np.array(labels)


def sure(*confidences: float) -> np.ndarray:
    """Logits of two classes whose first has these probabilities, all from one half up."""
    p = np.array(confidences)
    return np.log(np.stack([p, 1 - p], axis=1))


def test_by_hand():
    """Four predictions of class 0 with confidences 0.55, 0.65, 0.9 and 0.95; the second and the last are right."""
    logits, labels = sure(0.55, 0.65, 0.9, 0.95), np.array([1, 0, 1, 0])
    assert brier_score(logits, labels) == pytest.approx(2 * (0.55**2 + 0.35**2 + 0.9**2 + 0.05**2) / 4)
    width = reliability(logits, labels, "width", bins=5)  # (0.4, 0.6], (0.6, 0.8] and (0.8, 1] have some
    assert width.confidence == pytest.approx([0.55, 0.65, 0.925])
    assert width.accuracy == pytest.approx([0.0, 1.0, 0.5])
    assert width.share == pytest.approx([0.25, 0.25, 0.5])
    assert width.error == pytest.approx(0.25 * 0.55 + 0.25 * 0.35 + 0.5 * 0.425)
    mass = reliability(logits, labels, "mass", bins=2)  # the two least and the two most confident
    assert mass.confidence == pytest.approx([0.6, 0.925])
    assert mass.accuracy == pytest.approx([0.5, 0.5])
    assert mass.error == pytest.approx(0.5 * 0.1 + 0.5 * 0.425)
    uneven = reliability(logits, labels, "mass", bins=3)
    assert sorted(uneven.share) == [0.25, 0.25, 0.5], "as even as can be"


def test_a_bin_holds_its_upper_edge_and_certainty_is_in_the_last():
    certain = np.array([[1000.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])  # confidences 1 and 1/4, exactly
    found = reliability(certain, np.array([0, 0]), "width", bins=4)
    assert found.confidence.tolist() == [0.25, 1.0]
    assert found.error == pytest.approx(0.5 * 0.75)  # the second is right by the rule that the first of equals counts
    with_a_half = reliability(np.array([[0.0, 0.0], *sure(0.6)]), np.array([0, 0]), "width", bins=2)
    assert with_a_half.confidence == pytest.approx([0.5, 0.6]), "(0, 1/2] and (1/2, 1]"


@pytest.mark.slow
@pytest.mark.parametrize("bins", [1, 7, 15, 100])
def test_torchmetrics_agrees(drawn, bins):
    import torch
    from torchmetrics.functional import classification

    logits, labels = drawn
    given = torch.from_numpy(probabilities(logits)), torch.from_numpy(labels)
    expected = float(classification.multiclass_calibration_error(*given, num_classes=CLASSES, n_bins=bins, norm="l1"))
    assert reliability(logits, labels, "width", bins).error == pytest.approx(expected, abs=1e-6)


def test_a_temperature_by_hand():
    """Logits 8 and 0, right three times in four: the best probability is 3/4, at T = 8 / log 3."""
    logits, labels = np.tile([8.0, 0.0], (4, 1)), np.array([0, 0, 1, 0])
    temperature = fit_temperature(logits, labels)
    assert temperature == pytest.approx(8 / math.log(3), rel=1e-4)
    assert probabilities(logits, temperature)[0] == pytest.approx([0.75, 0.25], abs=1e-5)
    assert reliability(logits / temperature, labels).error == pytest.approx(0.0, abs=1e-5)


def test_fitting_finds_the_temperature_that_was_applied(drawn):
    logits, labels = drawn
    fitted = fit_temperature(logits, labels)
    assert fitted == pytest.approx(3.0, abs=0.7), "as drawn"
    assert fit_temperature(logits.astype(np.float64) * 7, labels) == pytest.approx(7 * fitted, rel=1e-4)
    assert fit_temperature(logits / fitted, labels) == pytest.approx(1.0, rel=1e-4)
    before = Evaluation(logits, labels, list("abcde"))
    assert before.at_temperature(fitted).calibration_error() < before.calibration_error() / 2


@pytest.mark.parametrize("objective", ["log loss", "calibration error"])
@pytest.mark.parametrize(("groups", "laplace"), [(None, 13 / 14), (np.arange(12) // 4, 4 / 5)])
def test_shapes_that_are_all_right_do_not_make_the_next_one_certain(drawn, objective, groups, laplace):
    """Those of one group count as one."""
    logits = drawn[0][:12]
    temperature = fit_temperature(logits, logits.argmax(axis=1), objective, groups)
    assert probabilities(logits, temperature).max(axis=1).mean() == pytest.approx(laplace)
    assert fit_temperature(1e9 * logits, logits.argmax(axis=1), objective, groups) == 100, "the highest"


def train(data, run, **changes):
    sets = load_split(data, "train", DataOptions(points=24), progress=False)
    model = pointset.create_model("rff-max", classes=len(sets.classes), dim=16, dropout=0.0)
    recipe = Recipe(**{"epochs": 3, "batch_size": 8, "learning_rate": 1e-2, "validation": 0.3, **changes})
    pointset.fit(model, sets, recipe, seed=5, run=run, progress=False)
    return sets, recipe


def test_the_temperature_is_fitted_on_the_shapes_that_were_held_out(clouds_folder, tmp_path):
    sets, recipe = train(clouds_folder, tmp_path)
    model, description = pointset.load_run(tmp_path)
    _, held_out = sets.split_validation(recipe.validation, 5)
    found = pointset.evaluate(model, held_out)
    assert validation_temperature(model, description) == pytest.approx(fit_temperature(found.logits, found.labels))


def test_the_command_says_what_it_changes_and_keeps_the_accuracy(clouds_folder, tmp_path, capsys):
    train(clouds_folder, tmp_path)
    command = ("evaluate", "--model", tmp_path, "--calibrate")
    said = json.loads(succeed(capsys, *command, "--json"))
    assert said["calibrated"]["accuracy"] == said["accuracy"]
    assert said["calibrated"]["loss"] != said["loss"]
    assert f"at temperature {said['temperature']:.3f}" in succeed(capsys, *command)


def test_a_run_that_held_nothing_out_is_told_what_to_do(clouds_folder, tmp_path):
    train(clouds_folder, tmp_path, validation=0.0)
    with pytest.raises(PointsetError, match=r"train with --validation 0\.1"):
        validation_temperature(*pointset.load_run(tmp_path))


def test_changed_training_data_is_refused(clouds_folder, tmp_path):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    train(data, tmp_path / "run")
    with h5py.File(data / "ply_data_train0.h5", "r+") as file:
        file["data"][0, 0, 0] += 1.0
    with pytest.raises(PointsetError, match=r"training data of the run in .*data has changed"):
        validation_temperature(*pointset.load_run(tmp_path / "run"))


def test_a_temperature_may_fit_the_calibration_error(drawn):
    logits, labels = drawn
    temperatures = fit_temperature(logits, labels, "calibration error"), fit_temperature(logits, labels), 1.0
    errors = [reliability(logits / temperature, labels, "mass").error for temperature in temperatures]
    assert errors[0] <= min(errors)
    assert errors[0] < errors[2] / 2
    even = np.zeros((4, 2))  # every temperature is as good: the nearest to 1
    assert fit_temperature(even, np.array([0, 1, 0, 1]), "calibration error") == pytest.approx(1.0)


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
    ("classes", "expected"), [(["bed", "night_stand"], (2 / 3, 3)), (["bed", "Bed"], (0.0, 2)), (["x", "y"], (0.0, 0))]
)
def test_classes_are_compared_by_name_and_spelling_does_not_matter_where_it_decides_nothing(classes, expected):
    prediction = Prediction(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    shapes = [ShapeFile(Path(true), "a", true) for true in ("Night-Stand", "Bed", "bed", "cat")]
    found = guess(shapes, prediction, classes, [9] * 4)
    assert accuracy_of(found, classes) == pytest.approx(expected)
