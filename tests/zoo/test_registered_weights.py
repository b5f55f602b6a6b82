"""User-defined weights functions in models: symmetric, saved by name, sent to workers, exported, or rejected."""

import pickle
import sys

import pytest
import torch
from command_line import fail, succeed

import pointset
from pointset.configuration import USER_WEIGHTS
from pointset.errors import PointsetError
from pointset.export.model import export_model
from pointset.nn import registry
from pointset.streaming import StreamingError
from pointset.training.recipe import Recipe
from pointset.zoo.abilities import describe_models
from pointset.zoo.options import ModelOptions
from pointset.zoo.registration import carried, source_digests

POINTS = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
SMALL = {"dim": 8, "heads": 2, "layers": 1}


@pytest.fixture(autouse=True)
def forgotten():
    known = set(USER_WEIGHTS)
    yield
    USER_WEIGHTS.intersection_update(known)


def squared(logits, mask=None):
    return logits.relu().square() / 4


def test_a_run_is_saved_by_name_and_loaded_where_the_name_is_known(tmp_path, clouds_folder):
    pointset.register_weights("squared")(squared)
    sets = pointset.load_dataset(clouds_folder, split="train", points=16)
    model = pointset.create_model("isab3-pma", classes=3, weights="squared", **SMALL)
    pointset.fit(model, sets, Recipe(epochs=1), run=tmp_path / "run", progress=False)
    loaded, description = pointset.load_run(tmp_path / "run")
    assert torch.equal(loaded(POINTS), model.eval()(POINTS))
    assert description["model"]["options"]["weights"] == ["squared"]
    assert description["model"]["parts"] == source_digests("isab3-pma", ModelOptions(weights="squared"))
    assert list(description["model"]["parts"]) == ["weights squared"]
    del registry.PARTS["weights", "squared"]
    with pytest.raises(PointsetError, match=r"no weights function is called 'squared'.*register_weights"):
        pointset.load_run(tmp_path / "run")


def test_an_unregistered_function_can_be_trained_but_not_saved(tmp_path, clouds_folder):
    sets = pointset.load_dataset(clouds_folder, split="train", points=16)
    model = pointset.create_model("isab3-pma", classes=3, weights=torch.sigmoid, **SMALL)
    assert pointset.fit(model, sets, Recipe(epochs=1), progress=False).history
    with pytest.raises(PointsetError, match=r"weights has the function sigmoid.*pointset\.register_weights"):
        pointset.fit(model, sets, Recipe(epochs=1), run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "run.json").exists()


def test_a_registered_function_is_sent_to_workers():
    scale = 0.25

    @pointset.register_weights("scaled")
    def scaled(logits):
        return scale * logits.sigmoid()

    options = ModelOptions(weights="scaled", **SMALL)
    expected = pointset.create_model("isab3-pma", 4, weights="scaled", **SMALL).eval()(POINTS)
    name = pickle.dumps(carried("isab3-pma", options))
    del registry.PARTS["weights", "scaled"]
    USER_WEIGHTS.discard("scaled")
    arrived = pickle.loads(name)
    model = pointset.create_model(arrived, 4, weights="scaled", **SMALL)
    torch.testing.assert_close(model.eval()(POINTS), expected)
    assert carried("isab3-max", ModelOptions()) == "isab3-max"
    assert source_digests("rff-max", options) == {}, "it has no attention"


def test_the_command_line_takes_a_name_of_a_file(clouds_folder, tmp_path, monkeypatch, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "import pointset\n@pointset.register_weights('mine')\ndef mine(logits):\n    return logits.sigmoid()\n"
    )
    flags = ["train", "isab4-pma", "--dim", "8", "--heads", "2", "--weights", "mine", "--epochs", "1", "--points", "8"]
    flags += ["--data", clouds_folder, "--run", tmp_path / "run"]
    said = fail(capsys, *flags)
    assert all(word in said for word in ("weights", "'softmax'", "register_weights", "'mine'")), said
    monkeypatch.setenv("POINTSET_PARTS", str(file))
    try:
        succeed(capsys, *flags)
        options = ModelOptions(dim=8, heads=2, weights=("mine",))
        rows = {row["model"]: row for row in describe_models(options=options)}
    finally:
        sys.modules.pop("pointset_parts_mine", None)
    assert (rows["isab16-pma"]["maps"], rows["isab16-pma"]["streams"], rows["isab16-pma"]["exports"]) == (
        True,
        False,
        False,
    )
    assert rows["rff-max"]["streams"]


def test_streaming_and_export_refuse_by_name(tmp_path):
    model = pointset.create_model("isab3-max", 4, weights=torch.sigmoid, **SMALL).eval()
    with pytest.raises(StreamingError, match="sigmoid weights"):
        model.stream(POINTS[0])
    with pytest.raises(PointsetError, match=r"function sigmoid.*register_weights"):
        export_model(model, tmp_path / "model.onnx")
    pointset.register_weights("squared")(squared)
    model = pointset.create_model("isab3-max", 4, weights="squared", **SMALL).eval()
    with pytest.raises(PointsetError, match="weights function 'squared' cannot be exported: register it"):
        export_model(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_function_with_a_mask_can_be_exported(tmp_path):
    pointset.register_weights("squared", export=True)(squared)
    model = pointset.create_model("isab3-pma", 4, weights="squared", **SMALL).eval()
    export_model(model, tmp_path / "model.pt2", mask=True)
    program = torch.export.load(tmp_path / "model.pt2").module()
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    torch.testing.assert_close(program(POINTS, mask), model(POINTS, mask))


@pytest.mark.parametrize(
    ("name", "make", "options", "words"),
    [
        ("softmax", torch.tanh, {}, "'softmax' is taken by pointset"),
        ("Tanh", torch.tanh, {}, "'Tanh' must be lower case"),
        ("tanh<k>", torch.tanh, {}, "'tanh<k>' has an argument"),
        ("tanh", 3, {}, "'tanh' must be a class or a function, got 3"),
        ("tanh", torch.tanh, {"export": True}, "'tanh' must take a mask to be exported"),
        ("taken", torch.tanh, {}, "'taken' is taken by .*squared: use another name, or replace=True"),
    ],
)
def test_what_is_not_a_weights_function_is_refused(name, make, options, words):
    pointset.register_weights("taken")(squared)
    with pytest.raises(PointsetError, match=words):
        pointset.register_weights(name, **options)(make)
