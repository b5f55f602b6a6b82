"""The experiments in scripts/experiments can be read, and say what they are said to say."""

from dataclasses import replace
from pathlib import Path

import pytest

from pointset.commands.comparing import MAIN_JOB
from pointset.comparison.experiment import Entry, Experiment, read_experiment
from pointset.comparison.quick import QuickData, QuickModel, QuickRecipe
from pointset.zoo.models import create_model

FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
FILES = sorted(FOLDER.glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_model_of_every_file_can_be_built(file):
    experiment = read_experiment(file)
    assert experiment.title
    for entry in experiment.models:
        create_model(entry.name, classes=3, **{**entry.options(experiment.model).as_dict(), "dim": 8})


def test_quick_is_the_main_job():
    options = {"sets": QuickData(), "model": QuickModel(), "recipe": QuickRecipe()}
    main_job = Experiment(models=tuple(Entry(name) for name in MAIN_JOB), points=(128,), **options)
    quick = read_experiment(FOLDER / "quick.toml")
    assert quick.protocol() == main_job.protocol()
    assert (quick.models, quick.points, quick.seeds) == (main_job.models, main_job.points, main_job.seeds)


def test_the_short_table_4_differs_from_the_long_one_in_what_it_says():
    long, short = (read_experiment(FOLDER / f"set_transformer_table4{end}.toml") for end in ("", "_100"))
    assert (short.models, short.seeds, short.model) == (long.models, long.seeds, long.model)
    shortened = replace(long.recipe, epochs=30, step_every=1540, precision="bfloat16")
    assert short.recipe == shortened
    assert {label: by_size[100] for label, by_size in long.published.items()} == {
        label: by_size[100] for label, by_size in short.published.items()
    }


def test_poolings_share_one_encoder():
    experiment = read_experiment(FOLDER / "pooling.toml")
    assert {entry.name.split("-", 1)[0] for entry in experiment.models} == {"isab16"}
    assert len(experiment.models) == 12
