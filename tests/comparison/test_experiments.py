"""An experiment read from a file: what it says is what is run, and what it cannot mean is refused with its words."""

import re
from pathlib import Path

import pytest

from pointset.comparison.comparing import cell_folder, make_jobs
from pointset.comparison.experiment import Entry, Experiment, Published, read_experiment
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
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
    { name = "isab4-pma", label = "ISAB, pooled seeds", seeds = "pooled", layers = "none", dim = 24 },
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
    """Read a text as an experiment; without models, one is put in front."""

    def read_text(text: str, **changes) -> Experiment:
        (tmp_path / "some.toml").write_text(text if "models" in text else 'models = ["rff-max"]\n' + text)
        return read_experiment(tmp_path / "some.toml", **changes)

    return read_text


def test_every_entry_arrives(read):
    found = read(WHOLE)
    assert (found.title, found.data, found.threads) == ("Pooling, by size", "modelnet40-hdf5", 2)
    assert (found.points, found.seeds, found.robustness_seeds) == ((100, 1000), (3, 0), (3,))
    assert found.labels == ["rff-max", "isab4-pma form=paper norm=none", "ISAB, pooled seeds"]
    assert found.sets == DataOptions(normalize="standardize")
    assert found.sets_of(100) == DataOptions(normalize="standardize", points=100)
    assert found.model == ModelOptions(dim=16, layers=3)
    assert found.recipe == Recipe(epochs=7, clip_norm=None, augment=("scale",))
    assert found.published == {"rff-max": {100: Published(0.7951, 0.0166, 5), 5000: Published(0.8933, 0.0156, 5)}}


def test_what_is_not_said_is_as_usual(read):
    found = read('models = ["rff-max"]')
    assert found == Experiment(models=(Entry("rff-max"),))
    assert (found.data, found.points, found.seeds, found.robustness_seeds) == ("shapes10", (1024,), (0, 1, 2), ())
    assert (found.sets, found.model, found.recipe) == (DataOptions(), ModelOptions(), Recipe())


def test_metrics_are_chosen_by_name(read):
    assert read('metrics = ["ECE", "Brier score"]').metrics == ("ECE", "Brier score")
    assert read("metrics = []").metrics == ()
    with pytest.raises(PointsetError, match="no metric is called 'brier': did you mean 'Brier score'"):
        read('metrics = ["brier"]')
    with pytest.raises(PointsetError, match="metrics='ECE' is of the wrong type: give a list of names"):
        read('metrics = "ECE"')


def test_one_number_stands_for_a_list_of_one(read):
    found = read("points = 50\nseeds = 4\nrobustness_seeds = 4")
    assert (found.points, found.seeds, found.robustness_seeds) == ((50,), (4,), (4,))


def test_none_is_no_value_where_there_may_be_none_and_a_name_elsewhere(read):
    shared, paper, pooled = (entry.options(read(WHOLE).model) for entry in read(WHOLE).models)
    assert shared.layers == 3
    assert pooled.layers is None, "a change of one model may take a value back"
    assert paper.norm == "none", "norm has a choice of that name"
    with pytest.raises(PointsetError, match=r"epochs must be a whole number.* got 'none'"):
        read('[recipe]\nepochs = "none"')


def test_a_model_has_the_shared_options_with_its_own_changes(read):
    found = read(WHOLE)
    assert [entry.options(found.model) for entry in found.models] == [
        ModelOptions(dim=16, layers=3),
        ModelOptions(dim=16, layers=3, form="paper", norm="none"),
        ModelOptions(dim=24, layers=None, seeds="pooled"),
    ]
    jobs = {job.label: job for job in make_jobs(found, Path("out"))}
    assert jobs["ISAB, pooled seeds"].name == "isab4-pma"
    assert jobs["ISAB, pooled seeds"].model_options == ModelOptions(dim=24, seeds="pooled")
    assert jobs["rff-max"].model_options == ModelOptions(dim=16, layers=3)


