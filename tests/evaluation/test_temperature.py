"""Calibrating a run on its held-out shapes: the accuracy stays the same, and the test set is not used."""

import json
import shutil

import h5py
import numpy as np
import pytest
from command_line import succeed

import pointset
from pointset.data.dataset import load_split
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation.calibration import fit_temperature
from pointset.evaluation.predictions import validation_temperature
from pointset.training.recipe import Recipe


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


def test_no_temperature_changes_a_prediction():
    """Logits that would be equal in float32 after a division keep their order."""
    logits = np.array([[1.0, np.nextafter(np.float32(1.0), np.float32(2.0)), 0.0]], dtype=np.float32)
    before = pointset.Evaluation(logits, np.array([1]), ["a", "b", "c"])
    for temperature in (1.7, 3.0, 97.3, 0.011):
        assert before.at_temperature(temperature).predictions.tolist() == [1]


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
