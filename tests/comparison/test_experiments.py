"""Experiments from files, the shipped ones too: all entries are used, and wrong ones are errors that name them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import pointset
from pointset.commands.flags import Options, quick_options
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Published
from pointset.comparison.runs import make_runs
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.tasks import MaxRegression, shipped_experiment, task_recipe
from pointset.tasks.classification import Classification
from pointset.tasks.experiments import TASKS, read_experiment
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

WHOLE = """
title = "Pooling, by size"
data = "modelnet40-hdf5"
points = [100, 1000]
seeds = [3, 0]
robustness_seeds = [3]
threads = 2
models = [
    "rff-max",
    { name = "isab4-pma", form = "paper", norm = "none" },
    { name = "isab4-pma", label = "ISAB, pooled seeds", pool_seeds = "mean", layers = "none", dim = 24 },
]

[sets]
normalize = "standardize"
up = "none"

[model]
dim = 16
layers = 3

[recipe]
epochs = 7
clip_norm = "none"
augment = ["scale"]

[published.rff-max]
100 = [0.7951, 0.0166, 5]
5000 = [0.8933, 0.0156, 5]
"""


@pytest.fixture
def read(tmp_path):
    """Read a text as an experiment; if it has no models, one is added."""

    def read_text(text: str, **changes) -> Experiment:
        (tmp_path / "some.toml").write_text(text if "models" in text else 'models = ["rff-max"]\n' + text)
        return read_experiment(tmp_path / "some.toml", **changes)

    return read_text


def test_every_entry_of_a_file_is_used(read):
    found = read(WHOLE)
    assert (found.title, found.task.data, found.threads) == ("Pooling, by size", "modelnet40-hdf5", 2)
    assert (found.task.points, found.seeds, found.task.robustness_seeds) == ((100, 1000), (3, 0), (3,))
    assert found.labels == ["rff-max", "isab4-pma form=paper norm=none", "ISAB, pooled seeds"]
    assert found.task.sets == DataOptions(normalize="standardize")
    assert found.task.sets_of(100) == DataOptions(normalize="standardize", points=100)
    assert found.model == ModelOptions(dim=16, layers=3)
    assert found.recipe == Recipe(epochs=7, clip_norm=None, augment=("scale",))
    assert found.published == {"rff-max": {100: Published(0.7951, 0.0166, 5), 5000: Published(0.8933, 0.0156, 5)}}


def test_a_model_has_the_shared_options_with_its_own_changes(read):
    found = read(WHOLE)
    assert [entry.options(found.model) for entry in found.models] == [
        ModelOptions(dim=16, layers=3),
        ModelOptions(dim=16, layers=3, form="paper", norm="none"),  # one of its choices; no value elsewhere
        ModelOptions(dim=24, layers=None, pool_seeds="mean"),
    ]
    runs = {run.model: run for run in make_runs(found, Path("out"))}
    assert runs["ISAB, pooled seeds"].entry.name == "isab4-pma"
    assert runs["ISAB, pooled seeds"].options == ModelOptions(dim=24, pool_seeds="mean")
    assert runs["rff-max"].options == ModelOptions(dim=16, layers=3)


def test_the_grid_is_seed_by_seed_and_every_run_has_a_folder_of_its_own(read):
    runs = make_runs(read(WHOLE), Path("out"))
    assert [(run.seed, run.points) for run in runs[::3]] == [(3, 100), (3, 1000), (0, 100), (0, 1000)]
    assert [run.model for run in runs[:3]] == read(WHOLE).labels
    assert [not run.trial.is_tested for run in runs] == [True] * 6 + [False] * 6, "robustness is asked for"
    folders = [run.folder for run in runs]
    assert len(set(folders)) == 12
    assert folders[0] == Path("out/runs/rff-max-n100-seed3")
    assert folders[2] == Path("out/runs/ISAB_pooled_seeds-n100-seed3")


@pytest.mark.parametrize(
    ("entry", "label", "slug"),
    [
        ("isab16-max+mean", "isab16-max+mean", "isab16-max+mean"),
        ({"name": "sab-pma4", "dim": 8}, "sab-pma4 dim=8", "sab-pma4_dim=8"),
        ({"name": "rff-max", "label": "naïve / max: 1"}, "naïve / max: 1", "naïve_max_1"),
        ({"name": "rff-max", "label": "../up"}, "../up", ".._up"),
        (Entry("rff-max", {}, "mine"), "mine", "mine"),
    ],
)
def test_labels_say_what_is_different_and_slugs_can_be_folders(entry, label, slug):
    found = Entry.of(entry)
    assert (found.label, found.slug) == (label, slug)
    (run,) = make_runs(Experiment(task=Classification(points=(9,)), models=(found,), seeds=(1,)), Path("out"))
    assert run.folder == Path("out/runs") / f"{slug}-n9-seed1"


def test_the_protocol_is_what_runs_share_and_no_more(read):
    """Further seeds, sizes, models, titles and published values may be added in a folder; other changes may not."""
    one = read(WHOLE)
    changes = 'title = "Other"\npoints = 5\nseeds = 1\nrobustness_seeds = []\nmodels = ["rff-mean"]\n'
    other = read(changes + WHOLE[WHOLE.index("[sets]") : WHOLE.index("[published")], data=one.task.data, threads=2)
    assert other.protocol() == one.protocol()
    assert "points" not in one.protocol()["options"]["sets"]
    for text in ("dim = 16", "epochs = 7", 'normalize = "standardize"', "threads = 2", "modelnet40-hdf5"):
        assert text in WHOLE
        changed = re.sub(r"\d+(?=$)|standardize", lambda old: {"standardize": "none"}.get(old[0], "8"), text)
        changed = changed.replace("hdf5", "c")
        assert read(WHOLE.replace(text, changed)).protocol() != one.protocol(), text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modles = []", ("'modles'", "did you mean models?", "title, task, models")),
        ("[recepie]", ("'recepie'", "recipe?")),
        ("[recipe]\nepoch = 3", ("'epoch'", "Recipe", "epochs, steps")),
        ("[sets]\nnormalise = 'none'", ("'normalise'", "DataOptions", "points, pool_points")),
        ("[sets]\npoints = 100", ("sets.points",)),
        ("sets = 100", ("sets", "100")),
        ("points = '100'", ("points", "('100',)")),
        ("points = [9, 9]", ("size 9 is given twice",)),
        ("points = []", ("at least one set size",)),
        ("seeds = [-1]", ("seed", "-1")),
        ("models = []", ("at least one model and one seed",)),
        ("models = 'rff-max'", ("models", "'rff-max'")),
        ("models = [{ norm = 'none' }]", ("name", "{'norm': 'none'}")),
        ("models = [{ name = 3 }]", ("name", "3")),
        ("models = ['isab16-pam']", ("'isab16-pam'", "isab16-pma")),
        ("models = ['rff-max', { name = 'rff-mean', label = 'rff-max' }]", ("model", "rff-max", "is given twice")),
        ("models = [{ name = 'rff-max', dims = 8 }]", ("'dims'", "ModelOptions")),
        ("models = [{ name = 'rff-max', form = 'paper' }]", ("rff-max", "form", "dim")),
        ("models = [{ name = 'rff-max', label = 'a b' }, { name = 'rff-mean', label = 'A/b' }]", ("'a b'", "'A/b'")),
        ("published = 0.8", ("published", "0.8")),
        ("[published.rff-mean]\n100 = [0.8, 0.1, 5]", ("published.rff-mean",)),
        ("[published.rff-max]\nmany = [0.8, 0.1, 5]", ("published.rff-max.many",)),
        ("[published.rff-max]\n100 = [0.8, 0.1]", ("[mean, standard deviation, runs]", "[0.8, 0.1]")),
        ("[published.rff-max]\n100 = [79.5, 1.7, 5]", ("published.rff-max.100", "79.5", "from 0 to 1")),
        ("[published.rff-max]\n100 = [0.8, 0.1, 0]", ("runs", "published.rff-max.100")),
        ('task = "maxima"', ("'maxima'", "max-regression")),
        ('task = "counting"\nmodels = []\npoints = 3', ("'points'", "options")),
        ("points = [1, 2", ("not a TOML file",)),
        ("points = 5\n[options]\npoints = 6", ("'points'", "both inside and outside of [options]")),
    ],
)
def test_wrong_entries_are_refused_and_the_file_is_named(text, words, read):
    with pytest.raises(PointsetError) as raised:
        read(text)
    assert all(word in str(raised.value) for word in (*words, "some.toml"))


def test_a_broken_file_of_parts_is_no_fault_of_the_experiment(read, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.setenv("POINTSET_PARTS", str(tmp_path / "broken.py"))
    with pytest.raises(PointsetError, match=r"^POINTSET_PARTS names .*broken\.py, which cannot be imported"):
        read('models = ["rff-mine"]')


def test_a_file_must_be_text(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PointsetError, match=r"binary\.toml is not a TOML file"):
        read_experiment(tmp_path / "binary.toml")
    with pytest.raises(PointsetError, match=f"{tmp_path.name}: is a folder"):
        read_experiment(tmp_path)


def compared(models=("rff-max",), **changes):
    return lambda out: pointset.compare(models, out=out, **changes)


def published(name: str, *values: float):
    row = {"rFF + max": {name: Published(*values)}}
    return lambda _: Experiment(task=MaxRegression(), published=row)


def with_recipe(**changes):
    return lambda _: Experiment(task=MaxRegression(), recipe=task_recipe(**changes))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (compared("two.toml"), "list of names.*two.toml"),
        (compared(seeds=3), r"seeds must be a list of seeds, got 3: three seeds are \(0, 1, 2\)"),
        (compared(data=[[0.0, 0.0, 0.0]]), "data must be the name of a dataset or a folder, got list: save clouds"),
        (compared(workers="2"), "workers must be .*, got '2'"),
        (with_recipe(epochs=7), "the recipe of a set problem has no epochs"),
        (with_recipe(augment=("scale",)), "the recipe of a set problem has no augment"),
        (with_recipe(steps="none"), "max-regression is trained by steps, not epochs: give steps in its recipe"),
        (published("accuracy", 0.5, 0.25, 4), r"rFF \+ max.accuracy is not of a metric .*: choose from MAE"),
        (published("MAE", 0.5, -0.25, 4), r"rFF \+ max.MAE must be .*deviation=-0.25"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(make, words, tmp_path):
    with pytest.raises(PointsetError, match=words):
        make(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_published_numbers_may_be_negative():
    assert published("MAE", -1.5, 0.25, 4)(None).published == {"rFF + max": {"MAE": Published(-1.5, 0.25, 4)}}


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
