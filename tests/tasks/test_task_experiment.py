"""Experiments on set problems from files: what is read, and what is refused with which words."""

from dataclasses import replace
from pathlib import Path

import pytest

from pointset.comparison.experiment import Entry, Published
from pointset.errors import PointsetError
from pointset.tasks import TaskExperiment, create_task, list_tasks, read_task_experiment, shipped_experiment
from pointset.tasks.experiment import task_recipe
from pointset.zoo.options import ModelOptions

FOLDER = Path(__file__).parents[2] / "scripts" / "experiments" / "tasks"
FILES = sorted(FOLDER.glob("*.toml"))

FILE = """
title = "Two rows"
task = "max-regression"
seeds = [3, 1]
threads = 2
models = ["rFF + max", { name = "SAB + PMA", weights = "sparsemax" }]
[model]
dim = 8
heads = 2
dropout = 0.25
[recipe]
steps = 7
batch_size = 5
clip_norm = "none"
optimizer = "adamw"
[published."SAB + PMA weights=sparsemax"]
MAE = [0.5, 0.25, 4]
"""


def written(folder: Path, text: str = FILE) -> Path:
    (folder / "two.toml").write_text(text)
    return folder / "two.toml"


def test_a_file_says_everything(tmp_path):
    found = read_task_experiment(written(tmp_path))
    assert found == TaskExperiment(
        title="Two rows",
        task="max-regression",
        seeds=(3, 1),
        threads=2,
        models=(Entry("rFF + max"), Entry("SAB + PMA", {"weights": "sparsemax"})),
        model=ModelOptions(dim=8, heads=2, dropout=0.25),
        recipe=task_recipe(steps=7, batch_size=5, optimizer="adamw"),
        published={"SAB + PMA weights=sparsemax": {"MAE": Published(0.5, 0.25, 4)}},
    )
    assert found.labels == ["rFF + max", "SAB + PMA weights=sparsemax"]
    assert found.recipe.clip_norm is None
    assert found.recipe.augment == ()
    assert read_task_experiment(written(tmp_path), seeds=(9,)).seeds == (9,)


def test_what_is_left_out_is_the_papers():
    found = TaskExperiment(task="max-regression")
    assert found.labels == ["rFF + mean", "rFF + sum", "rFF + max", "SAB + PMA"]
    assert found.seeds == (0, 1, 2, 3, 4)
    assert (found.recipe.steps, found.recipe.batch_size, found.recipe.learning_rate) == (20_000, 128, 1e-3)
    assert (found.recipe.optimizer, found.recipe.schedule, found.recipe.warmup) == ("adam", "constant", 0.0)
    assert (found.model.dim, found.model.dropout) == (64, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('task = "max-regression"', 'task = "max-reg"', "no task is called 'max-reg': did you mean max-regression"),
        ('task = "max-regression"', "", 'it names no task: add task = "max-regression"'),
        ("threads = 2", "threads = 0", "threads=0: give at least 1"),
        ("threads = 2", "points = 100", "'points' is unknown: did you mean"),
        ("seeds = [3, 1]", "seeds = [3, 3]", "a seed is given twice: 3, 3"),
        ("seeds = [3, 1]", "seeds = []", "at least one seed"),
        ("seeds = [3, 1]", "seeds = [-1]", "seed must be .* got -1"),
        ("seeds = [3, 1]", 'seeds = "3"', "seeds='3' are no whole numbers"),
        ('"rFF + max"', '"rff-max"', r"max-regression has no row 'rff-max': choose from rFF \+ mean"),
        ('"rFF + max"', '{ name = "rFF + max", heads = 2 }', r"rFF \+ max has no use for heads: leave it out"),
        ('"sparsemax"', '"sparse"', "weights must be .* one of 'softmax', 'sparsemax'"),
        ("steps = 7", "epochs = 7", "a task has no use for epochs in its recipe"),
        ("steps = 7", 'augment = ["scale"]', "a task has no use for augment in its recipe"),
        ("steps = 7", 'steps = "none"', "a task has no epochs: give its recipe steps"),
        ("steps = 7", "steps = 0", "steps must be .* got 0"),
        ("MAE =", "accuracy =", r"has accuracy: max-regression has MAE"),
        ("[0.5, 0.25, 4]", "[0.5, 0.25]", r"\[0.5, 0.25\] is no published figure: give \[mean, standard deviation"),
        ("[0.5, 0.25, 4]", "[0.5, -0.25, 4]", "is no published figure"),
        ("[0.5, 0.25, 4]", "0.5", "is of the wrong type: give"),
        ('PMA weights=sparsemax"]', 'PMA"]', r"published figures of SAB \+ PMA, which is none of the models"),
        ("[model]", '[options]\ndata = "x"\n[model]', "max-regression has no use for data: it has no options"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(old, new, words, tmp_path):
    assert old in FILE
    with pytest.raises(PointsetError, match=words) as caught:
        read_task_experiment(written(tmp_path, FILE.replace(old, new, 1)))
    assert str(caught.value).startswith(f"{tmp_path / 'two.toml'}: ")


def test_published_figures_may_be_negative(tmp_path):
    text = FILE.replace("[0.5, 0.25, 4]", "[-1.5, 0.25, 4]")
    found = read_task_experiment(written(tmp_path, text))
    assert found.published["SAB + PMA weights=sparsemax"]["MAE"].mean == -1.5


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_model_of_every_shipped_experiment_can_be_built(file):
    experiment = read_task_experiment(file)
    assert experiment.title
    for entry in experiment.models:
        small = ModelOptions.from_dict({**entry.options(experiment.model).as_dict(), "dim": 8})
        experiment.problem.model(entry.name, small, seed=0)


@pytest.mark.parametrize("name", list_tasks())
def test_every_task_has_an_experiment_of_its_name(name):
    file = shipped_experiment(name)
    assert file == FOLDER / f"{name}.toml"
    assert read_task_experiment(file).task == name


def test_the_falling_learning_rate_is_the_only_change():
    usual, falling = (read_task_experiment(FOLDER / f"max-regression{end}.toml") for end in ("", "-decay"))
    assert replace(falling, recipe=replace(falling.recipe, schedule="constant"), title=usual.title) == usual


def test_max_regression_as_shipped_is_as_published():
    experiment = read_task_experiment(shipped_experiment("max-regression"))
    usual = TaskExperiment(task="max-regression")
    assert experiment.protocol() == usual.protocol()
    assert (experiment.labels, experiment.seeds) == (usual.labels, usual.seeds)
    assert {label: tuple(figures["MAE"]) for label, figures in experiment.published.items()} == {
        "rFF + mean": (2.133, 0.190, 5),
        "rFF + sum": (1.902, 0.137, 5),
        "rFF + max": (0.1355, 0.0074, 5),
        "SAB + PMA": (0.2085, 0.0127, 5),
    }


def test_tasks_are_found_by_name():
    assert "max-regression" in list_tasks()
    with pytest.raises(PointsetError, match="no task is called 'maximum': did you mean max-regression"):
        create_task("maximum")
    with pytest.raises(PointsetError, match="no task is called 'maximum'"):
        shipped_experiment("maximum")
