"""One table from many runs: the same figures for any number of workers, across a restart, and nothing dropped."""

import csv
import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import h5py
import pytest
from joblib import Parallel, delayed, parallel_config

import pointset
from pointset.cells import Cell, Job, run_jobs
from pointset.comparison import Comparison
from pointset.configuration import DataOptions, ModelOptions, Recipe
from pointset.errors import PointsetError
from pointset.processes import recycled_quietly

PROTOCOL = {
    "data_options": DataOptions(points=24),
    "model_options": ModelOptions(dim=16),
    "recipe": Recipe(epochs=2, batch_size=16),
    "progress": False,
}


def run(folder, data, **changes) -> Comparison:
    return pointset.compare(["isab4-pma", "rff-max"], data, out=folder, **{"seeds": [0, 1], **PROTOCOL, **changes})


def figures(comparison: Comparison) -> list[Cell]:
    return [replace(cell, seconds=0.0) for cell in comparison.cells]


@pytest.fixture(scope="module")
def done(clouds_folder, tmp_path_factory) -> tuple:
    folder = tmp_path_factory.mktemp("compare")
    return folder, run(folder, clouds_folder, workers=1)


def test_every_model_and_seed_is_there_in_the_given_order(done):
    _, comparison = done
    cells = [(cell.model, cell.seed) for cell in comparison.cells]
    assert cells == [("isab4-pma", 0), ("isab4-pma", 1), ("rff-max", 0), ("rff-max", 1)]
    assert [row.model for row in comparison.rows] == ["isab4-pma", "rff-max"]
    assert all(cell.shapes == 60 and cell.epochs == 2 for cell in comparison.cells)


def test_workers_change_no_figure(done, clouds_folder, tmp_path):
    assert figures(run(tmp_path, clouds_folder, workers=2)) == figures(done[1])


def test_what_is_finished_is_not_done_again(done, clouds_folder):
    folder, comparison = done
    written = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/*")}
    assert run(folder, clouds_folder, workers=1).cells == comparison.cells
    assert {path: path.stat().st_mtime_ns for path in folder.glob("cells/*/*")} == written


def test_another_protocol_in_the_same_folder_is_refused(done, clouds_folder):
    with pytest.raises(PointsetError, match=r"recipe\.epochs is 2 there and 3 here"):
        run(done[0], clouds_folder, recipe=Recipe(epochs=3, batch_size=16), workers=1)


def test_another_model_joins_a_comparison_under_the_same_protocol(done, clouds_folder, tmp_path):
    shutil.copytree(done[0], tmp_path / "copy")
    joined = pointset.compare(
        ["rff-max", "rff-mean"], clouds_folder, seeds=[0], out=tmp_path / "copy", workers=1, **PROTOCOL
    )
    assert joined.cells[0] == done[1].cells[2]
    assert joined.cells[1].model == "rff-mean"


def test_changed_test_data_is_refused(done, clouds_folder, tmp_path):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    out = tmp_path / "out"
    pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)
    with h5py.File(data / "ply_data_test0.h5", "r+") as file:
        file["data"][0, 0, 0] += 1.0
    with pytest.raises(PointsetError, match=r"another comparison \(test_sets\.fingerprint is"):
        pointset.compare(["rff-mean"], data, seeds=[0], out=out, workers=1, **PROTOCOL)


@dataclass(frozen=True)
class FatalJob(Job):
    """Kills the process that it runs in."""

    @property
    def result(self) -> Path:
        if multiprocessing.parent_process() is not None or "loky" in " ".join(sys.argv):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().result


def test_a_killed_worker_is_reported_with_what_is_not_finished(clouds_folder, tmp_path):
    options = (DataOptions(points=24), ModelOptions(dim=16), Recipe(epochs=1))
    jobs = [FatalJob("rff-max", seed, str(clouds_folder), *options, 1, tmp_path / str(seed)) for seed in (0, 1)]
    with pytest.raises(
        PointsetError, match=r"a worker process was killed.*: rff-max seed 0, rff-max seed 1: run the same"
    ):
        list(run_jobs(jobs, 2))


