"""A model of coordinates and normals, from `train --features normals` to every command with a trained model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import asked, fail

from pointset.cli import main
from pointset.data import read_mesh, sample_points
from pointset.data.axes import turned_up

OFF = "OFF\n4 4 6\n0 0 0\n{size} 0 0\n0 {size} 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"

pytestmark = pytest.mark.filterwarnings("ignore:of clouds with more points")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Meshes, and a run on them."""
    folder = tmp_path_factory.mktemp("features")
    for number in range(8):
        place = folder / "parts" / f"class{number % 2}" / ("test" if number > 5 else "train")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.off").write_text(OFF.format(size=1 + number))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSET_HOME", str(folder / "home"))
        sizes = ("--points", "16", "--pool-points", "32", "--dim", "8", "--heads", "2", "--epochs", "1")
        options = (*sizes, "--features", "normals", "--run", str(folder / "run"), "--augment", "rotate-up")
        main(["train", "isab4-pma", "--data", str(folder / "parts"), *options])
    return folder


def test_the_run_is_tested_and_looked_at(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSET_HOME", str(folder / "home"))
    run = ("--model", folder / "run")
    assert asked(capsys, "evaluate", *run)["shapes"] == 2
    mesh = folder / "parts" / "class0" / "test" / "6.off"
    assert asked(capsys, "attend", mesh, *run, "-o", folder / "a.html")["prediction"].startswith("class")
    description = json.loads((folder / "run" / "run.json").read_text())
    assert (description["model"]["inputs"], description["data"]["features"]) == (6, ["normals"])


@pytest.mark.filterwarnings("ignore:the files are declared")
def test_clouds_with_normals_are_turned_with_them(folder: Path, capsys: Any) -> None:
    mesh = read_mesh(folder / "parts" / "class1" / "test" / "7.off")
    rows = np.hstack(sample_points(mesh, 50, seed=0, normals=True))
    np.save(folder / "upright.npy", rows)
    np.save(folder / "lying.npy", turned_up(rows, "z", "y", normals=True))
    found = {}
    for name, up in (("upright", "auto"), ("lying", "y"), ("lying", "z")):
        told = asked(capsys, "classify", folder / f"{name}.npy", "--model", folder / "run", "--up", up)
        classes = told["predictions"][0]["classes"]
        found[name, up] = {one["class"]: one["probability"] for one in classes}["class0"]
    assert found["lying", "y"] == pytest.approx(found["upright", "auto"], abs=1e-5)
    assert found["lying", "z"] != pytest.approx(found["upright", "auto"], abs=1e-5)


def test_a_cloud_without_normals_is_refused_by_name(folder: Path, capsys: Any) -> None:
    np.save(folder / "bare.npy", np.eye(3))
    said = fail(capsys, "classify", folder / "bare.npy", "--model", folder / "run")
    assert "bare.npy: lacks the feature 'normals'" in said
