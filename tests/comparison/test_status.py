"""The status of an experiment, its remaining work, and its display while it runs; reading it changes nothing."""

import math
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import pointset.comparison.comparing
from pointset.comparison.comparing import estimate_time, status
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.runs import Result, Run, make_runs
from pointset.data.dataset import load_dataset
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.tasks.classification import Classification
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

EPOCHS = 3


@pytest.fixture
def experiment(clouds_folder) -> Experiment:
    return Experiment(
        models=(Entry("rff-max"), Entry("isab4-pma", {"form": "paper"})),
        task=Classification(data=str(clouds_folder), points=(24, 7), robustness_seeds=(4,)),
        seeds=(0, 4),
        model=ModelOptions(dim=16),
        recipe=Recipe(epochs=EPOCHS, batch_size=16),
    )


def runs_of(experiment: Experiment, out: Path) -> dict[tuple[str, int, int], Run]:
    return {(run.entry.name, run.points, run.seed): run for run in make_runs(experiment, out)}


def has_epochs(run: Run, epochs: int) -> None:
    run.folder.mkdir(parents=True, exist_ok=True)
    records.write_text(run.folder / "history.jsonl", "".join(f'{{"epoch": {epoch + 1}}}\n' for epoch in range(epochs)))


def has_result(run: Run, accuracy: float) -> None:
    has_epochs(run, EPOCHS)
    result = Result({"accuracy": accuracy}, parameters=9, seconds=1.0, length=EPOCHS, tested=60)
    records.write_json(run.result_file, replace(run, result=result).as_dict())


def everything(folder: Path) -> dict[Path, float]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_robustness_is_asked_for_at_some_sizes_or_at_all_and_nothing_is_written(experiment, tmp_path):
    for asked, tested in (((), {24, 7}), ((24,), {24}), ((7, 24), {24, 7})):
        changed = experiment.changed(robustness_points=asked)
        runs = status(changed, tmp_path / "out")
        assert {(run.points, run.seed) for run in runs if not run.trial.is_tested} == {(size, 4) for size in tested}
    assert not (tmp_path / "out").exists()


def test_every_state(experiment, tmp_path):
    runs = runs_of(experiment, tmp_path)
    has_result(runs["rff-max", 24, 0], 0.75)
    has_epochs(runs["isab4-pma", 24, 0], 2)
    has_epochs(runs["rff-max", 7, 0], 1)
    has_epochs(runs["isab4-pma", 7, 0], 1)
    runs["isab4-pma", 7, 0].failed("the loss became nan")
    has_result(runs["rff-max", 24, 4], 0.5)
    (runs["rff-max", 24, 4].folder / "robustness.json").touch()
    has_result(runs["isab4-pma", 24, 4], 0.25)  # its robustness is asked for and not there
    with runs["isab4-pma", 24, 0].locked():
        found = [
            (run.model, run.points, run.seed, run.state, run.epochs, run.result and run.metrics, run.reason)
            for run in status(experiment, tmp_path)
        ]
    label = "isab4-pma form=paper"
    assert found == [
        ("rff-max", 24, 0, "finished", EPOCHS, {"accuracy": 0.75}, ""),
        (label, 24, 0, "running", 2, None, ""),
        ("rff-max", 7, 0, "stopped", 1, None, ""),
        (label, 7, 0, "failed", 1, None, "the loss became nan"),
        ("rff-max", 24, 4, "finished", EPOCHS, {"accuracy": 0.5}, ""),
        (label, 24, 4, "stopped", EPOCHS, {"accuracy": 0.25}, ""),
        ("rff-max", 7, 4, "waiting", 0, None, ""),
        (label, 7, 4, "waiting", 0, None, ""),
    ]


def test_the_result_of_another_run_is_refused(experiment, tmp_path):
    first, second, *_ = make_runs(experiment, tmp_path)
    has_result(first, 0.5)
    has_epochs(second, EPOCHS)
    records.write_json(second.result_file, first.read().as_dict())
    with pytest.raises(PointsetError, match=r"paper-n24-seed0/result\.json .*it is that of .*rff-max"):
        status(experiment, tmp_path)


@pytest.mark.parametrize("look", [status, estimate_time])
def test_the_folder_of_another_comparison_is_refused(look, experiment, tmp_path):
    protocol = experiment.protocol() | {"threads": 7}
    records.write_json(tmp_path / "protocol.json", protocol)
    with pytest.raises(PointsetError, match=r"holds another comparison \(threads is 7 there and 1 here\)"):
        look(experiment, tmp_path)
    records.write_json(tmp_path / "protocol.json", experiment.protocol())
    assert status(experiment, tmp_path)


@pytest.fixture
def steady(monkeypatch) -> None:
    """A step takes 3 seconds for isab4-pma and 2 for rff-max at 24 points, and a tenth of it at 7 points."""

    def step_seconds(run: Run) -> float:
        return {"rff-max": 2.0, "isab4-pma": 3.0}[run.entry.name] * {24: 1.0, 7: 0.1}[run.points]

    monkeypatch.setattr(pointset.comparison.comparing, "step_seconds", step_seconds)


def test_an_estimate_counts_the_steps_that_are_left(experiment, tmp_path, steady):
    """120 shapes in batches of 16 are 8 steps per epoch; 3 epochs, 2 seeds."""
    runs = runs_of(experiment, tmp_path)
    has_result(runs["rff-max", 24, 0], 0.75)  # nothing is left of it
    has_epochs(runs["isab4-pma", 24, 0], 2)
    has_result(runs["rff-max", 7, 4], 0.75)  # all but its robustness, which is not a training
    before = everything(tmp_path)
    paper = "isab4-pma form=paper"
    assert [tuple(row.values()) for row in estimate_time(experiment, tmp_path)] == [
        ("rff-max", 24, 1, 2.0, pytest.approx(2.0 * 8 * 3)),
        (paper, 24, 2, 3.0, pytest.approx(3.0 * 8 * (1 + 3))),
        ("rff-max", 7, 2, pytest.approx(0.2), pytest.approx(0.2 * 8 * 3)),
        (paper, 7, 2, pytest.approx(0.3), pytest.approx(0.3 * 8 * 2 * 3)),
    ]
    assert everything(tmp_path) == before


@pytest.mark.slow
def test_a_step_is_measured_on_this_machine_and_leaves_it_as_it_was(experiment, clouds_folder, tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    one = experiment.changed(points=(24,), models=(Entry("isab4-pma"),), threads=threads + 1)
    start = time.perf_counter()
    (found,) = estimate_time(one, tmp_path / "out")
    taken = time.perf_counter() - start
    assert 0 < found["step_seconds"] < taken
    assert found["seconds"] == pytest.approx(found["step_seconds"] * 2 * EPOCHS * math.ceil(120 / 16))
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)
    assert not (tmp_path / "out").exists()
    assert len(load_dataset(clouds_folder, "train", 24)) == 120


def test_an_estimate_finds_that_there_is_no_test_split(experiment, tmp_path):
    for split in ("train", "val"):
        (tmp_path / "data" / split / "bed").mkdir(parents=True)
        np.save(tmp_path / "data" / split / "bed" / "1.npy", np.random.default_rng(0).normal(size=(30, 3)))
    with pytest.raises(PointsetError, match="data has no shape in split 'test': found train, val"):
        estimate_time(experiment.changed(data=str(tmp_path / "data")), tmp_path / "out")
    assert not (tmp_path / "out").exists()