def test_the_files_hold_every_cell_and_the_protocol(done):
    folder, comparison = done
    saved = json.loads((folder / "results.json").read_text())
    assert saved["configuration"]["recipe"]["epochs"] == 2
    assert saved["configuration"]["data_options"]["points"] == 24
    assert saved["versions"]["torch"].startswith("2.")
    assert [Cell(**cell) for cell in saved["cells"]] == comparison.cells
    with (folder / "results.csv").open() as file:
        assert [row["accuracy"] for row in csv.DictReader(file)] == [str(cell.accuracy) for cell in comparison.cells]
    table, caption = (folder / "table.md").read_text().split("\n\n")
    assert table.count("\n") == 3
    assert "24 points, 2 seeds, 2 epochs, width 16, form reference; every test shape, last epoch, mean ±" in caption


def cell(model: str, accuracy: float) -> Cell:
    return Cell(model, int(accuracy * 100), accuracy, accuracy / 2, 1234, 3.0, 2, 60)


def test_rows_are_means_with_sample_deviations():
    comparison = Comparison([cell("a", 0.5), cell("a", 0.6), cell("a", 0.7), cell("b", 0.9)], {})
    first, second = comparison.rows
    assert first.accuracy == pytest.approx(0.6)
    assert first.accuracy_std == pytest.approx(0.1)  # divided by 2, not by 3
    assert second.accuracy_std is None
    table = comparison.table()
    assert "60.0 ± 10.0" in table
    assert "1,234" in table
    assert "±" not in table.splitlines()[-1]


@pytest.mark.parametrize(
    ("models", "seeds", "words"),
    [
        (["rff-max", "isab-max"], [0], "no model is called 'isab-max'"),
        (["rff-max", "rff-max"], [0], "given twice"),
        (["rff-max"], [], "at least one model and one seed"),
        (["rff-max"], [-1], "seed=-1 is no seed"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(models, seeds, words, clouds_folder, tmp_path):
    with pytest.raises(PointsetError, match=words):
        pointset.compare(models, clouds_folder, seeds=seeds, out=tmp_path / "out", **PROTOCOL)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("counts", [{"workers": 0}, {"workers": -5}, {"threads": 0}])
def test_counts_of_workers_and_threads_are_checked(counts, clouds_folder, tmp_path):
    with pytest.raises(PointsetError, match="give at least 1 of each"):
        run(tmp_path / "out", clouds_folder, **counts)
    assert not (tmp_path / "out").exists()


def test_the_caption_names_the_epoch_that_counts():
    recipe = Recipe(epochs=9, validation=0.1, patience=2)
    configuration = {
        "data": "shapes10",
        "data_options": DataOptions(points=24).as_dict(),
        "model_options": ModelOptions(dim=16).as_dict(),
        "recipe": recipe.as_dict(),
        "seeds": [0],
    }
    caption = Comparison([cell("a", 0.5)], configuration).caption()
    assert caption == (
        "shapes10, 24 points, 1 seed, 9 epochs, width 16, form reference; every test shape, best validation epoch"
    )


def grow(number: int) -> int:
    """Grow by more than joblib lets a worker grow, and give it time to look."""
    time.sleep(1.1)
    held.append(b"x" * 400_000_000)
    return number


held: list[bytes] = []


@pytest.mark.skipif(importlib.util.find_spec("psutil") is None, reason="without psutil joblib does not look at memory")
def test_a_worker_that_has_grown_is_replaced_without_a_word():
    """Warnings are errors here: in joblib's own thread one would leave everybody waiting."""
    with recycled_quietly(), parallel_config("loky", n_jobs=2):
        assert sorted(Parallel()(delayed(grow)(number) for number in range(6))) == list(range(6))