def test_the_grid_is_seed_by_seed_and_every_cell_has_a_folder_of_its_own(read):
    jobs = make_jobs(read(WHOLE), Path("out"))
    assert [(job.seed, job.points) for job in jobs[::3]] == [(3, 100), (3, 1000), (0, 100), (0, 1000)]
    assert [job.label for job in jobs[:3]] == read(WHOLE).labels
    assert [job.robustness for job in jobs] == [True] * 6 + [False] * 6
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == 12
    assert folders[0] == Path("out/cells/rff-max-n100-seed3")
    assert folders[2] == Path("out/cells/ISAB_pooled_seeds-n100-seed3")
    assert {job.threads for job in jobs} == {2}


@pytest.mark.parametrize(
    ("entry", "label", "slug"),
    [
        ("isab16-max+mean", "isab16-max+mean", "isab16-max+mean"),
        ({"name": "sab-pma4", "dim": 8}, "sab-pma4 dim=8", "sab-pma4_dim=8"),
        ({"name": "rff-aggr.softmax", "heads": 2}, "rff-aggr.softmax heads=2", "rff-aggr.softmax_heads=2"),
        ({"name": "rff-max", "label": "naïve / max: 1"}, "naïve / max: 1", "naïve_max_1"),
        ({"name": "rff-max", "label": "../up"}, "../up", ".._up"),
        (Entry("rff-max", {}, "mine"), "mine", "mine"),
    ],
)
def test_labels_say_what_is_different_and_slugs_can_be_folders(entry, label, slug):
    found = Entry.of(entry)
    assert (found.label, found.slug) == (label, slug)
    folder = cell_folder(Path("out"), found, 9, 1)
    assert folder == Path("out/cells") / f"{slug}-n9-seed1"


def test_changes_replace_what_the_file_says(read):
    found = read(WHOLE, seeds=(9,), robustness_seeds=(), data="shapes10")
    assert (found.seeds, found.robustness_seeds, found.data) == ((9,), (), "shapes10")
    assert found.points == (100, 1000)


def test_the_protocol_is_what_cells_share_and_no_more(read):
    """Another seed, size, model, title or published figure joins a folder; anything else is another comparison."""
    one = read(WHOLE)
    changes = 'title = "Other"\npoints = 5\nseeds = 1\nrobustness_seeds = []\nmodels = ["rff-mean"]\n'
    other = read(changes + WHOLE[WHOLE.index("[sets]") : WHOLE.index("[published")], data=one.data, threads=2)
    assert other.protocol() == one.protocol()
    assert "points" not in one.protocol()["sets"]
    for text in ("dim = 16", "epochs = 7", 'normalize = "standardize"', "threads = 2", "modelnet40-hdf5"):
        assert text in WHOLE
        changed = re.sub(r"\d+(?=$)|standardize", lambda old: {"standardize": "none"}.get(old[0], "8"), text)
        changed = changed.replace("hdf5", "c")
        assert read(WHOLE.replace(text, changed)).protocol() != one.protocol(), text


