"""scripts/experiments/strangers.py: models that lack a class, and scores on cards."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import strangers
from toy import ship

from pointset.training.recipe import Recipe
from pointset.zoo import pretrained

NAME = "rff-max.toy"


@pytest.fixture
def shipped(clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ship(NAME, tmp_path, clouds_folder, Recipe(epochs=1, validation=0.2))
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    return tmp_path / NAME


def test_strangers_are_turned_to_the_models_up_axis(shipped, clouds_folder, tmp_path, monkeypatch):
    others = shutil.copytree(clouds_folder, tmp_path / "others")
    (others / "shape_names.txt").write_text("Ball\ncat\ndog\n")
    seen = {}

    def measured(model, known, held_out, test, met):
        seen[len(seen)] = met["others"]
        return {}

    monkeypatch.setattr(strangers, "measure_strangers", measured)
    for up in ("z", "y"):
        assert strangers.run(["card", NAME, "--strangers", str(others), "--up", up]) == 0
    upright, lying = (seen[place].source_pool.points[np.arange(2)] for place in (0, 1))
    np.testing.assert_array_equal(lying[..., 2], upright[..., 1])
    np.testing.assert_array_equal(lying[..., 1], -upright[..., 2])


@pytest.mark.parametrize("score", ["energy", "distance"])
def test_a_score_replaces_the_earlier_one_on_the_card(score, shipped, clouds_folder, tmp_path, capsys):
    others = shutil.copytree(clouds_folder, tmp_path / "others")
    (others / "shape_names.txt").write_text("Ball\ncat\ndog\n")
    assert strangers.run(["card", NAME, "--strangers", str(others), "--choose", score]) == 0
    assert "40 shapes of cat, dog" in capsys.readouterr().out
    card = pretrained.pretrained_card(NAME)
    assert card.unlike.score == score
    assert 0 <= card.unlike.auroc["others"] <= 1
    assert card.accuracy["64"].low == 0.4
    assert (shipped / "unlike.safetensors").exists() == (score == "distance")


def test_strangers_of_a_class_that_the_model_lacks(clouds_folder, capsys):
    options = ("--count", "1", "--points", "16", "--epochs", "1")
    assert strangers.run(["lacking", "rff-max", "--data", str(clouds_folder), *options]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("without ")
    assert [line.split()[0] for line in printed.splitlines()[3:]] == ["energy", "distance"]
    assert strangers.run(["lacking", "rff-max", "--data", str(clouds_folder), "--points", "16", "--count", "2"]) == 2
    assert "count must leave at least two of 3 classes, got 2" in capsys.readouterr().err
