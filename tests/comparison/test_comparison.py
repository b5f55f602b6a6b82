"""Comparisons: the same results for any number of workers and after a restart, and no run missing.

A run that fails is named and does not affect others; further models, sizes and seeds can be added.
"""

import csv
import json
import re
import shutil
from dataclasses import astuple, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import toy
from toy import results

import pointset
from pointset import DataOptions, ModelOptions, PointsetError, Recipe
from pointset.comparison.comparing import report_finished, save_tables
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.results import Comparison, gather
from pointset.comparison.runs import make_runs
from pointset.evaluation.predictions import load_predictions, save_predictions
from pointset.runs.atomic import locked
from pointset.runs.records import write_or_compare
from pointset.tasks.classification import Classification

pytestmark = pytest.mark.slow

PROTOCOL = {"data_options": DataOptions(points=24), "model_options": ModelOptions(dim=16), "progress": False}
PROTOCOL |= {"recipe": Recipe(epochs=2, batch_size=16), "report": False}


def test_workers_change_no_result_and_write_into_the_folder_of_the_caller(done, clouds_folder, tmp_path, monkeypatch):
    """joblib keeps its workers, which stay in the directory in which they were started."""
    for name, seeds in (("first", [0, 1]), ("second", [0])):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found = pointset.compare(["isab4-pma", "rff-max"], clouds_folder, seeds=seeds, out="out", workers=2, **PROTOCOL)
        assert results(found) == [one for one in results(done) if int(one[0][-1]) in seeds]
        assert len(list((tmp_path / name / "out" / "runs").glob("*/result.json"))) == 2 * len(seeds)


def test_changed_test_data_is_refused(done, clouds_folder, tmp_path):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    out = tmp_path / "out"
    pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)
    with h5py.File(data / "ply_data_test0.h5", "r+") as file:
        file["data"][0, 0, 0] += 1.0
    with pytest.raises(PointsetError, match=r"another comparison \(test_sets\.fingerprint is"):
        pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)


def test_the_files_hold_every_run_and_the_protocol(done):
    saved = json.loads((done.folder / "results.json").read_text())
    configuration = saved["configuration"]
    assert (configuration["points"], configuration["seeds"], configuration["recipe"]["epochs"]) == ([24], [0, 1], 2)
    assert [entry["name"] for entry in configuration["models"]] == ["isab4-pma", "rff-max"]
    assert saved["versions"]["torch"].startswith("2.")
    assert saved["runs"] == [one.as_dict() | {"folder": one.folder.name} for one in done.runs]
    assert saved["failures"] == []
    assert [(pair["first"], pair["second"]) for pair in saved["pairs"]["24"]] == [("isab4-pma", "rff-max")]
    assert [row["model"] for row in saved["rows"] if row["cost"]["multiply_adds"] > 0] == ["isab4-pma", "rff-max"]
    with (done.folder / "results.csv").open() as file:
        found = [(float(row["accuracy"]), float(row["seconds"])) for row in csv.DictReader(file)]
    assert found == [(one.metrics["accuracy"], one.result.seconds) for one in done.runs]
    table, caption, *sentences = (done.folder / "table.md").read_text().strip().split("\n\n")
    assert sentences == done.sentences()
    assert table.count("\n") == 3
    assert "24 points, 2 seeds, 2 epochs, width 16; every test shape, last epoch, mean ±" in caption


def test_metrics_follow_from_the_predictions(done, clouds_folder):
    """The saved metrics equal those computed again from the saved model, and from the saved logits."""
    test = pointset.load_dataset(clouds_folder, "test", 24)
    for one in done.runs:
        kept = load_predictions(done.run(one.model, one.seed).folder)
        model = pointset.load_model(done.folder / "runs" / f"{one.model}-n24-seed{one.seed}")
        np.testing.assert_allclose(pointset.evaluate(model, test).logits, kept.logits, atol=1e-5)
        np.testing.assert_array_equal(kept.labels, test.labels)
        assert one.metrics == {name: kept.summary()[name] for name in one.metrics}
        assert len(one.metrics) == 6
        assert one.result.parameters == sum(parameter.numel() for parameter in model.parameters())
    accuracies = [one.metrics["accuracy"] for one in done.runs]
    first = done.rankings[24].pair("isab4-pma", "rff-max")
    assert first.difference == pytest.approx(np.mean(accuracies[:2]) - np.mean(accuracies[2:]))


def test_compare_and_rank_give_one_conclusion(done, tmp_path):
    """From the comparison, from its folder, and from its predictions.csv."""
    folder, rng = shutil.copytree(done.folder, tmp_path / "copy"), np.random.default_rng(0)
    for run in make_runs(done.experiment, folder):
        kept = load_predictions(run.folder)
        right = np.eye(len(kept.classes))[kept.labels] * (2.0 if run.model == "rff-max" else 0.5)
        save_predictions(replace(kept, logits=right + rng.normal(size=right.shape)), run.folder)
    comparison = gather(done.experiment, folder, [run.read() for run in make_runs(done.experiment, folder)])
    save_tables(comparison)
    ours = comparison.rankings[24]
    pair = ours.pair("rff-max", "isab4-pma")
    assert 0 < pair.p < 0.9
    for given in (folder, folder / "predictions.csv"):
        theirs = pointset.rank(given)
        same = theirs.pair("rff-max", "isab4-pma")
        assert (same.difference, same.interval, same.p) == (pair.difference, pair.interval, pair.p)
        np.testing.assert_allclose(*[[astuple(row.interval) for row in one.rows] for one in (theirs, ours)], rtol=1e-12)
        assert theirs.method == ours.method


