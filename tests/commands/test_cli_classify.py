"""`pointset classify`: the answer of the model in memory, for every kind of file, and every mistake in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import pointset
from pointset.cli import main
from pointset.commands import classify
from pointset.data import normalize_points
from pointset.training.recipe import Recipe

CLOUD = np.random.default_rng(0).normal(size=(700, 3)) * 5 + 3


@pytest.fixture(scope="module")
def runs(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Finished runs by the names of their models."""
    folder = tmp_path_factory.mktemp("runs")
    train = pointset.load_dataset(clouds_folder, "train", 24, normalize="standardize")
    for name in ("isab4-pma", "sab-max"):
        model = pointset.create_model(name, classes=3, dim=16, heads=2)
        pointset.fit(model, train, Recipe(epochs=1), run=folder / name)
    return folder


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    np.save(tmp_path / "scan.npy", CLOUD)
    return tmp_path / "scan.npy"


def succeed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    main(["classify", "--model", *map(str, arguments)])
    return capsys.readouterr().out


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as left:
        main(["classify", "--model", *map(str, arguments)])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.err.count("\n") == 1
    return captured.err


def expected(run: Path, cloud: np.ndarray) -> dict[str, float]:
    """Classes and probabilities of the model in memory, the likeliest first."""
    model, description = pointset.load_run(run)
    points = normalize_points(torch.from_numpy(cloud).float()[None], "standardize")
    probabilities = model(points)[0].softmax(0).tolist()
    pairs = zip(description["data"]["classes"], probabilities, strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


@pytest.mark.parametrize(("name", "streamed"), [("isab4-pma", True), ("sab-max", False)])
def test_the_answer_is_that_of_the_model_in_memory(runs, scan, capsys, name: str, streamed: bool) -> None:
    (found,) = json.loads(succeed(capsys, runs / name, scan, "--json"))
    answer = expected(runs / name, CLOUD)
    assert [one["class"] for one in found["classes"]] == list(answer)
    np.testing.assert_allclose([one["probability"] for one in found["classes"]], list(answer.values()), atol=1e-5)
    assert found["file"] == str(scan)
    assert found["points"] == 700
    assert found["streamed"] is streamed
    assert 0 < found["seconds"] < 60


def test_several_files_of_several_kinds(runs, scan, tmp_path, capsys) -> None:
    np.savetxt(tmp_path / "scan.xyz", CLOUD)
    np.savez(tmp_path / "scan.npz", CLOUD)
    files = [scan, tmp_path / "scan.xyz", tmp_path / "scan.npz"]
    found = json.loads(succeed(capsys, runs / "isab4-pma", *files, "--json"))
    assert [one["file"] for one in found] == list(map(str, files))
    for one in found:
        assert one["classes"][0]["probability"] == pytest.approx(found[0]["classes"][0]["probability"], abs=1e-5)


def test_people_get_a_table(runs, scan, capsys) -> None:
    printed = succeed(capsys, runs / "isab4-pma", scan)
    assert printed.startswith(f"{scan}: 700 points in 0.")
    best, probability = next(iter(expected(runs / "isab4-pma", CLOUD).items()))
    assert printed.splitlines()[3].split() == [best, f"{100 * probability:.1f}"]
    assert "as a whole" in succeed(capsys, runs / "sab-max", scan)


def test_five_classes_are_enough(clouds_folder, runs, scan, monkeypatch, capsys) -> None:
    monkeypatch.setattr(classify, "BEST", 2)
    assert len(json.loads(succeed(capsys, runs / "isab4-pma", scan, "--json"))[0]["classes"]) == 2


def test_a_mesh_is_sampled_as_for_the_training(runs, tmp_path, capsys) -> None:
    (tmp_path / "one.off").write_text("OFF 4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n")
    (found,) = json.loads(succeed(capsys, runs / "isab4-pma", tmp_path / "one.off", "--json"))
    assert found["points"] == 24


def test_a_large_scan_that_cannot_stream_is_refused(runs, scan, monkeypatch, capsys) -> None:
    monkeypatch.setattr(classify, "MOST_WHOLE", 699)
    error = fail(capsys, runs / "sab-max", scan)
    assert "scan.npy has 700 points, more than 699, and encoder.0 is a SAB, where every point reads every" in error
    succeed(capsys, runs / "isab4-pma", scan)


def test_mistakes_are_one_line(runs, tmp_path, capsys) -> None:
    assert "files" in fail(capsys, runs / "isab4-pma").lower()
    assert "is not a run" in fail(capsys, tmp_path, tmp_path / "scan.npy")
    assert "gone.npy: cannot be read: No such file" in fail(capsys, runs / "isab4-pma", tmp_path / "gone.npy")
    assert "ends in one of .npy" in fail(capsys, runs / "isab4-pma", tmp_path / "notes.doc")
    broken = CLOUD.copy()
    broken[500] = np.nan
    np.save(tmp_path / "broken.npy", broken)
    assert "point 500 has a number that is not finite" in fail(capsys, runs / "isab4-pma", tmp_path / "broken.npy")
    np.save(tmp_path / "heap.npy", np.full((70_000, 3), 0.5))
    error = fail(capsys, runs / "isab4-pma", tmp_path / "heap.npy")
    assert "heap.npy: the cloud has no extent: all its 70,000 points are at [0.5, 0.5, 0.5]" in error
