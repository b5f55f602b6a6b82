"""The grid of a set problem: run, cut off, gone on with, joined, failed; its files."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import pointset.tasks.learning
from pointset.comparison.experiment import Entry
from pointset.errors import PointsetError
from pointset.runs.workers import Workers
from pointset.tasks import TaskComparison, TaskExperiment, run_task_experiment
from pointset.tasks.comparison import make_jobs
from pointset.tasks.experiment import task_recipe
from pointset.tasks.jobs import TaskCell
from pointset.tasks.learning import take_figures
from pointset.tasks.max_regression import MaxRegression
from pointset.tasks.progress import estimate, status
from pointset.tasks.results import FILES
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training
from pointset.zoo.options import ModelOptions


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    """Checkpoints after every 4 steps, and test sets that take no time."""
    monkeypatch.setattr(pointset.tasks.learning, "BLOCK", 4)
    monkeypatch.setattr("pointset.tasks.progress.BLOCK", 4)
    monkeypatch.setattr(pointset.tasks.learning.DrawnSets, "steps_per_epoch", 4)
    monkeypatch.setattr("pointset.tasks.max_regression.TEST_SETS", 20)


def tiny(*models: str, steps: int = 10, **changes) -> TaskExperiment:
    experiment = TaskExperiment(
        task="max-regression",
        models=tuple(Entry.of(model) for model in models or ("rFF + max", "SAB + PMA")),
        seeds=(0,),
        model=ModelOptions(dim=8, heads=2, dropout=0.25),
        recipe=task_recipe(steps=steps, batch_size=6),
    )
    return replace(experiment, **changes)


def run(experiment: TaskExperiment, folder: Path) -> TaskComparison:
    return run_task_experiment(experiment, folder, Workers(1), progress=False)


def numbers(folder: Path) -> list[dict]:
    return [{key: value for key, value in row.items() if key != "seconds"} for row in RunFolder(folder).history()]


def test_a_run_leaves_a_table_and_its_files(tmp_path):
    found = run(tiny(seeds=(0, 3)), tmp_path)
    assert [(cell.model, cell.seed) for cell in found.cells] == [
        ("rFF + max", 0), ("rFF + max", 3), ("SAB + PMA", 0), ("SAB + PMA", 3),
    ]  # fmt: skip
    assert all((tmp_path / name).stat().st_size for name in FILES)
    with (tmp_path / "results.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == ["model", "seed", "MAE", "parameters", "seconds", "steps"]
    assert [float(line["MAE"]) for line in lines] == [cell.figures["MAE"] for cell in found.cells]
    saved = json.loads((tmp_path / "results.json").read_text())
    assert saved["configuration"]["task"] == "max-regression"
    assert {"versions", "machine", "commit", "command", "pairs", "failures"} <= set(saved)
    assert [row["seeds"] for row in saved["rows"]] == [2, 2]
    text = (tmp_path / "table.md").read_text()
    assert "Max regression, 2 seeds, 10 steps of 6 sets, width 8, form reference; last step, mean ±" in text
    assert text.splitlines()[0].split("|")[1].strip() == "model"


@pytest.mark.parametrize("look", [status, estimate])
def test_the_folder_of_another_comparison_is_not_looked_at(look, tmp_path):
    run(tiny("rFF + max"), tmp_path)
    with pytest.raises(PointsetError, match=r"holds another comparison \(recipe\.steps is 10 there and 11 here\)"):
        look(tiny("rFF + max", steps=11), tmp_path)


def test_history_has_a_row_for_each_block_with_loss_and_watched_figures(tmp_path):
    run(tiny("rFF + max"), tmp_path)
    rows = RunFolder(tmp_path / "cells" / "rFF_+_max-seed0").history()
    assert [list(row) for row in rows] == [["epoch", "loss", "learning_rate", "seconds", "MAE"]] * 3, "4 + 4 + 2 steps"


def test_the_figure_is_that_of_the_saved_model(tmp_path):
    found = run(tiny("SAB + PMA"), tmp_path)
    model = found.model("SAB + PMA", 0)
    assert not model.training
    task = MaxRegression()
    assert take_figures(task, model, task.test_sets()) == found.cells[0].figures
    with pytest.raises(PointsetError, match=r"there is no finished cell SAB \+ PMA, seed 1"):
        found.model("SAB + PMA", 1)


def test_cut_off_inside_a_block_and_gone_on_with_it_is_the_same_to_the_last_bit(tmp_path, monkeypatch):
    """With dropout, whose random numbers must be those of the steps, and Adam, whose moments must be kept."""
    experiment = tiny("SAB + PMA")
    whole = run(experiment, tmp_path / "whole")
    drawn: list[int] = []
    draw = MaxRegression.draw

    def until_the_seventh(self, count, generator):
        drawn.append(count)
        if len(drawn) == 7:
            raise KeyboardInterrupt
        return draw(self, count, generator)

    with monkeypatch.context() as patch:
        patch.setattr(MaxRegression, "draw", until_the_seventh)
        with pytest.raises(KeyboardInterrupt):
            run(experiment, tmp_path / "cut")
    cell = Path("cells") / "SAB_+_PMA-seed0"
    assert len(RunFolder(tmp_path / "cut" / cell).history()) == 1
    assert [(one.state, one.steps) for one in status(experiment, tmp_path / "cut")] == [("stopped", 4)]
    drawn.clear()
    with monkeypatch.context() as patch:
        patch.setattr(MaxRegression, "draw", lambda *given: (drawn.append(1), draw(*given))[1])
        resumed = run(experiment, tmp_path / "cut")
    assert len(drawn) == 6, "the four steps of the first block are not done again"
    assert numbers(tmp_path / "cut" / cell) == numbers(tmp_path / "whole" / cell)
    first, second = (RunFolder(tmp_path / name / cell).weights() for name in ("whole", "cut"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert resumed.cells[0].figures == whole.cells[0].figures


def test_what_is_finished_is_not_done_again_and_another_seed_joins(tmp_path, monkeypatch):
    before = run(tiny(), tmp_path)
    begun: list[int] = []
    epoch = Training._epoch
    monkeypatch.setattr(Training, "_epoch", lambda self, *given: (begun.append(self.seed), epoch(self, *given))[1])
    joined = run(tiny(seeds=(0, 1)), tmp_path)
    assert set(begun) == {1}
    assert [cell for cell in joined.cells if cell.seed == 0] == before.cells, "to the second that it took"
    alone = run(tiny(seeds=(1,)), tmp_path.with_name("alone"))
    assert [cell.figures for cell in joined.cells if cell.seed == 1] == [cell.figures for cell in alone.cells]


def test_rows_see_the_same_sets_and_seeds_see_others(tmp_path, monkeypatch):
    seen: dict[int, list[float]] = {}
    step = Training._backward

    def backward(self, share, whole):
        seen.setdefault(id(self), []).append(float(share.X.sum()))
        return step(self, share, whole)

    monkeypatch.setattr(Training, "_backward", backward)
    run(tiny(seeds=(0, 1), steps=3), tmp_path)
    first, second, third, fourth = seen.values()  # seeds outermost
    assert first == second
    assert third == fourth
    assert not set(first) & set(third)
    assert len(set(first)) == 3


def test_another_protocol_in_the_same_folder_is_refused(tmp_path):
    run(tiny("rFF + max"), tmp_path)
    with pytest.raises(PointsetError, match=r"holds another comparison \(recipe.steps is 10 there and 11 here\)"):
        run(tiny("rFF + max", steps=11), tmp_path)


def test_a_row_that_fails_is_named_and_stops_nothing(tmp_path):
    cold = {"name": "SAB + PMA", "label": "too cold", "temperature": 1e-60}
    found = run(tiny("rFF + max", cold), tmp_path)
    assert [cell.model for cell in found.cells] == ["rFF + max"]
    (failure,) = found.failures
    assert failure.name == "too cold, seed 0"
    assert "the loss became nan in epoch 1: lower learning_rate" in failure.reason
    assert "too cold" not in (tmp_path / "results.csv").read_text()
    states = {one.model: one for one in status(tiny("rFF + max", cold), tmp_path)}
    assert states["too cold"].state == "failed"
    assert states["too cold"].reason == failure.reason
    with pytest.raises(PointsetError, match="no run was finished; too cold, seed 0: the loss became nan"):
        run(tiny(cold), tmp_path / "alone")


def test_status_and_estimate_count_what_is_left(tmp_path):
    experiment = tiny(seeds=(0, 1))
    assert {(one.state, one.steps, one.figures) for one in status(experiment, tmp_path)} == {("waiting", 0, None)}
    found = run(tiny("rFF + max"), tmp_path)
    (done, *rest) = status(experiment, tmp_path)
    assert (done.model, done.state, done.steps, done.figures) == ("rFF + max", "finished", 10, found.cells[0].figures)
    assert {one.state for one in rest} == {"waiting"}
    left = {one.model: one for one in estimate(experiment, tmp_path)}
    assert {label: one.cells for label, one in left.items()} == {"rFF + max": 1, "SAB + PMA": 2}
    assert left["SAB + PMA"].seconds == pytest.approx(20 * left["SAB + PMA"].step_seconds)
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["rFF_+_max-seed0"], "looking leaves nothing"


def test_jobs_go_through_processes(tmp_path):
    """As a pool runs them: pickled, and read back."""
    import pickle

    (job,) = make_jobs(tiny("rFF + max"), tmp_path)
    assert isinstance(pickle.loads(pickle.dumps(job)).perform(), TaskCell)
    assert job.read().steps == 10