def test_it_is_saved_as_plain_data(read):
    import json

    saved = json.loads(json.dumps(read(WHOLE).as_dict()))
    assert saved["models"][1] == {
        "label": "isab4-pma form=paper norm=none",
        "name": "isab4-pma",
        "form": "paper",
        "norm": "none",
    }
    assert saved["points"] == [100, 1000]
    assert saved["recipe"]["clip_norm"] is None
    again = [Entry.of(given) for given in saved["models"]]
    assert again == list(read(WHOLE).models)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("modles = []", "'modles' is unknown: did you mean models? Known are models, data, points"),
        ("seed = 3", "'seed' is unknown: did you mean seeds?"),
        ("[recepie]", "did you mean recipe?"),
        ("[recipe]\nepoch = 3", "'epoch' is not an option of Recipe: known are epochs, steps"),
        (
            "[sets]\nnormalise = 'none'",
            "'normalise' is not an option of DataOptions: known are points, pool_points, norm",
        ),
        ("[model]\nwidth = 64", "'width' is not an option of ModelOptions: known are heads"),
        ("[sets]\npoints = 100", "sets.points is given: sizes of set stand in points"),
        ("[recipe]\nepochs = '3'", "epochs must be a whole number, at least 1, got '3'"),
        ("[recipe]\nschedule = 'cosinus'", "schedule must be one of 'cosine', 'step', 'constant', got 'cosinus'"),
        ("[recipe]\npatience = 3", "patience=3 needs a validation split"),
        ("recipe = 'modern'", "recipe='modern' is of the wrong type: give a table"),
        ("sets = 100", "sets=100 is of the wrong type: give a table"),
        ("data = 40", "data=40 is of the wrong type: give text"),
        ("title = []", "title=[] is of the wrong type: give text"),
        ("threads = 1.5", "threads=1.5 is of the wrong type: give a whole number"),
        ("threads = true", "threads=True is of the wrong type"),
        ("threads = 0", "threads=0: give at least 1"),
        ("points = '100'", "points='100' are no whole numbers"),
        ("points = [true]", "points=[True] are no whole numbers"),
        ("points = [0]", "points must be a whole number, at least 1, got 0"),
        ("points = [9, 9]", "a size is given twice: 9, 9"),
        ("seeds = [0.5]", "seeds=[0.5] are no whole numbers"),
        ("seeds = [-1]", "seed must be a whole number in [0, 2^63), got -1"),
        ("seeds = [1, 2, 1]", "a seed is given twice: 1, 2, 1"),
        ("seeds = []", "at least one model, one size and one seed"),
        ("points = []", "at least one model, one size and one seed"),
        ("seeds = [0]\nrobustness_seeds = [0, 1]", "robustness_seeds [1] are none of the seeds [0]"),
        ("models = []", "at least one model"),
        ("models = 'rff-max'", "models='rff-max' is of the wrong type: give a list of names"),
        ("models = [3]", "3 is no model: give a name, or a table"),
        ("models = [{ norm = 'none' }]", "a model needs a name: {'norm': 'none'} has none"),
        ("models = [{ name = 3 }]", "name=3 is no text"),
        ("models = [{ name = 'rff-max', label = 3 }]", "label=3 is no text"),
        ("models = ['isab16-pam']", "no model is called 'isab16-pam': did you mean isab16-pma"),
        ("models = ['rff-max', 'rff-max']", "a model is given twice"),
        ("models = ['rff-max', { name = 'rff-mean', label = 'rff-max' }]", "a model is given twice"),
        ("models = [{ name = 'rff-max', dims = 8 }]", "'dims' is not an option of ModelOptions"),
        ("models = [{ name = 'rff-pma', dim = 10 }]", "got dim=10 and heads=4"),
        ("models = [{ name = 'rff-max', form = 'paper' }]", "rff-max has no use for form: leave it out; it has dim"),
        ("models = [{ name = 'rff-max', seeds = 'pooled' }]", "rff-max has no use for seeds"),
        (
            "models = [{ name = 'rff-max', label = 'a b' }, { name = 'rff-mean', label = 'A/b' }]",
            "'a b' and 'A/b' would share a folder: give one another label",
        ),
        ("published = 0.8", "published=0.8 is of the wrong type: give a table for each model"),
        ("[published]\nrff-max = 0.8", "published.rff-max=0.8 is of the wrong type"),
        ("[published.rff-mean]\n100 = [0.8, 0.1, 5]", "published figures of rff-mean, which is none of the models"),
        ("[published.rff-max]\nmany = [0.8, 0.1, 5]", "published.rff-max.many is given: 'many' is no size of set"),
        ("[published.rff-max]\n100 = 0.8", "published.rff-max.100=0.8 is of the wrong type: give [mean, standard"),
        ("[published.rff-max]\n100 = [0.8, 0.1]", "published.rff-max.100=[0.8, 0.1] is no published accuracy"),
        ("[published.rff-max]\n100 = ['0.8', 0.1, 5]", "is no published accuracy: give [mean, standard deviation, r"),
        ("[published.rff-max]\n100 = [79.5, 1.7, 5]", "with shares from 0 to 1"),
        ("[published.rff-max]\n100 = [0.8, 0.1, 0]", "is no published accuracy"),
        ("points = [1, 2", "is no TOML file"),
    ],
)
def test_what_it_cannot_mean_is_refused_and_the_file_is_named(text, words, read):
    with pytest.raises(PointsetError, match=re.escape(words)) as raised:
        read(text)
    assert "some.toml" in str(raised.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(PointsetError, match=r"there is no experiment .*none\.toml: give a TOML file"):
        read_experiment(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "binary.toml", tmp_path):
        with pytest.raises(PointsetError, match=f"{path.name} is no TOML file"):
            read_experiment(path)
