"""Experiments from files, of which all entries are used; and tables of runs and pairs that are made by hand."""

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import fail, succeed
from toy import write_shapes

import pointset
from pointset import DataOptions, ModelOptions, PointsetError, Recipe
from pointset.commands.flags import Chosen, quick_options
from pointset.comparison import Comparison, run_experiment
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Metric, Published, Row
from pointset.comparison.ranking import NOT_SIGNIFICANT, ModelRow, Pair, Ranking
from pointset.comparison.runs import FinishedRun, Run, claim_folder, make_runs
from pointset.comparison.statistics import Interval
from pointset.comparison.tables import as_latex, format_table, make_cells
from pointset.data.cache import build
from pointset.evaluation.costs import Cost
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
    assert [entry.options(found.model) for entry in found.models] == [
        ModelOptions(dim=16, layers=3),
        ModelOptions(
            dim=16, layers=3, attention=AttentionOptions(form="paper", norm="none")
        ),  # one of its choices; no value elsewhere
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
    assert [not run.experiment.task.is_tested(run.trial) for run in runs] == [True] * 6 + [False] * 6, (
        "robustness is asked for"
    )
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
        ("[published.rff-max]\n100 = [0.8, 0.1]", ("[mean, standard deviation, runs]", "[0.8, 0.1]")),
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


def test_a_file_must_be_text(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for path, words in ((tmp_path / "binary.toml", r"binary\.toml is not a TOML file"), (tmp_path, "is a folder")):
        with pytest.raises(PointsetError, match=words):
            read_experiment(path)


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


FOLDER = Path(__file__).parents[2] / "scripts" / "experiments"
FILES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("tasks/*.toml")])


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_model_of_every_file_can_be_built(file):
    experiment = read_experiment(file)
    assert experiment.title
    task = experiment.task if None in experiment.task.sizes else experiment.task.changed(data="shapes10")
    for entry in experiment.models:
        small = ModelOptions.from_dict({**entry.options(experiment.model).as_dict(), "dim": 8})
        assert task.build(entry.name, small, 0, task.sizes[0])


@pytest.mark.parametrize("name", [*TASKS][1:])
def test_every_set_problem_has_an_experiment_of_its_name(name):
    file = bundled_experiment(name)
    assert file == FOLDER / "tasks" / f"{name}.toml"
    assert read_experiment(file).task == make_task(name)


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


def test_max_regression_as_shipped_is_as_published():
    experiment = read_experiment(bundled_experiment("max-regression"))
    usual = Experiment.of(MaxRegression().task)
    assert experiment.protocol() == usual.protocol()
    assert (experiment.labels, experiment.seeds) == (usual.labels, (0, 1, 2, 3, 4))
    assert experiment.published.keys() == {*usual.labels}


METRICS = Classification().task.metrics[:-1]
COST = Cost(multiply_adds=12_340_000, latency_ms=0.456)


def finished(model: str, points: int | None, seed: int, *result) -> Run:
    return Run(None, Entry("rff-max", {}, model), points, seed, Path(), result=FinishedRun(*result))


def run(model: str, accuracy: float, points: int = 24, seed: int = 0) -> Run:
    values = (accuracy, accuracy / 2, 1.5, 0.25, 0.125, 0.0625)
    metrics = {metric.name: value for metric, value in zip(METRICS, values, strict=True)}
    return finished(model, points, seed, metrics, 1234, 3.0 + seed, 2, 60)


def pair(first: str, second: str, difference: float, p: float | None, p_runs: float | None = None) -> Pair:
    interval = None if p is None else Interval(difference - 0.02, difference + 0.01)
    return Pair(first, second, difference, 0.1, interval, p, p_runs)


def ranking_of(runs: Sequence[Run], points: int | None, pairs: Sequence[Pair], metric: Metric) -> Ranking:
    """A ranking with these pairs; all others differ significantly."""
    models = {one.model: one.metrics[metric.name] for one in runs if one.points == points}
    known = {frozenset((one.first, one.second)) for one in pairs}
    both = [(a, b) for a, b in itertools.combinations(models, 2) if frozenset((a, b)) not in known]
    rest = [pair(a, b, models[a] - models[b], 0.001) for a, b in both]
    count, rows = Counter(one.model for one in runs if one.points == points), []
    for model, mean in models.items():
        interval = metric.inside(Interval(mean - 1, mean + 1)) if count[model] > 1 else None
        rows.append(ModelRow(model, count[model], False, mean, None, interval))
    return Ranking(tuple(sorted(rows, key=lambda row: -metric.merit(row.mean))), (*pairs, *rest), 10, metric=metric)


def rows_of(runs: Sequence[Run], pairs=None, costs=None, published=None) -> list[Row]:
    return comparison_of(runs, pairs, costs, published).rows


