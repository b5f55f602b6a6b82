"""Comparisons: the same results for any number of workers and after a restart, and no run missing."""

import csv
import json
import shutil
from dataclasses import replace

import h5py
import numpy as np
import pytest
from toy import results

import pointset
from pointset.comparison.comparing import save_tables
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.results import Comparison, gather
from pointset.comparison.runs import make_runs
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation.predictions import load_predictions, save_predictions
from pointset.runs.records import write_or_compare
from pointset.tasks.classification import Classification
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

pytestmark = pytest.mark.slow

PROTOCOL = {
    "data_options": DataOptions(points=24),
    "model_options": ModelOptions(dim=16),
    "recipe": Recipe(epochs=2, batch_size=16),
    "progress": False,
    "report": False,
}


def run(folder, data, **changes) -> Comparison:
    return pointset.compare(["isab4-pma", "rff-max"], data, out=folder, **{"seeds": [0, 1], **PROTOCOL, **changes})


@pytest.fixture(scope="module")
def done(clouds_folder, tmp_path_factory) -> tuple:
    folder = tmp_path_factory.mktemp("compare")
    return folder, run(folder, clouds_folder, workers=1)


def test_workers_change_no_result(done, clouds_folder, tmp_path):
    assert results(run(tmp_path, clouds_folder, workers=2)) == results(done[1])


