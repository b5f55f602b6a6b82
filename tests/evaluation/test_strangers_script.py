"""scripts/experiments/strangers.py: a model that lacks a class, and what comes onto a card."""

import shutil
from pathlib import Path

import pytest
import strangers

import pointset
from pointset.runs import digests
from pointset.training.recipe import Recipe
from pointset.zoo import pretrained

NAME = "rff-max.toy"
CARD = """title = "A toy"
data = "shapes10"
parameters = 1
multiply_adds = 1
temperature = 1.5
command = "pointset train"
terms = "MIT"
[unlike]
score = "energy"
threshold = 0.0
[accuracy]
64 = [0.5, 0.4, 0.6]
"""


@pytest.fixture
def shipped(clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sets = pointset.load_dataset(clouds_folder, points=16)
    model = pointset.create_model("rff-max", 3, dim=8)
    pointset.fit(model, sets, Recipe(epochs=1, validation=0.2), run=tmp_path / NAME, progress=False)
    digests.write_text(tmp_path / NAME / "card.toml", CARD)
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    return tmp_path / NAME


@pytest.mark.parametrize("score", ["energy", "distance"])
def test_a_score_comes_onto_the_card_in_place_of_the_earlier(score, shipped, clouds_folder, tmp_path, capsys):
    others = shutil.copytree(clouds_folder, tmp_path / "others")
    (others / "shape_names.txt").write_text("Ball\ncat\ndog\n")
    assert strangers.run(["card", NAME, "--strangers", str(others), "--choose", score]) == 0
    assert "40 shapes of cat, dog" in capsys.readouterr().out
    card = pretrained.pretrained_card(NAME)
    assert card.unlike.score == score
    assert 0 <= card.unlike.auroc["others"] <= 1
    assert card.accuracy["64"].low == 0.4
    assert (shipped / "unlike.safetensors").exists() == (score == "distance")


def test_a_model_meets_a_class_that_it_lacks(clouds_folder, capsys):
    options = ("--count", "1", "--points", "16", "--epochs", "1")
    assert strangers.run(["lacking", "rff-max", "--data", str(clouds_folder), *options]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("without ")
    assert [line.split()[0] for line in printed.splitlines()[3:]] == ["energy", "distance"]
    assert strangers.run(["lacking", "rff-max", "--data", str(clouds_folder), "--points", "16", "--count", "2"]) == 2
    assert "count must leave at least two of 3 classes, got 2" in capsys.readouterr().err