def comparison_of(runs: Sequence[Run], pairs=None, costs=None, published=None) -> Comparison:
    labels, points = dict.fromkeys(one.model for one in runs), dict.fromkeys(one.points for one in runs)
    models, seeds = [Entry("rff-max", {}, label) for label in labels], {one.seed: None for one in runs}
    task = replace(Classification(points=tuple(points)).task, metrics=METRICS)
    experiment = Experiment.of(task, models, seeds=tuple(seeds), published=published)
    rankings = {size: ranking_of(runs, size, (pairs or {}).get(size, ()), METRICS[0]) for size in points}
    return Comparison(experiment, runs, rankings, costs or {}, [], Path())


def test_rows_are_means_with_sample_deviations():
    runs = [run("a", 0.5, seed=0), run("a", 0.6, seed=1), run("a", 0.7, seed=2), run("b", 0.9)]
    first, second = rows_of(runs)
    accuracy, mean_class = first.metrics["accuracy"], first.metrics["mean_class_accuracy"]
    assert accuracy.mean == pytest.approx(0.6)
    assert accuracy.deviation == pytest.approx(0.1)  # divided by 2, not by 3
    assert (mean_class.mean, mean_class.deviation) == (pytest.approx(0.3), pytest.approx(0.05))
    assert mean_class.interval.high == pytest.approx(0.3 + 4.302653 * 0.05 / math.sqrt(3))
    assert (first.seeds, second.seeds) == (3, 1)
    assert second.metrics["accuracy"].deviation is None
    assert second.metrics["mean_class_accuracy"].interval is None
    assert columns([first, second])[:2] == ["model", "seeds"], "rows over different numbers of seeds say so"
    assert "±" not in format_table(make_cells([first, second], METRICS)).splitlines()[-1]


def test_differences_from_the_best():
    """For each size separately; pairs may be given in either order."""
    runs = [run("a", 0.5), run("b", 0.8), run("c", 0.79), run("a", 0.9, 7), run("b", 0.6, 7)]
    pairs = {24: [pair("a", "b", -0.3, 0.01), pair("b", "c", 0.01, 0.05)], 7: [pair("a", "b", 0.3, 0.049)]}
    rows = rows_of(runs, pairs)
    assert [row.against_best for row in rows] == ["-30.0", "best", NOT_SIGNIFICANT, "best", "-30.0"]
    assert [row.best for row in rows] == [False, True, False, True, False]
    assert [row.best for row in rows_of([run("first", 0.5), run("second", 0.5)])] == [True, False]


@pytest.mark.parametrize(("p_runs", "words"), [(0.049, "-20.0, one seed"), (0.051, "one seed")])
def test_one_seed_is_named(p_runs, words):
    rows = rows_of([run("a", 0.7), run("b", 0.5)], {24: [pair("a", "b", 0.2, None, p_runs)]})
    assert [row.against_best for row in rows] == ["best", words]


@pytest.mark.parametrize(
    ("ours", "published", "expected"),
    [
        # .02^2 / 3 and .02^2 / 6 add up to .01414^2; twice that is .0283.
        ((0.78, 0.80, 0.82), (0.772, 0.02, 6), "agrees"),
        ((0.78, 0.80, 0.82), (0.771, 0.02, 6), "above by 2.9 (2.1 errors)"),
        ((0.78, 0.80, 0.82), (0.828, 0.02, 6), "agrees"),
        ((0.78, 0.80, 0.82), (0.900, 0.02, 6), "below by 10.0 (7.1 errors)"),
        ((0.80,), (0.77, 0.01, 5), "above by 3.0 (no spread)"),  # one seed has no error to measure with
        ((0.80, 0.80), (0.80, 0.0, 1), "agrees"),
        ((0.80, 0.80), (0.75, 0.0, 1), "above by 5.0 (no spread)"),
    ],
)
def test_the_published_value_is_compared_in_standard_errors_of_the_difference(ours, published, expected):
    runs = [run("a", accuracy, seed=seed) for seed, accuracy in enumerate(ours)]
    (row,) = rows_of(runs, published={"a": {24: Published(*published), 7: Published(0.1, 0.1, 1)}})
    found = row.metrics["accuracy"]
    assert (found.published, found.against_published(METRICS[0])) == (Published(*published), expected)


def columns(rows: Sequence[Row], metrics: Sequence[Metric] = METRICS, **options) -> list[str]:
    return [*make_cells(rows, metrics, **options)[0]]