def caption(folder, **changes) -> str:
    shared = {"task": Classification(points=(24,)).task, "seeds": (0,), "model": ModelOptions(dim=16)}
    experiment = Experiment.of(**{"models": ("rff-max",), **shared, **changes})
    return Comparison(experiment, [], {}, {}, [], folder).caption()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models": (Entry.of({"name": "rff-max", "dim": 32}), Entry.of("features-svm"))}, "width 32;"),
        ({"models": (Entry.of("isab4-pma"), Entry.of({"name": "rff-max", "dim": 32}))}, "width 16 and 32;"),
        ({"recipe": Recipe(epochs=3, min_steps=300)}, "1 seed, 3 epochs, at least 300 steps,"),
        ({"recipe": Recipe(steps=5, min_steps=300)}, "1 seed, 5 steps, width"),
    ],
)
def test_the_caption_names_widths_the_steps_that_hold_and_shapes_that_are_left_out(changes, words, tmp_path):
    assert words in caption(tmp_path, **changes)
    assert "left out" not in caption(tmp_path)
    train, test = {"split": "train", "shapes": 17, "skipped": 3}, {"split": "test", "shapes": 8, "skipped": 0}
    sets = {"train_sets": train, "test_sets": test}
    write_or_compare(tmp_path / "sets-n24.json", sets, list(sets), "comparison")
    assert caption(tmp_path).endswith("; left out, because they could not be used: 3 of 20 train shapes")


def test_a_run_that_is_not_there_is_named_with_those_that_are(done):
    with pytest.raises(PointsetError, match="seed 7 is not a finished run: choose from isab4-pma, 24 points, seed 0"):
        done.model("rff-max", 7)


def test_a_baseline_runs_beside_networks(clouds_folder, tmp_path):
    """It has seconds and parameters, and no multiply-adds; the report compares the networks with it."""
    out, options = tmp_path / "out", {**PROTOCOL, "report": True}
    found = pointset.compare(["rff-max", "features-svm"], clouds_folder, seeds=[0, 1], out=out, workers=1, **options)
    assert not found.failures
    network, baseline = (line.split() for line in found.table().splitlines()[2:])
    assert (network.count("-"), baseline.count("-")) == (0, 2)
    assert found.rows[1].seconds > 0
    assert "network is significantly better than features-svm." in (out / "report.html").read_text()


