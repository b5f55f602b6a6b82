"""The experiments in scripts/experiments can be read, and have the documented content."""

from dataclasses import replace
from pathlib import Path

import pytest

from pointset.commands.flags import Options, quick_options
from pointset.comparison.experiment import Experiment
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.tasks import MaxRegression, shipped_experiment
from pointset.tasks.experiments import TASKS, read_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("tasks/*.toml")])


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_model_of_every_file_can_be_built(file):
    experiment = read_experiment(file)
    assert experiment.title
    task = experiment.task if None in experiment.task.facts.sizes else replace(experiment.task, data="shapes10")
    for entry in experiment.models:
        small = ModelOptions.from_dict({**entry.options(experiment.model).as_dict(), "dim": 8})
        assert task.build(entry.name, small, 0, task.facts.sizes[0])


@pytest.mark.parametrize("name", [*TASKS][1:])
def test_every_set_problem_has_an_experiment_of_its_name(name):
    file = shipped_experiment(name)
    assert file == FOLDER / "tasks" / f"{name}.toml"
    assert read_experiment(file).task == TASKS[name]()
    with pytest.raises(PointsetError, match=f"no task is called '{name}s': did you mean {name}"):
        shipped_experiment(f"{name}s")


NO_FLAGS = Options(DataOptions(), ModelOptions(), Recipe())


def test_the_flags_of_the_main_job_begin_where_its_file_is():
    assert shipped_experiment("quick") == FOLDER / "quick.toml"
    experiment = read_experiment(FOLDER / "quick.toml")
    sets, model, recipe = quick_options("shapes10").changed(NO_FLAGS, frozenset())
    assert sets == experiment.task.sets_of(128)
    assert (model, recipe) == (experiment.model, experiment.recipe)
    assert (model.dim, recipe.epochs, experiment.task.points) == (64, 40, (128,))


@pytest.mark.parametrize(
    ("data", "flags", "points"),
    [
        ("shapes10", {"epochs": 3}, (48, 48)),
        ("shapes10", {"train_points": (16, 32)}, (16, 32)),
        ("path/to/parts", {}, None),
        ("path/to/parts", {"train_points": (16, 32)}, (16, 32)),
    ],
)
def test_trainings_see_fewer_points_on_the_files_own_data_alone(data, flags, points):
    given = frozenset(name.replace("_", "-") for name in flags)
    options = quick_options(data).changed(NO_FLAGS._replace(recipe=Recipe(**flags)), given)
    assert options.recipe.train_points == points


def test_flags_replace_what_an_experiment_has_even_by_the_defaults_of_the_options():
    flags = Options(DataOptions(pose="any"), ModelOptions(dim=256, pool_seeds="mean"), Recipe(learning_rate=1e-3))
    given = frozenset({"pose", "dim", "pool-seeds", "learning-rate"})
    sets, model, recipe = quick_options("path/to/parts").changed(flags, given)
    assert (sets.normalize, sets.points) == ("principal-axes", 128)
    assert (model.dim, model.pool_seeds, model.dropout) == (256, "mean", 0.2)
    assert (recipe.learning_rate, recipe.epochs) == (1e-3, 40)


def test_training_sets_are_no_larger_than_the_evaluated_ones():
    own = Options(DataOptions(), ModelOptions(), Recipe(train_points=(64, 256)))
    flags = NO_FLAGS._replace(sets=DataOptions(points=100))
    assert own.changed(flags, frozenset({"points"})).recipe.train_points == (64, 100)


def test_max_regression_as_shipped_is_as_published():
    experiment = read_experiment(shipped_experiment("max-regression"))
    usual = Experiment(task=MaxRegression())
    assert experiment.protocol() == usual.protocol()
    assert (experiment.labels, experiment.seeds) == (usual.labels, (0, 1, 2, 3, 4))
    assert experiment.published.keys() == {*usual.labels}
