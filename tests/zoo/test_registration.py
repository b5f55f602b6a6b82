"""User-defined modules: named, saved, sent to workers, exported, or rejected with a clear error."""

from doctest import DocTestParser

import pytest
import torch
from command_line import fail, succeed
from torch import nn

import pointset
from pointset import ModelOptions, PointsetError, Recipe
from pointset.nn import Encoder, Pooling, SumPool, registry
from pointset.zoo.abilities import abilities
from pointset.zoo.names import used_options
from pointset.zoo.registration import pickled_entries, register_pickled, source_digests

EXAMPLE = "import pointset, torch\n" + DocTestParser().get_examples(pointset.register_pooling.__doc__)[0].source
"""What the documentation shows."""
POINTS = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
SMALL = {"dim": 8, "heads": 2, "layers": 1}


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The pooling of the documentation in a separate file, named by POINTSET_MODULES."""
    file = tmp_path / "mine.py"
    file.write_text(EXAMPLE)
    monkeypatch.setenv("POINTSET_MODULES", str(file))
    return file


class Middle(Pooling):
    """The mean of the largest and the smallest value."""

    def forward(self, X, mask=None):
        real = X.new_ones(X.shape[:2]).bool() if mask is None else mask
        largest = X.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
        smallest = X.masked_fill(~real[..., None], torch.inf).amin(dim=1)
        return ((largest + smallest) / 2).where(real.any(dim=1, keepdim=True), 0.0)


def squared(logits, mask):
    return logits.relu().square() / 4


@pytest.mark.slow
def test_the_example_of_the_documentation_is_a_pooling_like_any_other(scratch, tmp_path):
    assert {"rff-low4", "isab16-low4"} <= set(pointset.list_models())
    model = pointset.create_model("isab16-low3", classes=4, dim=8, heads=2)
    assert pointset.check_symmetry(model).worst < 1e-4
    joined = pointset.create_model("isab16-max+low3", classes=4, dim=8, heads=2).eval()
    for one in (model, joined):
        with pytest.raises(PointsetError, match="'low<k>' cannot be exported"):
            pointset.export_model(one, tmp_path / "model.pt2")


@pytest.mark.parametrize(
    ("name", "options", "key", "words"),
    [
        ("rff-low2", {}, ("pooling", "low<k>"), r"no model is called 'rff-low2'.*POINTSET_MODULES"),
        ("isab3-pma", {"weights": "squared"}, ("weights", "squared"), "no weights function is called 'squared'"),
    ],
)
@pytest.mark.usefixtures("scratch")
def test_a_run_is_loaded_where_its_modules_are_registered(name, options, key, words, tmp_path, train):
    pointset.register_weights("squared")(squared)
    model = pointset.create_model(name, classes=3, dim=8, **options)
    pointset.fit(model, train, Recipe(epochs=1), run=tmp_path / "run")
    loaded = pointset.load_model(tmp_path / "run")
    description = loaded.description
    assert torch.equal(loaded(POINTS), model.eval()(POINTS))
    assert description["model"]["modules"] == source_digests(name, model.spec.options)
    assert list(description["model"]["modules"]) == [" ".join(key)]
    del registry.REGISTERED[key]
    with pytest.raises(PointsetError, match=words):
        pointset.load_model(tmp_path / "run")


@pytest.mark.slow
def test_it_is_compared_in_worker_processes(tmp_path, clouds_folder):
    """The pooling is defined in a cell of a notebook, which workers cannot import."""
    define("cell", "def forward(self, X, mask=None): return (X if mask is None else X * mask[..., None]).sum(dim=1)")
    how = {"data_options": pointset.DataOptions(points=16), "model_options": ModelOptions(dim=8), "progress": False}
    how |= {"seeds": [0], "recipe": Recipe(epochs=1), "workers": 2, "report": False}
    found = pointset.compare(["rff-cell+mean", "rff-max"], clouds_folder, out=tmp_path / "out", **how)
    assert [run.model for run in found.runs] == ["rff-cell+mean", "rff-max"]


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda self, X: X.sum(1), "takes 2 positional arguments but 3 were given"),
        (lambda self, X, mask=None: X * 2, r"its output for 3 rows is \[1, 3, 8\], and for 1 row \[1, 1, 8\]"),
    ],
)
def test_a_pooling_that_takes_no_mask_or_does_not_pool_is_refused_in_one_sentence(forward, words):
    pointset.register_pooling("wrong")(type("Wrong", (pointset.nn.Pooling,), {"forward": forward}))
    try:
        with pytest.raises(PointsetError, match=rf"wrong must have forward\(X, mask=None\) -> \[B, d\], but .*{words}"):
            pointset.create_model("rff-wrong", classes=2, dim=8)
    finally:
        del registry.REGISTERED["pooling", "wrong"]


def test_options_are_those_that_the_class_uses():
    @pointset.register_pooling("gated")
    class Gated(SumPool):
        options_used = ("heads",)

        @classmethod
        def build(cls, options, width):
            pool = cls()
            pool.heads, pool.width = options.attention.heads, width
            return pool

    used = used_options("rff-gated")
    assert used == used_options("rff-max") | {"heads"}
    pool = pointset.create_model("rff-gated", dim=12, heads=3).pool
    assert (pool.heads, pool.width) == (3, 12)
    Gated.options_used = None
    assert used_options("rff-gated") > used


@pytest.mark.parametrize("before", ["def _power(X): return X**{}", "POWER = {}\ndef _power(X): return X**POWER"])
def test_another_file_makes_another_run_and_gets_to_a_worker_that_knows_the_pooling(before):
    sent = []
    for power in (2, 3):
        define("cell", "def forward(self, X, mask=None): return _power(X).sum(1)", before.format(power))
        sent.append((source_digests("rff-cell"), pickled_entries("rff-cell")))
    assert sent[0][0] != sent[1][0]
    del registry.REGISTERED["pooling", "cell"]  # as in a worker
    for (_, content), result in zip(sent, (4, 8), strict=True):
        register_pickled(content)
        assert registry.REGISTERED["pooling", "cell"].module()(torch.full((1, 1, 1), 2.0)).item() == result


def define(name: str, forward: str, before: str = "") -> None:
    """Run the cell of a notebook."""
    import linecache

    text = f"{before}\nclass Cell(Pooling):\n    {forward}\n"
    file = f"<cell {len(linecache.cache)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope = {"Pooling": Pooling, "__name__": "__main__"}
    exec(compile(text, file, "exec"), scope)
    pointset.register_pooling(name)(scope["Cell"])


@pytest.mark.parametrize(
    ("kind", "name", "make", "words"),
    [
        ("pooling", "max", Middle, "'max' is taken by .*MaxPool: use another name"),
        ("pooling", "my-pool", Middle, "'my-pool' must be lower case.* no hyphen"),
        ("encoder", "Mine", Encoder, "'Mine' must be lower case"),
        ("encoder", "mine", Middle, "'mine' must be a subclass of pointset.nn.Encoder, got"),
        ("pooling", "mine", nn.Linear, "'mine' must be a subclass of pointset.nn.Pooling, got"),
        ("pooling", "mine<k>", Middle, "'mine<k>' has an argument: give listed"),
        ("weights", "softmax", torch.tanh, "'softmax' is taken by pointset"),
        ("weights", "tanh", 3, "'tanh' must be a function or a class of torch modules, got 3"),
        ("weights", "mine", dict, "'mine' must be a function or a class of torch modules, got"),
    ],
)
def test_wrong_registrations_are_errors_at_once(kind, name, make, words):
    register = getattr(pointset, f"register_{kind}")
    with pytest.raises(PointsetError, match=words):
        register(name)(make)


def test_a_name_is_of_one_definition():
    pointset.register_pooling("once")(Middle)
    pointset.register_pooling("once")(Middle)
    with pytest.raises(PointsetError, match=r"'once' is taken by .*Middle: use another name"):
        pointset.register_pooling("once")(type("Other", (Middle,), {}))
    assert registry.REGISTERED["pooling", "once"].module is Middle
    for register in (pointset.register_pooling, pointset.register_encoder, pointset.register_weights):
        with pytest.raises(PointsetError, match=r"needs a name: write @pointset\.register_\w+\(.mine.\) above"):
            register(Middle)


class NeedsDepth(Middle):
    def __init__(self, depth: int) -> None:
        super().__init__()


def test_a_class_whose_constructor_takes_other_arguments_is_named():
    pointset.register_pooling("mistaken")(NeedsDepth)
    for name in ("rff-mistaken", "rff-max+mistaken"):
        with pytest.raises(
            PointsetError, match=r"pooling 'mistaken' cannot be built .*depth.*: give its class a `build`"
        ):
            pointset.create_model(name, dim=8)


def test_a_file_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_MODULES", str(tmp_path / "gone.py"))
    with pytest.raises(PointsetError, match=r"gone\.py, which .*imported.*No such file"):
        pointset.list_models()


def test_an_unregistered_function_can_be_trained_but_not_saved(tmp_path, train):
    model = pointset.create_model("isab3-pma", classes=3, weights=squared, **SMALL)
    assert pointset.fit(model, train, Recipe(epochs=1), progress=False).history
    with pytest.raises(PointsetError, match=r"weights has the function squared.*pointset\.register_weights"):
        pointset.fit(model, train, Recipe(epochs=1), run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_registered_function_is_sent_to_workers():
    scale = 0.25

    @pointset.register_weights("scaled")
    def scaled(logits, mask):
        return scale * logits.sigmoid()

    options = ModelOptions.from_dict({"weights": "scaled", **SMALL})
    expected = pointset.create_model("isab3-pma", 4, weights="scaled", **SMALL).eval()(POINTS)
    entries = pickled_entries("isab3-pma", options)
    del registry.REGISTERED["weights", "scaled"]
    register_pickled(entries)
    model = pointset.create_model("isab3-pma", 4, weights="scaled", **SMALL)
    torch.testing.assert_close(model.eval()(POINTS), expected)
    assert not pickled_entries("isab3-max", ModelOptions())
    assert source_digests("rff-max", options) == {}, "it has no attention"


def test_the_command_line_takes_a_name_of_a_file(clouds_folder, tmp_path, monkeypatch, capsys):
    file = tmp_path / "mine.py"
    file.write_text("import pointset\n@pointset.register_weights('mine')\ndef mine(z, mask):\n    return z.sigmoid()\n")
    flags = ["train", "isab4-pma", "--dim", "8", "--heads", "2", "--weights", "mine", "--epochs", "1", "--points", "8"]
    flags += ["--data", clouds_folder, "--run", tmp_path / "run"]
    said = fail(capsys, *flags)
    assert all(word in said for word in ("weights", "use softmax", "register_weights", "'mine'")), said
    monkeypatch.setenv("POINTSET_MODULES", str(file))
    succeed(capsys, *flags)


def test_a_function_says_whether_it_can_be_exported():
    for export in (True, False):
        pointset.register_weights("squared", export=export)(squared)
        model = pointset.create_model("isab3-pma", 4, weights="squared", **SMALL)
        assert abilities(model) == {"maps": True, "exports": export}