@pytest.fixture(scope="module")
def finished(classifiers, tmp_path_factory) -> Comparison:
    return toy.compare(classifiers(), tmp_path_factory.mktemp("finished"))


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A copy of the finished comparison, to continue in."""
    return shutil.copytree(finished.folder, tmp_path / "copy")


def written(folder: Path, pattern: str = "runs/*/*") -> dict[Path, int]:
    files = (path for path in folder.glob(pattern) if not path.name.endswith(("lock", "SUMS")))
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in files}


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({"seeds": (0, 5)}, [("rff-max", 24, 0), ("rff-max", 24, 5), ("isab4-pma", 24, 0), ("isab4-pma", 24, 5)]),
        ({"points": (7, 24)}, [("rff-max", 7, 0), ("isab4-pma", 7, 0), ("rff-max", 24, 0), ("isab4-pma", 24, 0)]),
        (
            {
                "models": (
                    Entry.of("isab4-pma"),
                    Entry.of({"name": "isab4-pma", "pool_seeds": "mean"}),
                    Entry.of("rff-max"),
                )
            },
            [("isab4-pma", 24, 0), ("isab4-pma pool_seeds=mean", 24, 0), ("rff-max", 24, 0)],
        ),
        ({"models": (Entry.of("isab4-pma"),)}, [("isab4-pma", 24, 0)]),
    ],
    ids=["a seed", "a size", "a model", "fewer models"],
)
def test_adding_to_a_finished_folder_repeats_no_run(changes, runs, finished, copy, classifiers):
    before = written(copy)
    joined = toy.compare(classifiers(**changes), copy)
    assert [(one.model, one.points, one.seed) for one in joined.runs] == runs
    old = {(one.model, one.points, one.seed): one for one in finished.runs}
    for one, named in zip(joined.runs, runs, strict=True):
        assert one.result == old.get(named, one).result, "to the second that it took"
    after = written(copy)
    assert {path: after[path] for path in before} == before
    assert {path.parts[1] for path in after.keys() - before.keys()} == {
        f"{model.replace(' ', '_')}-n{points}-seed{seed}" for model, points, seed in set(runs) - set(old)
    }


def test_another_model_under_the_same_label_is_not_a_run_of_the_folder(copy, classifiers):
    other = Entry("rff-max", {"layers": 2}, "rff-max")
    found = toy.compare(classifiers(other, "isab4-pma"), copy)
    (failure,) = found.failures
    assert failure.name == "rff-max, 24 points, seed 0"
    assert "model.options.layers is None there and 2 here" in failure.reason
    assert [one.model for one in found.runs] == ["isab4-pma"]


def test_robustness_is_tested_where_it_is_asked_for_then_or_later(finished, copy, classifiers):
    asked = classifiers("rff-max", seeds=(3, 0), robustness_seeds=(0,))
    before = written(copy)
    found = toy.compare(asked, copy)
    assert found.runs[1].result == finished.runs[0].result
    weights = [path for path in before if path.name == "model.safetensors"]
    assert [written(copy)[path] for path in weights] == [before[path] for path in weights], "not trained again"
    assert [path.parent.name for path in copy.glob("runs/*/robustness.json")] == ["rff-max-n24-seed0"]
    file = copy / "runs" / "rff-max-n24-seed0" / "robustness.json"
    content, stamp = json.loads(file.read_text()), file.stat().st_mtime_ns
    assert content["clean_error"] == pytest.approx(1 - found.runs[1].metrics["accuracy"])
    assert list(content["by_size"]) == ["16", "24"], "the usual size below 24, and the whole"
    assert content["by_size"]["24"] == found.runs[1].metrics["accuracy"]
    assert len(content["errors"]) >= 8
    for errors in content["errors"].values():
        assert len(errors) == 5
        assert all(0 <= error <= 1 for error in errors.values())
    toy.compare(asked, copy)
    assert file.stat().st_mtime_ns == stamp


def test_a_failed_run_is_tried_again(classifiers, tmp_path):
    """The run fails because its folder contains something else; when that is removed, the same call finishes it."""
    strange = tmp_path / "runs" / "isab4-pma-n24-seed0"
    strange.mkdir(parents=True)
    (strange / "model.safetensors").write_bytes(b"strange")
    for _ in range(2):
        found = toy.compare(classifiers(), tmp_path)
        (failure,) = found.failures
        assert (strange / "failure.txt").read_text() == failure.reason + "\n"
        assert "run.json is missing" in failure.reason
        assert [one.model for one in found.runs] == ["rff-max"]
    (strange / "model.safetensors").unlink()
    found = toy.compare(classifiers(), tmp_path)
    assert not found.failures
    assert [one.model for one in found.runs] == ["rff-max", "isab4-pma"]
    assert not list(tmp_path.glob("runs/*/failure.txt"))


def test_a_comparison_without_any_finished_run_is_an_error_that_says_why(classifiers, tmp_path):
    with pytest.raises(PointsetError, match=r"all runs failed; too cold, 24 points, seed 0: the loss became"):
        toy.compare(classifiers({"name": "isab4-pma", "label": "too cold", "temperature": 1e-60}), tmp_path)
    assert not (tmp_path / "results.json").exists()


@pytest.mark.parametrize("name", ["result.json", "run.json", "predictions.npz", "robustness.json"])
def test_a_run_with_a_file_cut_off_is_refused_and_no_table_takes_its_numbers(name, copy, classifiers):
    """After deleting what the message names, the run is repeated with the same results."""
    asked = classifiers("rff-max", "isab4-pma", robustness_seeds=(0,) if name == "robustness.json" else ())
    before = toy.compare(asked, copy)
    results = copy / "results.csv"
    results.unlink()
    file = copy / "runs" / "rff-max-n24-seed0" / name
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    try:
        reason = toy.compare(asked, copy).failures[0].reason
        assert "rff-max" not in results.read_text()
    except PointsetError as error:  # found when the report is made
        reason = str(error)
        assert not results.exists()
    assert f"rff-max-n24-seed0/{name} does not" in reason
    told = Path(re.search(r"(?:delete|move) (\S+) (?:away )?and run", reason)[1])
    assert told in (file, file.parent, file.with_name("result.json"))  # whose making makes the predictions
    shutil.rmtree(told) if told.is_dir() else told.unlink()
    after = toy.compare(asked, copy)
    assert [(one.model, one.metrics) for one in after.runs] == [(one.model, one.metrics) for one in before.runs]


def test_two_comparisons_in_one_folder_do_not_write_beside_each_other(copy, classifiers):
    before, words = written(copy, "**/*"), f"another process is running a comparison in {copy}"
    with locked(copy / ".lock", "-"), pytest.raises(PointsetError, match=words):
        toy.compare(classifiers(), copy)
    assert written(copy, "**/*") == before
    assert not toy.compare(classifiers(), copy).failures


def test_the_folder_of_another_comparison_is_refused(copy, classifiers):
    with pytest.raises(PointsetError, match=r"holds another comparison \(threads is 1 there and 7 here\)"):
        report_finished(classifiers(threads=7), copy)
