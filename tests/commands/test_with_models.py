"""Commands with a trained model: `attend` and `embed`, models of normals, those of the package, the default."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import asked, fail, succeed
from toy import bumpy, save, ship

from pointset.cli import main
from pointset.commands import trained as trained_models
from pointset.data import read_mesh, sample_points
from pointset.data.axes import rotate_up
from pointset.runs import records
from pointset.zoo import pretrained

pytestmark = pytest.mark.filterwarnings("ignore:of clouds with more points")
BOX = "OFF\n4 4 0\n0 0 0\n2 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"


@pytest.fixture
def shape(tmp_path) -> Path:
    (tmp_path / "box.off").write_text(BOX)
    return tmp_path / "box.off"


BEGINS = {"png": b"\x89png", "pdf": b"%pdf", "ply": b"ply\n", "glb": b"gltf"}


@pytest.mark.slow
@pytest.mark.parametrize("suffix", BEGINS)
def test_every_format_is_written(suffix, isab_run, shape, tmp_path, capsys):
    output = tmp_path / f"box.{suffix}"
    printed = succeed(capsys, "attend", shape, "--model", isab_run, "-o", output, "--points", "60", "--width", "column")
    assert output.read_bytes()[:20].lower().startswith(BEGINS[suffix])
    assert printed.startswith("box.off: ")
    assert "%)" in printed
    assert f"saved in {output}" in printed


def test_explanations_are_checked_and_layers_are_told_to_programs(isab_run, shape, tmp_path, capsys):
    command = ("attend", shape, "--model", isab_run, "-o", tmp_path / "box.html", "--points", "60", "--check")
    assert "occlusion" in succeed(capsys, *command)
    found = asked(capsys, *command, "--layer", "encoder.0.reads", "--head", "1", "--query", "3")
    assert {"attention", "occlusion", "random"} <= set(found["checks"])
    assert all(0 <= area <= 1 for areas in found["checks"].values() for area in areas.values())
    assert found["prediction"] in ("ball", "box", "rod")
    assert 1 / 3 <= found["confidence"] <= 1
    assert found["layers"][0] == {"layer": "encoder.0.reads", "kind": "reads", "shape": [2, 4, 60]}


def test_a_folder_is_drawn_as_a_gallery(isab_run, tmp_path, capsys):
    for name in ("box/a.off", "box/b.off", "rod/c.off", "rod/d.off"):
        (tmp_path / "shapes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shapes" / name).write_text(BOX)
    command = ("attend", tmp_path / "shapes", "--model", isab_run, "--points", "20")
    assert asked(capsys, *command, "-o", tmp_path / "gallery.html")["shapes"] == 4
    assert '"specificity"' in (tmp_path / "gallery.html").read_text()
    said = fail(capsys, *command, "-o", tmp_path / "a.html", "--layer", "a", "--live")
    assert "--layer and --live cannot be used with a folder" in said
    assert ".html" in fail(capsys, *command, "-o", tmp_path / "a.png")


def test_models_are_compared_on_one_shape(isab_run, shape, tmp_path, capsys):
    other = shutil.copytree(isab_run, tmp_path / "other")
    command = ("attend", shape, "--model", isab_run, "--model", other, "--points", "60", "-o")
    found = asked(capsys, *command, tmp_path / "page.html")
    assert [one["model"] for one in found["models"]] == [str(isab_run), str(other)]
    assert found["points"] == 60
    assert f'"models":["{isab_run}: ' in (tmp_path / "page.html").read_text()
    asked(capsys, *command, tmp_path / "page.png")
    assert "--layer cannot be used with several models" in fail(capsys, *command, tmp_path / "a.html", "--layer", "a")
    assert ".ply" in fail(capsys, *command, tmp_path / "a.ply")
    assert "a gallery shows one model" in fail(capsys, *("attend", shape.parent, *command[2:]), tmp_path / "b.html")


@pytest.mark.filterwarnings("default:Glyph")
def test_letters_that_a_font_lacks_are_told_of_once(isab_run, shape, tmp_path, capsys):
    named = shape.rename(shape.with_name("椅子.off"))
    for suffix, times in ((".png", 1), (".svg", 0)):
        main(["attend", str(named), "--model", str(isab_run), "-o", str(tmp_path / f"a{suffix}")])
        assert capsys.readouterr().err.count("lacks some letters") == times


EMBEDDING = "isab16-pma.shapes10"


def test_near_duplicates_have_the_nearest_embeddings(tmp_path: Path, capsys) -> None:
    shapes, rows = tmp_path / "shapes", tmp_path / "rows.npz"
    for kind, scales in (("ball", (1, 1, 1)), ("rod", (0.1, 0.1, 1))):
        for number in range(3):
            save(shapes / kind / f"{number}.npy", bumpy(number, 300, scales=scales))
    np.save(shapes / "rod" / "copy.npy", 3 * np.random.default_rng(0).permutation(np.load(shapes / "rod/0.npy")))
    assert "7 shapes" in succeed(capsys, "embed", shapes, "-o", rows, "--model", EMBEDDING)
    saved = np.load(rows)
    names, embeddings = saved["name"].tolist(), saved["embedding"]
    distances = np.linalg.norm(embeddings - embeddings[names.index("rod/0.npy")], axis=1)
    nearest = [saved["true_class"][index] for index in distances.argsort()[:4]]
    assert names[distances.argsort()[1]] == "rod/copy.npy"
    assert nearest == ["rod"] * 4


@pytest.fixture(scope="module")
def normals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Meshes, and a run on them."""
    folder = tmp_path_factory.mktemp("features")
    for number in range(8):
        place = folder / "parts" / f"class{number % 2}" / ("test" if number > 5 else "train")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.off").write_text(BOX.replace("2 0 0", f"{1 + number} 0 0"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSET_HOME", str(folder / "home"))
        sizes = ("--points", "16", "--cache-points", "32", "--dim", "8", "--heads", "2", "--epochs", "1")
        options = (*sizes, "--features", "normals", "--run", str(folder / "run"), "--augment", "rotate-up")
        main(["train", "isab4-pma", "--data", str(folder / "parts"), *options])
    return folder


