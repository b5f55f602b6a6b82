"""One training for several tested sizes: bitwise equal to separate trainings."""

import json
from dataclasses import replace

import pytest
from safetensors.torch import load_file

import pointset
from pointset.comparison.comparing import estimate, run_one
from pointset.comparison.experiment import Entry, Experiment
from pointset.data.options import DataOptions
from pointset.tasks.classification import Classification
from pointset.training.loop import Training
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

RECIPE = Recipe(epochs=1, batch_size=32, train_points=(8, 16))


def compare(data, out, sizes, recipe=RECIPE):
    return pointset.compare(
        ["rff-max"],
        data,
        out=out,
        points=sizes,
        seeds=[0],
        workers=1,
        data_options=DataOptions(),
        model_options=ModelOptions(dim=8),
        recipe=recipe,
        progress=False,
        report=False,
    )


@pytest.fixture
def trainings(monkeypatch):
    """The sizes of tested sets for which a model was trained."""
    found, epoch = [], Training._epoch

    def noted(self, *arguments):
        found.append(self.objective.train.size)
        return epoch(self, *arguments)

    monkeypatch.setattr(Training, "_epoch", noted)
    monkeypatch.setattr("pointset.comparison.comparing.run_all", lambda runs, workers: map(run_one, runs))
    return found


def test_one_training_is_used_for_every_size(clouds_folder, tmp_path, trainings):
    both = compare(clouds_folder, tmp_path / "both", [12, 24])
    assert trainings == [12]
    alone = compare(clouds_folder, tmp_path / "alone", [24])
    assert trainings == [12, 24]
    taken, own = (folder / "runs/rff-max-n24-seed0" for folder in (tmp_path / "both", tmp_path / "alone"))
    weights, others = (load_file(folder / "model.safetensors") for folder in (taken, own))
    assert all(weights[name].equal(others[name]) for name in others)
    assert both.runs[1].metrics == alone.runs[0].metrics
    assert pointset.load_run(taken)[1]["data"]["points"] == 24


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(epochs=1, batch_size=32),
        Recipe(epochs=1, train_points=(8, 16), validation=0.2, patience=2),
    ],
)
def test_each_size_is_trained_if_the_recipe_depends_on_it(recipe, clouds_folder, tmp_path, trainings):
    compare(clouds_folder, tmp_path, [12, 24], recipe)
    assert trainings == [12, 24]


def test_a_copied_training_takes_no_time(clouds_folder, tmp_path):
    task = Classification(data=str(clouds_folder), points=(12, 24))
    experiment = Experiment(task=task, models=(Entry("rff-max"),), seeds=(0,), model=ModelOptions(dim=8), recipe=RECIPE)
    first, second = estimate(experiment, tmp_path)
    assert first["seconds"] > 0
    assert (second["runs"], second["seconds"]) == (1, 0.0)


def test_validation_results_of_another_size_are_not_copied(clouds_folder, tmp_path, trainings):
    compare(clouds_folder, tmp_path, [12, 24], replace(RECIPE, validation=0.2))
    assert trainings == [12]
    told = [
        json.loads((tmp_path / f"runs/rff-max-n{size}-seed0/history.jsonl").read_text()).keys() for size in (12, 24)
    ]
    assert told[0] - told[1] == {"validation_accuracy"}
