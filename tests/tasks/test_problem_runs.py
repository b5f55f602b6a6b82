"""Comparisons of set problems: blocks of steps instead of epochs, reports, resumed runs, other processes."""

import json
import pickle
import re

import pytest
import toy

from pointset import ModelOptions
from pointset.comparison import Comparison
from pointset.comparison.comparing import RESULT_FILES
from pointset.comparison.experiment import Experiment
from pointset.comparison.runs import make_runs
from pointset.nn import AttentionOptions
from pointset.tasks import experiments
from pointset.tasks.max_regression import MaxRegression
from pointset.tasks.set_problem import task_recipe
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training


class Short(MaxRegression):
    """Checkpoints after every 4 steps."""

    block = 4


def tiny(*models: str | dict, steps: int = 10, **changes) -> Experiment:
    experiment = Experiment.of(
        Short().task,
        models or ("rFF + max", "isab4-pma"),
        seeds=(0,),
        model=ModelOptions(dim=8, attention=AttentionOptions(heads=2), dropout=0.25),
        recipe=task_recipe(steps=steps, batch_size=6),
    )
    return experiment.changed(**changes)


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Comparison:
    return toy.compare(tiny(seeds=(0, 3)), tmp_path_factory.mktemp("done"), report=True)


@pytest.mark.slow
def test_a_report_has_pairs_costs_and_curves(done):
    assert all((done.folder / name).stat().st_size for name in RESULT_FILES)
    header, first = (done.folder / "results.csv").read_text().splitlines()[:2]
    assert header == "model,seed,MAE,parameters,seconds,steps,sets"
    assert first.split(",")[2] == str(done.runs[0].metrics["MAE"])
    assert first.split(",")[-2:] == ["10", "10000"]
    saved = json.loads((done.folder / "results.json").read_text())
    assert saved["configuration"]["task"] == "max-regression"
    assert len(saved["pairs"]["all"]) == 1
    text = (done.folder / "report.html").read_text()
    assert "Max regression, 2 seeds, 10 steps of 6 sets, width 8; last step, mean ±" in text
    titles = "Significant differences|MAE against cost|Learning curves|How to repeat and cite"
    assert "|".join(re.findall("<h2>(.*)</h2>", text)) == titles
    assert "crossed analysis of variance" in text
    assert {path.stem for path in done.folder.glob("figures/*.svg")} == {"learning-curves", "matrix", "pareto"}
    assert all(row.cost.multiply_adds > 0 and row.cost.latency_ms > 0 for row in done.rows)


@pytest.mark.slow
def test_metrics_are_those_of_the_saved_model(done):
    model = done.model("isab4-pma", 3)
    assert not model.training
    assert Short().measure(model, Short().test_sets()) == done.runs[-1].metrics


@pytest.mark.slow
def test_a_run_killed_within_a_block_of_steps_resumes_to_the_same_bits(done, tmp_path, monkeypatch):
    """With dropout, whose random numbers depend on the step, and Adam, whose moments must be restored."""
    experiment = tiny("isab4-pma")
    drawn: list[int] = []
    draw = Short.draw

    def until_the_seventh(self, count, generator):
        drawn.append(count)
        if len(drawn) == 7:
            raise KeyboardInterrupt
        return draw(self, count, generator)

    with monkeypatch.context() as patch:
        patch.setattr(Short, "draw", until_the_seventh)
        with pytest.raises(KeyboardInterrupt):
            toy.compare(experiment, tmp_path)
    drawn.clear()
    monkeypatch.setattr(Short, "draw", lambda *given: drawn.append(1) or draw(*given))
    resumed = toy.compare(experiment, tmp_path)
    assert len(drawn) == 6, "the four steps of the first block are not done again"
    once, again = done.run("isab4-pma", 0), resumed.run("isab4-pma", 0)
    first, second = (toy.numbers(RunFolder(one.folder).history()) for one in (once, again))
    assert first == second
    assert toy.same_weights(done.model("isab4-pma", 0), resumed.model("isab4-pma", 0))
    assert again.metrics == once.metrics


@pytest.mark.slow
def test_models_get_the_same_sets_and_seeds_get_different_ones(tmp_path, monkeypatch):
    seen: dict[Training, list[float]] = {}
    step = Training._backward

    def backward(self, batch):
        seen.setdefault(self, []).append(float(batch.X.sum()))
        return step(self, batch)

    monkeypatch.setattr(Training, "_backward", backward)
    toy.compare(tiny(seeds=(0, 1), steps=3), tmp_path)
    first, second, third, fourth = seen.values()  # seeds outermost
    assert first == second
    assert third == fourth
    assert not set(first) & set(third)
    assert len(set(first)) == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(experiments.TASKS.keys() - {"classification"}))
def test_runs_of_every_task_travel_without_their_data(name, tmp_path):
    task = experiments.make_task(name)
    task.prepare(None, task.recipe(), False)
    (one,) = make_runs(Experiment.of(task, ["rFF + mean"], seeds=(0,)), tmp_path)
    travelling = pickle.dumps(one)
    assert len(travelling) < 5_000
    assert pickle.loads(travelling) == one