def test_a_run_with_normals_is_tested_and_looked_at(normals: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("POINTSET_HOME", str(normals / "home"))
    run = ("--model", normals / "run")
    assert asked(capsys, "evaluate", *run)["shapes"] == 2
    for number in range(6):
        new = normals / "new ones" / f"class{number % 2}" / f"{number}.off"
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(BOX)
    said = succeed(capsys, "evaluate", *run, "--data", normals / "new ones")
    assert "2 test shapes" in said
    assert f"a fifth of {normals / 'new ones'}, which has no split folders" in said
    assert f"`pointset classify '{normals / 'new ones'}' --model {normals / 'run'}`" in said
    mesh = normals / "parts" / "class0" / "test" / "6.off"
    assert asked(capsys, "attend", mesh, *run, "-o", normals / "a.html")["prediction"].startswith("class")
    description = json.loads((normals / "run" / "run.json").read_text())
    assert (description["model"]["inputs"], description["data"]["preparation"]["features"]) == (6, ["normals"])


@pytest.mark.filterwarnings("ignore:the files are declared")
def test_clouds_with_normals_are_turned_with_them_and_others_refused(normals: Path, capsys: Any) -> None:
    mesh = read_mesh(normals / "parts" / "class1" / "test" / "7.off")
    rows = np.hstack(sample_points(mesh, 50, seed=0, normals=True))
    np.save(normals / "upright.npy", rows)
    np.save(normals / "lying.npy", rotate_up(rows, "z", "y", normals=True))
    found = {}
    for name, up in (("upright", "auto"), ("lying", "y"), ("lying", "z")):
        told = asked(capsys, "classify", normals / f"{name}.npy", "--model", normals / "run", "--up", up)
        classes = told["predictions"][0]["classes"]
        found[name, up] = {one["class"]: one["probability"] for one in classes}["class0"]
    assert found["lying", "y"] == pytest.approx(found["upright", "auto"], abs=1e-5)
    assert found["lying", "z"] != pytest.approx(found["upright", "auto"], abs=1e-5)
    np.save(normals / "bare.npy", np.eye(3))
    said = fail(capsys, "classify", normals / "bare.npy", "--model", normals / "run")
    assert "bare.npy: lacks the feature 'normals'" in said


NAME = "isab4-pma.toy"


@pytest.fixture(scope="module")
def trained(clouds_folder, tmp_path_factory) -> Path:
    """The folder of trained models, with one in it."""
    folder = tmp_path_factory.mktemp("trained")
    ship(NAME, folder, clouds_folder, heads=2)
    return folder


@pytest.fixture
def shipped(trained, monkeypatch) -> Path:
    monkeypatch.setattr(pretrained, "FOLDER", trained)
    monkeypatch.setattr(trained_models, "USUAL", NAME)
    return trained


@pytest.fixture
def scan(tmp_path) -> Path:
    np.save(tmp_path / "scan.npy", np.random.default_rng(0).normal(size=(90, 3)))
    return tmp_path / "scan.npy"


def test_one_file_is_enough_and_the_model_is_said(shipped, scan, tmp_path, capsys):
    commands = (["classify", scan], ["attend", scan, "-o", tmp_path / "scan.ply"], ["evaluate"])
    for command in commands:
        assert f"model: {NAME}" in succeed(capsys, *command)
        assert "model: " not in succeed(capsys, *command, "--model", NAME)
    assert asked(capsys, *commands[2])["model"] == NAME


def test_probabilities_are_those_at_the_temperature_of_the_card(scan, shipped, tmp_path, capsys):
    shutil.copytree(shipped / NAME, tmp_path / "run")  # a run like any other, without the card
    both = [asked(capsys, "classify", scan, "--model", name) for name in (NAME, tmp_path / "run")]
    assert [one["temperature"] for one in both] == [2.0, 1.0]
    assert ["distance" in one["predictions"][0] for one in both] == [True, False]
    shares = [{one["class"]: one["probability"] for one in found["predictions"][0]["classes"]} for found in both]
    roots = {name: share**0.5 for name, share in shares[1].items()}
    assert shares[0] == pytest.approx({name: root / sum(roots.values()) for name, root in roots.items()}, abs=1e-5)
    drawn = asked(capsys, "attend", scan, "-o", tmp_path / "scan.ply")
    assert drawn["confidence"] == pytest.approx(max(shares[0].values()), abs=1e-5)


@pytest.mark.parametrize(("temperature", "doubtful"), [("0.001", False), ("1e9", True)])
def test_low_confidence_is_reported(temperature, doubtful, scan, shipped, tmp_path, capsys, monkeypatch):
    trained = shutil.copytree(shipped, tmp_path / "trained")
    card = trained / NAME / "card.toml"
    records.write_text(card, card.read_text().replace("= 2.0", f"= {temperature}"))
    monkeypatch.setattr(pretrained, "FOLDER", trained)
    (tmp_path / "more").mkdir()
    for number in range(6):
        shutil.copy(scan, tmp_path / "more" / f"{number}.npy")
    for command in (("classify", scan), ("classify", tmp_path / "more"), ("attend", scan, "-o", tmp_path / "a.html")):
        assert ("low confidence" in succeed(capsys, *command)) == doubtful
    assert ("low confidence" in (tmp_path / "a.html").read_text(encoding="utf-8")) == doubtful
    (guess,) = asked(capsys, "classify", scan)["predictions"]
    assert guess["low_confidence"] is doubtful


def test_trained_models_are_listed_and_shown(shipped, capsys):
    printed = succeed(capsys, "zoo", "--pretrained")
    (cells,) = [row.split() for row in printed.splitlines() if row.startswith(NAME)]
    assert cells == [NAME, "1,234", "none", "50.0", "all", "shapes10"]
    (row,) = asked(capsys, "zoo", "--pretrained")
    assert (row["model"], row["accuracy"]["64"]["high"]) == (NAME, 0.6)
    shown = succeed(capsys, "zoo", "--pretrained", NAME)
    facts = ("for nobody", "64 points 50.0 % (40.0 to 60.0)", "ball, box, rod", "unit-sphere")
    assert all(words in shown for words in (*facts, "airplanes 87.5 %"))
    assert asked(capsys, "zoo", NAME)["data_classes"] == ["ball", "box", "rod"]
