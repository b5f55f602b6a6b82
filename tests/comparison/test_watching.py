"""The display of a comparison in progress: shares, current runs, and the table of complete seeds."""

import json
from dataclasses import asdict

import pytest

from pointset.comparison.comparing import longest_first
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.runs import Failure, Finished, Run, make_runs
from pointset.comparison.status import Watch, complete_seeds, watched
from pointset.runs import digests
from pointset.tasks import create_task, task_recipe
from pointset.tasks.classification.task import Classification
from pointset.training.recipe import Recipe

STEPS, EPOCH = 4000, 1000


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        task=create_task("max-regression"),
        models=(Entry("rff-max"), Entry("rff-mean")),
        seeds=(3, 0, 7),
        recipe=task_recipe(steps=STEPS),
    )


def has_steps(run: Run, steps: int, seconds: float) -> None:
    """Write a history with one line per epoch, with the given duration."""
    rows = [{"epoch": one + 1, "loss": 0.5, "seconds": seconds} for one in range(steps // EPOCH)]
    run.folder.mkdir(parents=True, exist_ok=True)
    digests.write_text(run.folder / "history.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def finished(run: Run, error: float = 0.5) -> Finished:
    metrics = {metric.name: error for metric in run.task.measured}
    return Finished(run.label, run.size, run.seed, metrics, parameters=9, seconds=1.0, length=STEPS, tested=60)


def test_a_run_counts_as_long_as_runs_of_its_row_take(experiment, tmp_path):
    assert experiment.task.done(1, experiment.recipe) == EPOCH
    first, second, *others = runs = make_runs(experiment, tmp_path)
    has_steps(first, 2000, 1.0)
    watch = Watch(runs)
    found = watch.standing()
    assert found.share == found.before == pytest.approx(2 / (4 * 6)), "a row that has not begun takes as long"
    has_steps(second, 3000, 3.0)
    with second.locked():
        found = watch.standing()
    assert found.share == pytest.approx((2 + 9) / (3 * 4 + 3 * 12))
    assert found.before == pytest.approx(2 / (3 * 4 + 3 * 12))
    assert found.doing == ["rff-mean, seed 3: step 3,000 of 4,000, loss 0.5"]
    assert found.longest == pytest.approx(12)
    digests.write_json(second.result, asdict(finished(second)))
    with others[0].locked():
        found = watch.standing()
    assert found.share == pytest.approx((2 + 9) / (3 * 4 + 3 * 9)), "one that stopped early"
    assert found.doing == ["rff-max, seed 0: begins"]


def test_a_training_that_is_taken_over_counts_once(experiment, tmp_path):
    drawn = experiment.changed(task=Classification(points=(24, 7)), recipe=Recipe(epochs=4, points=(5, 24)))
    runs = make_runs(drawn, tmp_path)
    assert len(runs) == 12
    for run in runs:
        if run.size == 24 and run.label == "rff-max":
            has_steps(run, 2000, 1.0)
    assert Watch(runs).standing().share == pytest.approx(2 / 4 / 2)
    growing = drawn.changed(recipe=Recipe(epochs=3, points=(5, 5), last_points=(20, 20)))
    runs = make_runs(growing, tmp_path / "growing")
    has_steps(runs[0], 1000, 1.0)
    assert Watch(runs).standing().share == pytest.approx(1 / 7 / 6), "epochs of 5, 10 and 20 points"


def test_a_damaged_history_stops_nothing(experiment, tmp_path):
    runs = make_runs(experiment, tmp_path)
    has_steps(runs[0], 2000, 1.0)
    (runs[0].folder / "history.jsonl").write_text("?")
    has_steps(runs[1], 2000, 1.0)
    assert Watch(runs).standing().share == pytest.approx(2 / (4 * 6))


def test_of_each_seed_the_longest_runs_come_first(experiment, tmp_path):
    models = (Entry("rff-max"), Entry("sab-pma"), Entry("isab4-pma"), Entry("rff-mean"))
    runs = make_runs(experiment.changed(models=models, seeds=(3, 0)), tmp_path)
    found = [(run.seed, run.model) for run in longest_first(experiment.changed(models=models, seeds=(3, 0)), runs)]
    first, second = found[:4], found[4:]
    assert {seed for seed, _ in first} == {3}
    assert [model for _, model in first] == [model for _, model in second]
    assert {model for _, model in first[:2]} == {"sab-pma", "isab4-pma"}
    assert {model for _, model in first[2:]} == {"rff-max", "rff-mean"}


def test_a_seed_is_complete_when_all_its_runs_are_over(experiment, tmp_path):
    runs = make_runs(experiment, tmp_path)
    over = [finished(runs[0]), finished(runs[2]), Failure("rff-mean", None, 0, "the loss became nan")]
    assert complete_seeds(runs, over) == (0,)
    assert complete_seeds(runs, [*over, finished(runs[1])]) == (3, 0)
    assert complete_seeds(runs, []) == ()


@pytest.mark.parametrize("progress", [True, False])
def test_a_table_is_shown_for_each_further_seed_but_the_last(progress, experiment, tmp_path, capsys):
    runs = make_runs(experiment, tmp_path)
    outcomes = (finished(run, error) for run, error in zip(runs, (0.25, 0.5, 0.75, 0.5, 0.25, 0.5), strict=True))
    told = []
    for outcome in watched(experiment, tmp_path, runs, outcomes, progress):
        told.append((outcome.model, outcome.seed, capsys.readouterr().err))
    assert [(model, seed) for model, seed, _ in told] == [(run.label, run.seed) for run in runs]
    shown = [text.strip().splitlines() for _, _, text in told]
    assert [lines[0] if lines else "" for lines in shown] == (
        ["", "first table, preliminary: 1 of 3 seeds", "", "table so far, preliminary: 2 of 3 seeds", "", ""]
        if progress
        else [""] * 6
    )
    if progress:
        assert [line.split()[:2] for line in shown[1][4:]] == [["rff-max", "0.2500"], ["rff-mean", "0.5000"]]
        assert [line.split()[:2] for line in shown[3][4:]] == [["rff-max", "0.5000"], ["rff-mean", "0.5000"]]
        assert "1 seed," in shown[1][1]


def test_there_is_no_table_if_all_runs_failed(experiment, tmp_path, capsys):
    runs = make_runs(experiment, tmp_path)
    outcomes = (Failure(run.label, run.size, run.seed, "the loss became nan") for run in runs)
    assert len(list(watched(experiment, tmp_path, runs, outcomes, True))) == 6
    assert capsys.readouterr().err == ""
