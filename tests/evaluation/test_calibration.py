"""Metrics of predictions and calibration, by hand and with torchmetrics; embeddings; and low confidence."""

import math
import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from command_line import asked, fail, succeed
from toy import train_run

import pointset
from pointset import PointsetError, Recipe
from pointset.data.axes import UP_TO_Z, rotate_up
from pointset.data.catalogue.folders import ShapeFile
from pointset.evaluation import Evaluation
from pointset.evaluation.calibration import brier_score, fit_temperature, probabilities, reliability
from pointset.evaluation.predictions import validation_temperature
from pointset.evaluation.shape_files import Failure, accuracy_of, embed_files, guess
from pointset.zoo import classifiers
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
@pytest.mark.parametrize("bins", [1, 15])
def test_torchmetrics_agrees(drawn, bins):
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
    tried = fit_temperature(logits, labels, "calibration error"), fitted, 1.0
    errors = [reliability(logits / temperature, labels, "mass").error for temperature in tried]
    assert errors[0] <= min(errors) < errors[2] / 2
    even = np.zeros((4, 2))  # every temperature is as good: the nearest to 1
    assert fit_temperature(even, np.array([0, 1, 0, 1]), "calibration error") == pytest.approx(1.0)


@pytest.mark.parametrize("objective", ["log loss", "calibration error"])
@pytest.mark.parametrize(("groups", "laplace"), [(None, 13 / 14), (np.arange(12) // 4, 4 / 5)])
def test_shapes_that_are_all_right_do_not_make_the_next_one_certain(drawn, objective, groups, laplace):
    """Those of one group count as one."""
    logits = drawn[0][:12]
    temperature = fit_temperature(logits, logits.argmax(axis=1), objective, groups)
    assert probabilities(logits, temperature).max(axis=1).mean() == pytest.approx(laplace)
    assert fit_temperature(1e9 * logits, logits.argmax(axis=1), objective, groups) == 100, "the highest"


def train(data, run, **changes):
    recipe = Recipe(**{"epochs": 3, "batch_size": 8, "learning_rate": 1e-2, "validation": 0.3, **changes})
    train_run(run, data, "rff-max", 24, recipe, dim=16, dropout=0.0)


def test_the_temperature_is_that_of_held_out_shapes_and_keeps_the_accuracy(clouds_folder, tmp_path, capsys):
    train(clouds_folder, tmp_path)
    model = pointset.load_model(tmp_path)
    description = model.description
    _, held_out = pointset.load_dataset(clouds_folder, "train", 24).split_validation(0.3, seed=0)
    found = pointset.evaluate(model, held_out)
    temperature = validation_temperature(model, description)
    assert temperature == pytest.approx(fit_temperature(found.logits, found.labels))
    said = asked(capsys, "evaluate", "--model", tmp_path, "--calibrate")
    assert said["temperature"] == pytest.approx(temperature)
    assert said["calibrated"]["accuracy"] == said["accuracy"]
    assert said["calibrated"]["loss"] != said["loss"]
    assert f"at temperature {temperature:.3f}" in succeed(capsys, "evaluate", "--model", tmp_path, "--calibrate")


def test_held_out_shapes_that_are_not_there_or_have_changed_are_told(clouds_folder, tmp_path):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    train(data, tmp_path / "whole", validation=0.0)
    train(data, tmp_path / "run")
    with h5py.File(data / "ply_data_train0.h5", "r+") as file:
        file["data"][0, 0, 0] += 1.0
    words = {"whole": r"train MODEL with --validation 0\.1", "run": r"training data of the run in .*data has changed"}
    for name, expected in words.items():
        with pytest.raises(PointsetError, match=expected):
            validation_temperature(model := pointset.load_model(tmp_path / name), model.description)


def test_accuracy_counts_shapes_and_mean_class_accuracy_counts_classes():
    found = Evaluation(np.eye(4, dtype=np.float32)[[0, 0, 0, 1, 1, 1]], np.array([0, 0, 0, 0, 1, 1]), list("abcd"))
    assert found.accuracy == pytest.approx(5 / 6)
    assert found.per_class == {"a": 0.75, "b": 1.0}  # c and d have no shape
    assert found.mean_class_accuracy == pytest.approx(0.875)


def test_five_classes_are_shown_with_the_entropy_of_all_classes():
    logits = np.log(np.array([[1, 2, 3, 4, 5, 6, 7]])).astype(np.float32)
    (found,) = guess([ShapeFile(Path("a"), "a")], Prediction(torch.from_numpy(logits), 0.5), list("abcdefg"), [9])
    shares = np.arange(1, 8) ** 2 / 140
    assert [name for name, _ in found.likeliest] == list("gfedc")
    assert [share for _, share in found.likeliest] == pytest.approx(shares[:1:-1].tolist(), rel=1e-5)
    assert found.entropy == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-5)
    assert found.as_row()["class_5"] == "c"


@pytest.mark.parametrize(("classes", "expected"), [(["bed", "night_stand"], (2 / 3, 3)), (["x", "y"], (0.0, 0))])
def test_classes_are_compared_by_name_however_they_are_spelled(classes, expected):
    prediction = Prediction(torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
    shapes = [ShapeFile(Path(true), "a", true) for true in ("Night-Stand", "Bed", "bed", "cat")]
    found = guess(shapes, prediction, classes, [9] * 4)
    assert accuracy_of(found) == pytest.approx(expected)
    assert {one.true_class for one in found} <= {*classes, ""}, "as the model names them, so that tables agree"


NAME = "isab16-pma.shapes10"


@pytest.fixture(scope="module")
def model() -> Any:
    return pointset.load_model(NAME)


def test_rows_are_what_the_head_gets_of_clouds_of_any_size(model, clouds_folder):
    sets = pointset.load_dataset(clouds_folder, "test", 24, normalize=model.preparation.normalize)
    rows = torch.from_numpy(model.embed(sets))
    with torch.inference_mode():
        assert torch.allclose(model.head(rows), model(sets.points), atol=1e-4)
    found = model.embed([100 + 7 * sets.points[0], sets.points[1], sets.points[2, :9]])  # normalised, of any size
    assert isinstance(found, torch.Tensor)
    assert torch.allclose(found[:2], rows[:2], atol=1e-2)
    assert torch.allclose(found[2], model.embed(sets.points[2, :9])[0], atol=1e-4)


def test_files_that_cannot_be_read_stop_nothing(model, tmp_path):
    rng = np.random.default_rng(0)
    for number in (0, 2):
        np.save(tmp_path / f"{number}.npy", rng.normal(size=(40, 3)))
    (tmp_path / "1.npy").write_text("nothing")
    shapes = [ShapeFile(path, path.name) for path in sorted(tmp_path.iterdir())]
    first, failure, last = embed_files(model, shapes)
    assert isinstance(failure, Failure)
    for shape, row in (first, last):
        assert np.allclose(row, model.embed(np.load(shape.path))[0], atol=1e-5)


DIRECTIONS = {name: np.eye(3)["xyz".index(name[-1])] * (-1 if name[0] == "-" else 1) for name in UP_TO_Z}


@pytest.mark.parametrize("up", UP_TO_Z)
def test_every_direction_is_rotated_to_point_up(up):
    assert np.linalg.det(UP_TO_Z[up]) == pytest.approx(1)
    direction = DIRECTIONS[up]
    rows = np.array([[*direction, *(2 * direction), 7.0]])
    assert rotate_up(rows, up, "z", normals=True).tolist() == [[0, 0, 1, 0, 0, 2, 7]]
    assert rotate_up(rows, up, "y", normals=True).tolist() == [[0, 1, 0, 0, 2, 0, 7]]


def test_low_confidence_names_the_options_to_try_and_classifies_nothing_again(tmp_path, capsys, monkeypatch):
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((600, 3)))
    calls = []
    monkeypatch.setattr(classifiers, "prepare", count_calls(classifiers.prepare, calls))
    said = succeed(capsys, "classify", tmp_path / "a.npy", "--model", NAME)
    assert re.search(r"low confidence .*--up y.*none of the model's 10 classes", said)
    assert "--pose any" not in said, "it chooses another model"
    assert len(calls) == 1
    said = succeed(capsys, "classify", tmp_path / "a.npy")
    assert re.search(r"low confidence .*--up y.*--pose any.*none of the model's 40 classes", said)
    for up in ("z", "x", "-y"):
        assert asked(capsys, "classify", tmp_path / "a.npy", "--model", NAME, f"--up={up}")["predictions"]
    assert "'guess'" in fail(capsys, "classify", tmp_path / "a.npy", "--up", "guess")


def count_calls(function, calls):
    def counted(*arguments, **options):
        calls.append(arguments)
        return function(*arguments, **options)

    return counted
