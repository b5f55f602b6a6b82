"""A run that fails is named and does not affect others; further models, sizes and seeds can be added."""

import json
import re
import shutil
import weakref
from pathlib import Path

import pytest
import toy

from pointset.comparison import comparing
from pointset.comparison.comparing import report_finished
from pointset.comparison.experiment import Entry
from pointset.comparison.results import Comparison
from pointset.comparison.runs import make_runs
from pointset.errors import PointsetError
from pointset.runs.locks import lock_folder
from pointset.runs.workers import Workers

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(classifiers, tmp_path_factory) -> tuple[Path, Comparison]:
    folder = tmp_path_factory.mktemp("finished")
    return folder, toy.compare(classifiers(), folder)


@pytest.fixture
def copy(finished, tmp_path) -> Path:
    """A copy of the finished comparison, to continue in."""
    return shutil.copytree(finished[0], tmp_path / "copy")


def written(folder: Path) -> dict[Path, int]:
    files = (path for path in folder.glob("runs/*/*") if not path.name.endswith(("lock", "SUMS")))
    return {path.relative_to(folder): path.stat().st_mtime_ns for path in files}


@pytest.mark.parametrize(
    ("changes", "runs"),
    [
        ({"seeds": (0, 5)}, [("rff-max", 24, 0), ("rff-max", 24, 5), ("isab4-pma", 24, 0), ("isab4-pma", 24, 5)]),
        ({"points": (7, 24)}, [("rff-max", 7, 0), ("isab4-pma", 7, 0), ("rff-max", 24, 0), ("isab4-pma", 24, 0)]),
        (
            {"models": (Entry("isab4-pma"), Entry("isab4-pma", {"pool_seeds": "mean"}), Entry("rff-max"))},
            [("isab4-pma", 24, 0), ("isab4-pma pool_seeds=mean", 24, 0), ("rff-max", 24, 0)],
        ),
        ({"models": (Entry("isab4-pma"),)}, [("isab4-pma", 24, 0)]),
    ],
    ids=["a seed", "a size", "a model", "fewer models"],
)
def test_adding_to_a_finished_folder_repeats_no_run(changes, runs, finished, copy, classifiers):
    before = written(copy)
    joined = toy.compare(classifiers(**changes), copy)
    assert [(one.model, one.points, one.seed) for one in joined.runs] == runs
    old = {(one.model, one.points, one.seed): one for one in finished[1].runs}
    for one, named in zip(joined.runs, runs, strict=True):
        assert one.result == old.get(named, one).result, "to the second that it took"
    after = written(copy)
    assert {path: after[path] for path in before} == before
    assert {path.parts[1] for path in after.keys() - before.keys()} == {
        f"{model.replace(' ', '_')}-n{points}-seed{seed}" for model, points, seed in set(runs) - set(old)
    }


def test_another_model_under_the_same_label_is_not_a_run_of_the_folder(copy, classifiers):
    other = Entry("rff-max", {"layers": 2}, label="rff-max")
    found = toy.compare(classifiers(other, "isab4-pma"), copy)
    (failure,) = found.failures
    assert failure.name == "rff-max, 24 points, seed 0"
    assert "model.options.layers is None there and 2 here" in failure.reason
    assert [one.model for one in found.runs] == ["isab4-pma"]


def test_robustness_is_tested_where_it_is_asked_for_then_or_later(finished, copy, classifiers):
    asked = classifiers("rff-max", seeds=(3, 0), robustness_seeds=(0,))
    before = written(copy)
    found = toy.compare(asked, copy)
    assert found.runs[1].result == finished[1].runs[0].result
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
    told = Path(re.search(r"delete (\S+) and run", reason)[1])
    assert told in (file, file.parent, file.with_name("result.json"))  # whose making makes the predictions
    shutil.rmtree(told) if told.is_dir() else told.unlink()
    after = toy.compare(asked, copy)
    assert [(one.model, one.metrics) for one in after.runs] == [(one.model, one.metrics) for one in before.runs]


def test_two_comparisons_in_one_folder_do_not_write_beside_each_other(copy, classifiers):
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*") if path.name != ".lock"}
    with (
        lock_folder(copy, "-"),
        pytest.raises(PointsetError, match=f"another process is running a comparison in {copy}"),
    ):
        toy.compare(classifiers(), copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*") if path.name != ".lock"} == before
    assert not toy.compare(classifiers(), copy).failures


def test_the_result_of_another_run_and_the_folder_of_another_comparison_are_refused(copy, classifiers):
    first, second = make_runs(classifiers(), copy)
    shutil.copy(first.result_file, second.result_file)
    with pytest.raises(PointsetError, match=r"pma-n24-seed0/result\.json .*it is that of .*rff-max"):
        report_finished(classifiers(), copy)
    with pytest.raises(PointsetError, match=r"holds another comparison \(threads is 1 there and 7 here\)"):
        report_finished(classifiers(threads=7), copy)


def test_one_process_keeps_the_sets_of_one_run_at_a_time(classifiers, tmp_path, monkeypatch):
    performed, alive = [], []

    def perform(run):
        alive.append(sum(reference() is not None for reference in performed))
        performed.append(weakref.ref(run))
        return run.failed("not run")

    monkeypatch.setattr(comparing, "run_one", perform)
    runs = make_runs(classifiers(seeds=(0, 1, 2)), tmp_path)
    assert len([*comparing.run_all(runs, Workers(1))]) == len(alive) == 6
    assert max(alive) <= 1
