"""Trained models on the command line: the default without --model, their list, and old spellings."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from command_line import asked, succeed
from toy import ship

from pointset.commands import trained as trained_models
from pointset.runs import records
from pointset.zoo import pretrained

NAME = "isab4-pma.toy"

pytestmark = pytest.mark.filterwarnings("ignore:of clouds with more points")


@pytest.fixture(scope="module")
def folder(clouds_folder, tmp_path_factory) -> Path:
    """The folder of trained models, with one in it."""
    folder = tmp_path_factory.mktemp("trained")
    ship(NAME, folder, clouds_folder, heads=2)
    return folder


@pytest.fixture(autouse=True)
def _shipped(folder, monkeypatch):
    monkeypatch.setattr(pretrained, "FOLDER", folder)
    monkeypatch.setattr(trained_models, "USUAL", NAME)


@pytest.fixture
def scan(tmp_path) -> Path:
    np.save(tmp_path / "scan.npy", np.random.default_rng(0).normal(size=(90, 3)))
    return tmp_path / "scan.npy"


def test_one_file_is_enough_and_the_model_is_said(scan, tmp_path, capsys):
    commands = (["classify", scan], ["attend", scan, "-o", tmp_path / "scan.ply"], ["evaluate"])
    for command in commands:
        assert f"model: {NAME}" in succeed(capsys, *command)
        assert "model: " not in succeed(capsys, *command, "--model", NAME)
    assert asked(capsys, *commands[2])["model"] == NAME


def test_probabilities_are_those_at_the_temperature_of_the_card(scan, folder, tmp_path, capsys):
    shutil.copytree(folder / NAME, tmp_path / "run")  # a run like any other, without the card
    both = [asked(capsys, "classify", scan, "--model", name) for name in (NAME, tmp_path / "run")]
    assert [one["temperature"] for one in both] == [2.0, 1.0]
    assert ["novelty" in one["predictions"][0] for one in both] == [True, False]
    shares = [{one["class"]: one["probability"] for one in found["predictions"][0]["classes"]} for found in both]
    roots = {name: share**0.5 for name, share in shares[1].items()}
    assert shares[0] == pytest.approx({name: root / sum(roots.values()) for name, root in roots.items()}, abs=1e-5)
    drawn = asked(capsys, "attend", scan, "-o", tmp_path / "scan.ply")
    assert drawn["confidence"] == pytest.approx(max(shares[0].values()), abs=1e-5)


@pytest.mark.parametrize(("temperature", "median", "doubtful"), [("0.001", "1e9", False), ("2.0", "1e-30", True)])
def test_a_class_more_likely_wrong_than_right_is_not_to_be_trusted(
    temperature, median, doubtful, scan, folder, tmp_path, capsys, monkeypatch
):
    trained = shutil.copytree(folder, tmp_path / "trained")
    card = trained / NAME / "card.toml"
    text = card.read_text().replace("= 2.0", f"= {temperature}").replace("= 1e9", f"= {median}")
    records.write_text(card, text)
    monkeypatch.setattr(pretrained, "FOLDER", trained)
    (tmp_path / "more").mkdir()
    for number in range(6):
        shutil.copy(scan, tmp_path / "more" / f"{number}.npy")
    for command in (("classify", scan), ("classify", tmp_path / "more"), ("attend", scan, "-o", tmp_path / "a.html")):
        assert ("do not trust" in succeed(capsys, *command)) == doubtful
    assert ("do not trust" in (tmp_path / "a.html").read_text(encoding="utf-8")) == doubtful
    (guess,) = asked(capsys, "classify", scan)["predictions"]
    assert guess["do_not_trust"] is doubtful


def test_trained_models_are_listed_and_shown(capsys):
    printed = succeed(capsys, "zoo", "--pretrained")
    (cells,) = [row.split() for row in printed.splitlines() if row.startswith(NAME)]
    assert cells == [NAME, "1,234", "none", "50.0", "all", "shapes10"]
    (row,) = asked(capsys, "zoo", "--pretrained")
    assert (row["model"], row["accuracy"]["64"]["high"]) == (NAME, 0.6)
    shown = succeed(capsys, "zoo", "--pretrained", NAME)
    facts = ("for nobody", "64 points 50.0 % (40.0 to 60.0)", "ball, box, rod", "unit-sphere")
    assert all(words in shown for words in (*facts, "AUROC of errors 0.875, calibration error 12.5 %"))
    assert asked(capsys, "zoo", NAME)["data_classes"] == ["ball", "box", "rod"]
