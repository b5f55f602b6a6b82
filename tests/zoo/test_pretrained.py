"""Trained models in the package: loaded by name wherever a run is accepted."""

import shutil

import pytest
import torch
from toy import ship

import pointset
from pointset.errors import PointsetError
from pointset.zoo import pretrained

NAME = "rff-max.toy"


@pytest.fixture(scope="module")
def shipped(clouds_folder, tmp_path_factory):
    """A folder with one trained model in it."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, ship(NAME, folder, clouds_folder, dropout=0.0)


@pytest.fixture(scope="module")
def sets(clouds_folder):
    return pointset.load_dataset(clouds_folder, points=16)


@pytest.fixture(autouse=True)
def _toy(shipped, monkeypatch):
    monkeypatch.setattr(pretrained, "FOLDER", shipped[0])


def test_a_name_gives_the_trained_model(shipped, sets):
    _, trained = shipped
    assert pointset.list_pretrained() == [NAME]
    loaded, description = pointset.load_run(NAME)
    created = pointset.create_model("rff-max", pretrained="toy").eval()
    assert description["data"]["classes"] == sets.classes
    for model in (loaded, created):
        assert torch.equal(model(sets.points[:4]), trained.eval()(sets.points[:4]))
    assert pretrained.pretrained_card(NAME).accuracy["64"].low == 0.4


def test_other_classes_get_a_new_last_layer_on_the_trained_body(shipped):
    _, trained = shipped
    model = pointset.create_model("rff-max", 7, pretrained="toy", seed=1)
    fresh = pointset.create_model("rff-max", 7, seed=1, dim=8, dropout=0.0)
    *body, (weight, own), (bias, _) = model.state_dict().items()
    assert own.shape == (7, 8)
    for name, tensor in body:
        assert torch.equal(tensor, trained.state_dict()[name])
    assert torch.equal(own, fresh.state_dict()[weight])
    assert bias in fresh.state_dict()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pointset.create_model("rff-max", pretrained="toys"), "rff-max.toys.*did you mean rff-max.toy"),
        (lambda: pointset.create_model("rff-max", pretrained="toy", dim=16), "dim=8, not 16"),
        (lambda: pointset.create_model("rff-max", pretrained="toy", inputs=6), "inputs=3, not 6"),
        (lambda: pointset.load_run("rff-max.toys"), "rff-max.toys. is not a run.*pointset train.*rff-max.toy$"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(call, words):
    with pytest.raises(PointsetError, match=words):
        call()


def test_a_folder_of_that_name_comes_first(tmp_path, shipped, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAME).mkdir()
    with pytest.raises(PointsetError, match="not a run"):
        pointset.load_run(NAME)


def test_damaged_weights_are_named(tmp_path, shipped, monkeypatch):
    folder = shutil.copytree(shipped[0], tmp_path / "copy")
    monkeypatch.setattr(pretrained, "FOLDER", folder)
    file = folder / NAME / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(PointsetError, match=r"model.safetensors has changed.*install pointset again"):
        pointset.create_model("rff-max", pretrained="toy")
