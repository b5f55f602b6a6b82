"""The costs of models in a comparison."""

import pointset
from pointset.comparison.experiment import Entry, Experiment
from pointset.runs.atomic import read_json
from pointset.runs.workers import Workers
from pointset.tasks import create_task, task_recipe
from pointset.zoo.options import ModelOptions


def test_times_say_with_how_many_threads_they_were_taken(tmp_path, monkeypatch):
    """The threads of the experiment, whatever torch uses before and after."""
    monkeypatch.setattr("pointset.comparison.results.machine", lambda: {"cores": 2, "threads": 99})
    experiment = Experiment(
        task=create_task("max-regression"),
        models=(Entry("rff-max"),),
        seeds=(0,),
        model=ModelOptions(dim=16),
        recipe=task_recipe(steps=2),
    )
    pointset.run_experiment(experiment, tmp_path / "out", Workers(1), progress=False, report=False)
    assert read_json(tmp_path / "out" / "costs.json")["machine"] == {"cores": 2, "threads": 1}
