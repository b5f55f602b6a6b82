"""Publishing a finished run as a trained model of the package."""

import json
from types import SimpleNamespace

import publish
import pytest
import torch
from toy import train_run

import pointset
from pointset.training.recipe import Recipe
from pointset.zoo import pretrained

NAME = "rff-max.toy"


@pytest.fixture(scope="module")
def run(clouds_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("publish") / "run"
    recipe = Recipe(epochs=2, train_points=(8, 16), validation=0.2)
    train_run(folder, clouds_folder, "rff-max", recipe=recipe)
    return folder


@pytest.fixture(autouse=True)
def _small(run, monkeypatch):
    classes = json.loads((run / "run.json").read_text())["data"]["classes"]
    card = SimpleNamespace(classes=tuple(classes), up="z", kind="generated")
    monkeypatch.setattr(publish, "load_card", lambda name: card)
    monkeypatch.setattr(publish, "SIZES", (8, 16))


@pytest.fixture
def published(run, tmp_path, monkeypatch):
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    code = publish.publish(run, name=NAME, data="shapes10", command="pointset train rff-max", folder=tmp_path)
    return code, tmp_path / NAME


def test_a_published_run_answers_to_its_name(run, published, clouds_folder):
    code, folder = published
    assert code == 0
    card = pretrained.pretrained_card(NAME)
    model, description = pointset.load_run(NAME)
    test = pointset.load_dataset(clouds_folder, split="test", points=8, normalize=description["data"]["normalize"])
    assert card.accuracy["8"].accuracy == pytest.approx(pointset.evaluate(model, test).accuracy, abs=5e-5)
    assert card.accuracy["8"].low < card.accuracy["8"].accuracy < card.accuracy["8"].high
    assert card.parameters == sum(parameter.numel() for parameter in model.parameters())
    before, after = ((path / "model.safetensors").stat().st_size for path in (run, folder))
    assert after < 0.7 * before
    weights = pretrained.pretrained_weights(NAME)
    assert {one.dtype for one in weights.values() if one.is_floating_point()} == {torch.float16}


def test_no_folder_of_the_machine_is_published(run, published, clouds_folder):
    text = "".join(path.read_text() for path in published[1].iterdir() if path.suffix != ".safetensors")
    assert str(clouds_folder) not in text
    assert json.loads((published[1] / "run.json").read_text())["data"]["source"] == "shapes10"