def test_the_table_leaves_out_what_says_nothing():
    alone = ["model", "accuracy %", "mean-class %", "log loss", "ECE %", "parameters", "train s"]
    assert columns(rows_of([run("a", 0.5)])) == alone
    assert columns(rows_of([run("a", 0.5, 24), run("a", 0.5, 7)])) == ["model", "points", *alone[1:]]
    seeds = columns(rows_of([run("a", 0.5), run("a", 0.6, seed=1)]))
    assert seeds == ["model", "accuracy %", "95 % interval", *alone[2:]]
    models = columns(rows_of([run("a", 0.5), run("b", 0.5)], {24: [pair("a", "b", 0.0, 1.0)]}))
    assert models == ["model", "accuracy %", "against the best", *alone[2:]]
    brief = ["model", "accuracy %", "mean-class %", "ECE %", "parameters", "train s"]
    assert columns(rows_of([run("a", 0.5)]), brief=True) == brief
    balanced = run("a", 0.5)
    balanced.metrics["mean_class_accuracy"] = 0.5 + 1e-15
    assert columns(rows_of([balanced]), brief=True) == [name for name in brief if name != "mean-class %"]
    costly = columns(rows_of([run("a", 0.5)], costs={24: {"a": COST}}))
    assert costly == [*alone[:-1], "M mult-adds", "ms a set", "train s"]
    published = columns(rows_of([run("a", 0.5), run("a", 0.6, seed=1)], published={"a": {24: Published(0.5, 0.1, 5)}}))
    assert published == [*seeds[:3], "published %", "against published", *seeds[3:]]


class Errors(MaxRegression):
    """A task whose second metric has its own format."""

    metrics = (Metric("MAE", higher_is_better=False, digits=2), Metric("worst", higher_is_better=False))


def errors(label: str, *values: float) -> list[Run]:
    rows = [{"MAE": value, "worst": 2 * value} for value in values]
    return [finished(label, None, seed, row, 12, 1.0, 7, 60) for seed, row in enumerate(rows)]


def test_a_task_says_which_way_is_better_and_how_its_metrics_are_written():
    runs = errors("rFF + max", 0.5, 0.75) + errors("SAB + PMA", 2.5, 3.5)
    published = {"SAB + PMA": {"worst": Published(5.0, 0.25, 5)}}
    experiment = Experiment.of(Errors().task, seeds=(0, 1), published=published)
    pairs = [pair("rFF + max", "SAB + PMA", -2.375, 0.01)]
    ranking = ranking_of(runs, None, pairs, Errors.metrics[0])
    rows = Comparison(experiment, runs, {None: ranking}, {}, [], Path()).rows
    assert [(row.best, row.against_best) for row in rows] == [(True, "best"), (False, "+2.38")]
    assert rows[0].metrics["MAE"].interval.low < 0, "no share: it is not cut off at 0"
    both = ["MAE", "MAE 95 % interval", "against the best", "worst", "worst 95 % interval", "worst published"]
    assert columns(rows, Errors.metrics) == ["model", *both, "worst against published", "parameters", "train s"]
    assert "worst 95 % interval" not in columns(rows, Errors.metrics, brief=True)
    table = format_table(make_cells(rows, Errors.metrics))
    assert "3.00 ± 0.71" in table
    assert "5.0000 ± 0.2500" in table
    assert "agrees" in table


def test_latex_aligns_numbers_and_escapes_names() -> None:
    row = {"model": "a_b 50 %", "accuracy %": "90.1 ± 0.2", "against the best": "-1.5"}
    table = as_latex([row, row | {"model": "[x]"}])
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines[0] == r"\begin{tabular}{lrl}"
    assert lines[2] == r"model & accuracy \% & against the best \\"
    assert lines[4] == r"a\_b 50 \% & 90.1 $\pm$ 0.2 & $-$1.5 \\"
    assert lines[5].startswith("{}[x] &")  # an option of the line before, if nothing stood between them


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
    problem = Experiment.of(MaxRegression().task, ["rff-max"], published={"rff-max": {"MAE": (1.0, 0.1, 5)}})
    claim_folder(problem, tmp_path / "problem", {None: {}})
    assert read_experiment(tmp_path / "problem").as_dict() == problem.as_dict()


def test_another_protocol_is_refused_without_the_advice_to_delete_results(tmp_path):
    whole = experiments.default_experiment("parts", ["rff-max"])
    claim_folder(whole, tmp_path, {1024: {}})
    with pytest.raises(PointsetError, match=r"holds another comparison .*: give another folder$"):
        claim_folder(whole.changed(recipe=Recipe()), tmp_path, {})


def test_the_latex_table_is_complete_and_the_figure_has_every_model():
    comparison = comparison_of([run("a_b", 0.5), run("a_b", 0.7, seed=1), run("c", 0.9), run("c", 0.8, seed=1)])
    text = comparison.to_latex(label="tab:parts")
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{table}")
    assert text.endswith("\\end{table}\n")
    assert "\\label{tab:parts}" in text
    assert text.count("\\textbf{") == text.count("\\textbf{85.0 $\\pm$ 7.1}") == 1
    caption = re.search(r"\\caption{(.*)}", text)[1]
    assert not re.search(r"(?<!\\)[%&_#]", caption)
    for mistake in (lambda: comparison.plot("means.pdf"), lambda: comparison.table("csv")):
        with pytest.raises(PointsetError, match=r"savefig\(path\)|'csv': use one of latex, .* or read results.csv"):
            mistake()
    (axes,) = comparison.plot().axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["c", "a_b"]


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
