"""One training for several tested sizes: bitwise equal to separate trainings."""

import json
from dataclasses import replace

import pytest
import toy

import pointset
from pointset.comparison.comparing import run_one
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training
from pointset.training.recipe import Recipe

RECIPE = Recipe(epochs=1, batch_size=32, train_points=(8, 16))


@pytest.fixture
def compare(classifiers, monkeypatch):
    """Compare one model at two sizes, or others, and return the folders of its runs and the sizes that it trained."""
    trained, epoch = [], Training._epoch

    def noted(self, *arguments):
        trained.append(self.objective.train.size)
        return epoch(self, *arguments)

    def run(out, recipe=RECIPE, points=(12, 24)):
        trained.clear()
        experiment = classifiers("rff-max", points=points, recipe=recipe)
        return toy.compare(experiment, out).runs, list(trained)

    monkeypatch.setattr(Training, "_epoch", noted)
    monkeypatch.setattr("pointset.comparison.comparing.run_all", lambda runs, workers: map(run_one, runs))
    return run


def test_one_training_is_used_for_every_size(compare, tmp_path):
    (_, copied), trained = compare(tmp_path / "both")
    (alone,), trained_alone = compare(tmp_path / "alone", points=(24,))
    assert (trained, trained_alone) == ([12], [24])
    assert toy.same_weights(*(pointset.load_run(run.folder)[0] for run in (copied, alone)))
    assert copied.metrics == alone.metrics
    assert RunFolder(copied.folder).description()["data"]["points"] == 24


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(epochs=1, batch_size=32),
        Recipe(epochs=1, train_points=(8, 16), validation=0.2, patience=2),
    ],
)
def test_each_size_is_trained_if_the_recipe_depends_on_it(recipe, compare, tmp_path):
    assert compare(tmp_path, recipe)[1] == [12, 24]


def test_validation_results_of_another_size_are_not_copied(compare, tmp_path):
    runs, trained = compare(tmp_path, replace(RECIPE, validation=0.2))
    assert trained == [12]
    first, second = (json.loads((run.folder / "history.jsonl").read_text()).keys() for run in runs)
    assert first - second == {"validation_accuracy"}