def test_workers_write_into_the_folder_of_the_caller(clouds_folder, tmp_path, monkeypatch):
    """joblib keeps its workers, which stay in the directory in which they were started."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert not run("out", clouds_folder, seeds=[0], workers=2).failures
        assert len(list((tmp_path / name / "out" / "runs").glob("*/result.json"))) == 2


def test_changed_test_data_is_refused(done, clouds_folder, tmp_path):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    out = tmp_path / "out"
    pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)
    with h5py.File(data / "ply_data_test0.h5", "r+") as file:
        file["data"][0, 0, 0] += 1.0
    with pytest.raises(PointsetError, match=r"another comparison \(test_sets\.fingerprint is"):
        pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)


def test_the_files_hold_every_run_and_the_protocol(done):
    folder, comparison = done
    saved = json.loads((folder / "results.json").read_text())
    configuration = saved["configuration"]
    assert (configuration["points"], configuration["seeds"], configuration["recipe"]["epochs"]) == ([24], [0, 1], 2)
    assert [entry["name"] for entry in configuration["models"]] == ["isab4-pma", "rff-max"]
    assert saved["versions"]["torch"].startswith("2.")
    assert saved["runs"] == [one.as_dict() | {"folder": one.folder.name} for one in comparison.runs]
    assert saved["failures"] == []
    (pair,) = saved["pairs"]["24"]
    assert (pair["first"], pair["second"]) == ("isab4-pma", "rff-max")
    assert [row["model"] for row in saved["rows"]] == ["isab4-pma", "rff-max"]
    assert all(row["cost"]["multiply_adds"] > 0 for row in saved["rows"])
    with (folder / "results.csv").open() as file:
        expected = [
            (str(one.metrics["accuracy"]), str(one.result.parameters), str(one.result.seconds))
            for one in comparison.runs
        ]
        found = [(row["accuracy"], row["parameters"], row["seconds"]) for row in csv.DictReader(file)]
        assert found == expected
    table, caption, *sentences = (folder / "table.md").read_text().strip().split("\n\n")
    assert sentences == comparison.sentences()
    assert table.count("\n") == 3
    assert "24 points, 2 seeds, 2 epochs, width 16, form reference; every test shape, last epoch, mean ±" in caption


def test_the_caption_has_the_widths_of_the_rows(done):
    _, comparison = done
    wide, models = Entry("rff-max", {"dim": 32}), comparison.experiment.models
    baseline = Entry("features-svm")
    for rows, width in (((wide, baseline), "width 32,"), ((*models, wide), "width 16 and 32,")):
        assert width in replace(comparison, experiment=replace(comparison.experiment, models=rows)).caption()


def test_metrics_follow_from_the_predictions(done, clouds_folder):
    """The saved metrics equal those computed again from the saved model, and from the saved logits."""
    folder, comparison = done
    test = pointset.load_dataset(clouds_folder, "test", 24)
    for one in comparison.runs:
        kept = load_predictions(comparison.run(one.model, one.seed).folder)
        model, _ = pointset.load_run(folder / "runs" / f"{one.model}-n24-seed{one.seed}")
        np.testing.assert_allclose(pointset.evaluate(model, test).logits, kept.logits, atol=1e-5)
        np.testing.assert_array_equal(kept.labels, test.labels)
        assert one.metrics == {name: kept.summary()[name] for name in one.metrics}
        assert len(one.metrics) == 6
        assert one.result.parameters == sum(parameter.numel() for parameter in model.parameters())
    accuracies = [one.metrics["accuracy"] for one in comparison.runs]
    first = comparison.verdicts[24].pair("isab4-pma", "rff-max")
    assert first.difference == pytest.approx(np.mean(accuracies[:2]) - np.mean(accuracies[2:]))


def test_compare_and_judge_give_one_verdict(done, tmp_path):
    """From the comparison, from its folder, from its predictions.csv, and from the predictions of its runs."""
    folder, rng = shutil.copytree(done[0], tmp_path / "copy"), np.random.default_rng(0)
    for run in make_runs(done[1].experiment, folder):
        kept = load_predictions(run.folder)
        right = np.eye(len(kept.classes))[kept.labels] * (2.0 if run.model == "rff-max" else 0.5)
        save_predictions(replace(kept, logits=right + rng.normal(size=right.shape)), run.folder)
    comparison = gather(done[1].experiment, folder, [run.read() for run in make_runs(done[1].experiment, folder)])
    save_tables(comparison)
    ours = comparison.verdicts[24]
    pair = ours.pair("rff-max", "isab4-pma")
    assert 0 < pair.p < 0.9
    runs = sorted(folder.glob("runs/*/predictions.npz"))
    for given, suffix in ((folder, ""), (folder / "predictions.csv", ""), (folder / "runs", "-n24"), (runs, "-n24")):
        theirs = pointset.judge(given)
        same = theirs.pair(f"rff-max{suffix}", f"isab4-pma{suffix}")
        assert (same.difference, same.interval, same.p) == (pair.difference, pair.interval, pair.p)
        assert [(row.mean, row.interval) for row in theirs.rows] == [(row.mean, row.interval) for row in ours.rows]
        assert theirs.method == ours.method


def test_the_caption_says_which_shapes_are_left_out(tmp_path):
    experiment = Experiment(task=Classification(points=(24,)), models=(Entry("rff-max"),), seeds=(0,))
    there = Comparison(experiment, [], {}, {}, [], tmp_path)
    assert "left out" not in there.caption()
    sets = {
        "train_sets": {"split": "train", "shapes": 17, "skipped": 3},
        "test_sets": {"split": "test", "shapes": 8, "skipped": 0},
    }
    write_or_compare(tmp_path / "sets-n24.json", sets, list(sets), "comparison")
    assert there.caption().endswith("; left out, because they could not be used: 3 of 20 train shapes")


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ({"epochs": 3, "least_steps": 300}, "1 seed, 3 epochs, at least 300 steps,"),
        ({"steps": 5, "least_steps": 300}, "1 seed, 5 steps, width"),
    ],
)
def test_the_caption_names_a_least_number_of_steps_that_holds(recipe, words, tmp_path):
    models = (Entry("rff-max"),)
    experiment = Experiment(task=Classification(points=(24,)), models=models, seeds=(0,), recipe=Recipe(**recipe))
    assert words in Comparison(experiment, [], {}, {}, [], tmp_path).caption()


def test_a_run_that_is_not_there_is_named_with_those_that_are(done):
    with pytest.raises(PointsetError, match="seed 7 is not a finished run: choose from isab4-pma, 24 points, seed 0"):
        done[1].model("rff-max", 7)


def test_a_baseline_runs_beside_networks(clouds_folder, tmp_path):
    """It has seconds and parameters, and no multiply-adds; the report compares the networks with it."""
    out, options = tmp_path / "out", {**PROTOCOL, "report": True}
    found = pointset.compare(["rff-max", "features-svm"], clouds_folder, seeds=[0, 1], out=out, workers=1, **options)
    assert not found.failures
    network, baseline = (line.split() for line in found.table().splitlines()[2:])
    assert (network.count("-"), baseline.count("-")) == (0, 2)
    assert found.rows[1].seconds > 0
    assert "network is distinguishably better than features-svm." in (out / "report.html").read_text()
