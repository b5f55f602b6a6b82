"""Experiments from files, from flags and from folders; mistakes are found before anything is trained."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import fail, succeed
from toy import write, write_shapes

import pointset
from pointset import DataOptions, ModelOptions, PointsetError, Recipe
from pointset.commands.flags import Chosen, quick_options
from pointset.comparison import Comparison, run_experiment
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Published
from pointset.comparison.runs import claim_folder, make_runs
from pointset.data.cache import build
from pointset.nn import AttentionOptions
from pointset.tasks import MaxRegression, bundled_experiment, classification, experiments, task_recipe
from pointset.tasks.bundled import Options
from pointset.tasks.classification import Classification
from pointset.tasks.experiments import TASKS, make_task, read_experiment

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
up = "auto"

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
    assert (found.title, found.task.options["data"], found.threads) == ("Pooling, by size", "modelnet40-hdf5", 2)
    assert (found.task.sizes, found.seeds, found.task.options["robustness_seeds"]) == ((100, 1000), (3, 0), [3])
    assert found.labels == ["rff-max", "isab4-pma form=paper norm=none", "ISAB, pooled seeds"]
    assert DataOptions.from_dict(found.task.options["sets"]) == DataOptions(normalize="standardize")
    assert found.model == ModelOptions(dim=16, layers=3)
    assert found.recipe == Recipe(epochs=7, clip_norm=None, augment=("scale",))
    assert found.published == {"rff-max": {100: Published(0.7951, 0.0166, 5), 5000: Published(0.8933, 0.0156, 5)}}


def test_a_model_has_the_shared_options_with_its_own_changes(read):
    found = read(WHOLE)
    paper = AttentionOptions(form="paper", norm="none")  # here "none" is a choice; it is no value elsewhere
    assert [entry.options(found.model) for entry in found.models] == [
        ModelOptions(dim=16, layers=3),
        ModelOptions(dim=16, layers=3, attention=paper),
        ModelOptions(dim=24, layers=None, pool_seeds="mean"),
    ]


def test_the_grid_is_seed_by_seed_and_every_run_has_a_folder_of_its_own(read):
    runs = make_runs(read(WHOLE), Path("out"))
    assert [(run.seed, run.points) for run in runs[::3]] == [(3, 100), (3, 1000), (0, 100), (0, 1000)]
    assert [run.model for run in runs[:3]] == read(WHOLE).labels
    asked = [not run.experiment.task.is_tested(run.trial) for run in runs]
    assert asked == [True] * 6 + [False] * 6, "robustness, of seed 3"
    assert len({run.folder for run in runs}) == 12


@pytest.mark.parametrize(
    ("entry", "label", "slug"),
    [
        ({"name": "isab16-max+mean", "dim": 8}, "isab16-max+mean dim=8", "isab16-max+mean_dim=8"),
        ({"name": "rff-max", "label": "../naïve / max: 1"}, "../naïve / max: 1", ".._naïve_max_1"),
        (Entry("rff-max", {}, "mine"), "mine", "mine"),
    ],
)
def test_labels_say_what_is_different_and_slugs_can_be_folders(entry, label, slug):
    found = Entry.of(entry)
    assert (found.label, found.slug) == (label, slug)
    (run,) = make_runs(Experiment.of(Classification(points=(9,)).task, [found], seeds=(1,)), Path("out"))
    assert run.folder == Path("out/runs") / f"{slug}-n9-seed1"


def test_the_protocol_is_what_runs_share_and_no_more(read):
    """Further seeds, sizes, models, titles and published values may be added in a folder; other changes may not."""
    one = read(WHOLE)
    changes = 'title = "Other"\npoints = 5\nseeds = 1\nrobustness_seeds = []\nmodels = ["rff-mean"]\n'
    other = read(
        changes + WHOLE[WHOLE.index("[sets]") : WHOLE.index("[published")], data=one.task.options["data"], threads=2
    )
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
        ("[recepie]", ("'recepie'", "recipe?")),
        ("[recipe]\nepoch = 3", ("'epoch'", "Recipe", "epochs, steps")),
        ("[sets]\nnormalise = 'none'", ("'normalise'", "DataOptions", "points, cache_points")),
        ("[sets]\npoints = 100", ("sets.points",)),
        ("sets = 100", ("sets", "100")),
        ("points = '100'", ("points", "('100',)")),
        ("points = [9, 9]", ("size 9 is given twice",)),
        ("points = []", ("at least one set size",)),
        ("models = []", ("at least one model and one seed",)),
        ("models = [{ norm = 'none' }]", ("name", "{'norm': 'none'}")),
        ("models = [{ name = 3 }]", ("name", "3")),
        ("models = ['isab16-pam']", ("'isab16-pam'", "isab16-pma")),
        ("models = ['rff-max', { name = 'rff-mean', label = 'rff-max' }]", ("model", "rff-max", "is given twice")),
        ("models = [{ name = 'rff-max', dims = 8 }]", ("'dims'", "ModelOptions")),
        ("models = [{ name = 'rff-max', form = 'paper' }]", ("rff-max", "form", "dim")),
        ("models = [{ name = 'rff-max', label = 'a b' }, { name = 'rff-mean', label = 'A/b' }]", ("'a b'", "'A/b'")),
        ("[published.rff-mean]\n100 = [0.8, 0.1, 5]", ("published.rff-mean",)),
        ("[published.rff-max]\nmany = [0.8, 0.1, 5]", ("published.rff-max.many",)),
        ("published = 0.8", ("published", "0.8")),
        ("[published.rff-max]\n100 = [0.8, 0.1]", ("[mean, standard deviation, number of runs]", "[0.8, 0.1]")),
        ("[published.rff-max]\n100 = [79.5, 1.7, 5]", ("published.rff-max.100", "79.5", "from 0 to 1")),
        ('task = "maxima"', ("'maxima'", "max-regression")),
        ('task = "counting"\nmodels = []\npoints = 3', ("'points'", "models")),
    ],
)
def test_wrong_entries_are_refused_and_the_file_is_named(text, words, read):
    with pytest.raises(PointsetError) as raised:
        read(text)
    assert all(word in str(raised.value) for word in (*words, "some.toml"))


def test_a_broken_file_of_parts_is_no_fault_of_the_experiment(read, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("1 / 0")
    monkeypatch.setenv("POINTSET_MODULES", str(tmp_path / "broken.py"))
    with pytest.raises(
        PointsetError, match=r"^POINTSET_MODULES names .*broken\.py, which cannot be imported: division"
    ):
        read('models = ["rff-mine"]')


def compared(models=("rff-max",), **changes):
    return lambda out: pointset.compare(models, out=out, **changes)


def published(name: str, *values: float):
    row = {"rFF + max": {name: Published(*values)}}
    return lambda _: Experiment.of(MaxRegression().task, published=row)


def with_recipe(**changes):
    def make(out):
        return run_experiment(Experiment.of(MaxRegression().task, recipe=task_recipe(**changes)), out)

    return make


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda out: read_experiment(out.parent), "is a folder"),
        (lambda out: read_experiment(write(out.with_suffix(".toml"), b"\xff\xfe")), r"out\.toml is not a TOML file"),
        (compared("two.toml"), "list of names.*two.toml"),
        (compared(seeds=3), r"seeds must be a list of seeds, got 3: three seeds are \(0, 1, 2\)"),
        (compared(data=[[0.0, 0.0, 0.0]]), "data must be the name of a dataset or a folder, got list: save clouds"),
        (compared(workers="2"), "workers must be .*, got '2'"),
        (with_recipe(epochs=7), "the recipe of a set problem has no epochs"),
        (with_recipe(augment=("scale",)), "the recipe of a set problem has no augment"),
        (with_recipe(steps="none"), "max-regression is trained by steps, not epochs: give steps in its recipe"),
        (published("accuracy", 0.5, 0.25, 4), r"rFF \+ max.accuracy is not a metric .*: choose from MAE"),
        (published("MAE", 0.5, -0.25, 4), r"rFF \+ max.MAE must be .*deviation=-0.25"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(make, words, tmp_path):
    with pytest.raises(PointsetError, match=words):
        make(tmp_path / "out")
    assert not (tmp_path / "out").exists()


FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("tasks/*.toml")])


@pytest.mark.slow
def test_every_model_of_every_file_can_be_built():
    """Each at width 8, and once if it is in several files."""
    built = set()
    for experiment in map(read_experiment, FILES):
        assert experiment.title
        task = experiment.task if None in experiment.task.sizes else experiment.task.changed(data="shapes10")
        for entry in experiment.models:
            small = ModelOptions.from_dict({**entry.options(experiment.model).as_dict(), "dim": 8})
            if (key := (task.name, entry.name, repr(small))) not in built:
                assert task.build(entry.name, small, 0, task.sizes[0])
                built.add(key)
    assert len(built) > 100


def test_set_problems_have_experiments_of_their_names_and_max_regression_is_as_published():
    for name in [*TASKS][1:]:
        assert bundled_experiment(name) == FOLDER / "tasks" / f"{name}.toml"
        assert read_experiment(bundled_experiment(name)).task == make_task(name)
    experiment, usual = read_experiment(bundled_experiment("max-regression")), Experiment.of(MaxRegression().task)
    assert experiment.protocol() == usual.protocol()
    assert (experiment.labels, experiment.seeds) == (usual.labels, (0, 1, 2, 3, 4))
    assert experiment.published.keys() == {*usual.labels}


def test_the_flags_of_the_main_job_begin_where_its_file_is():
    assert bundled_experiment("quick") == FOLDER / "quick.toml"
    experiment = read_experiment(FOLDER / "quick.toml")
    sets, model, recipe = quick_options("shapes10").changed({}, {}, {})
    assert sets == DataOptions.from_dict({**experiment.task.options["sets"], "points": 128})
    assert (model, recipe) == (experiment.model, experiment.recipe)
    assert (model.dim, recipe.epochs, experiment.task.sizes) == (64, 40, (128,))


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
    options = quick_options(data).changed({}, {}, flags)
    assert options.recipe.train_points == points


def test_flags_replace_what_an_experiment_has_even_by_the_defaults_of_the_options():
    options = ModelOptions(dim=256, pool_seeds="mean")
    given = frozenset({"normalize", "points", "dim", "pool-seeds", "learning-rate"})
    chosen = Chosen.by(given, DataOptions(normalize="principal-axes", points=100), options, Recipe(learning_rate=1e-3))
    sets, model, recipe = quick_options("path/to/parts").changed(*chosen)
    assert (sets.normalize, sets.points) == ("principal-axes", 100)
    assert (model.dim, model.pool_seeds, model.dropout) == (256, "mean", 0.2)
    assert (recipe.learning_rate, recipe.epochs) == (1e-3, 40)
    own = Options(DataOptions(), ModelOptions(), Recipe(train_points=(64, 256)))
    assert own.changed(*chosen).recipe.train_points == (64, 100), "no larger than the evaluated sets"


@pytest.fixture
def started(monkeypatch):
    """The experiments that the command and the function `compare` would run."""
    found: list[Experiment] = []

    def start(experiment: Experiment, *_: object, **__: object) -> Comparison:
        found.append(experiment)
        raise PointsetError("not run")

    monkeypatch.setattr(experiments, "run_experiment", start)
    monkeypatch.setattr("pointset.comparison.comparing.run_experiment", start)
    return found


@pytest.mark.parametrize("data", ["shapes10", "parts"])
@pytest.mark.parametrize("models", [None, ["rff-max", "rff-pma"]])
def test_the_command_and_the_function_have_the_same_defaults(data, models, started, capsys):
    names = ["--models", *models] if models else []
    fail(capsys, "compare", *names, "--data", data, "--points", "128", "--epochs", "15", "--seeds", "0")
    with pytest.raises(PointsetError, match="not run"):
        pointset.compare(models, data, points=128, recipe={"epochs": 15}, seeds=[0])
    command, function = started
    assert command == function
    assert (function.model.dim, function.recipe.epochs, function.task.sizes) == (64, 15, (128,))


def test_a_folder_of_a_comparison_is_read_with_its_own_options(started, capsys, tmp_path):
    whole = experiments.default_experiment("parts", ["rff-max"], points=(32,), model={"dim": 16}, seeds=(0, 4))
    claim_folder(whole, tmp_path, {32: {}})
    assert read_experiment(tmp_path).as_dict() == whole.as_dict()
    for words in ((tmp_path,), ("--out", tmp_path)):
        fail(capsys, "compare", *words, "-o", tmp_path / "table.tex")
        assert started.pop().as_dict() == whole.as_dict()
    fail(capsys, "compare", "--out", tmp_path, "--seeds", "0", "1", "4")
    assert started.pop().as_dict() == whole.changed(seeds=(0, 1, 4)).as_dict()
    with pytest.raises(PointsetError, match=r"holds another comparison .*: give another folder$"):
        claim_folder(whole.changed(recipe=Recipe()), tmp_path, {})  # no advice to delete results
    problem = Experiment.of(MaxRegression().task, ["rff-max"], published={"rff-max": {"MAE": (1.0, 0.1, 5)}})
    claim_folder(problem, tmp_path / "problem", {None: {}})
    assert read_experiment(tmp_path / "problem").as_dict() == problem.as_dict()


def test_a_comparison_loads_its_sets_and_checks_its_experiment_once(capsys, tmp_path, monkeypatch):
    data, counts = write_shapes(tmp_path / "data", shapes=4), Counter[str]()

    def counted(module: Any, name: str) -> None:
        function = getattr(module, name)

        def count(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(module, name, count)

    pointset.load_dataset(data, points=8)
    for module, name in ((classification, "load_split"), (build, "read_manifest"), (Experiment, "__post_init__")):
        counted(module, name)
    grid = ("--models", "rff-max", "rff-mean", "--seeds", "0", "1", "--epochs", "1", "--workers", "1")
    sizes = ("--points", "16", "--dim", "8", "--train-points", "8", "8", "--min-steps", "1")
    succeed(capsys, "compare", "--data", data, *grid, *sizes, "--out", tmp_path / "out")
    # A manifest that was written in this process is not parsed.
    assert counts == {"load_split": 2, "read_manifest": 1, "__post_init__": 1}
