"""`pointset train --target`, `evaluate` and `predict`: numbers of shapes on the command line."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command_line import succeed

import pointset
from pointset import cli


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Path:
    """Forty clouds of boxes in one folder, with their volumes and lengths."""
    folder, rng = tmp_path_factory.mktemp("parts"), np.random.default_rng(0)
    rows = [["file", "volume", "length"]]
    for number in range(40):
        sides = 10 ** rng.uniform(0, 1) * rng.uniform(0.5, 1.5, 3)
        np.save(folder / f"box{number}.npy", rng.uniform(-0.5, 0.5, (64, 3)) * sides)
        rows.append([f"box{number}.npy", sides.prod(), sides.max()])
    with (folder / "targets.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder


@pytest.fixture(scope="module")
def trained(parts, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "ridge"
    arguments = ("--target", "volume", "length", "--points", 64, "--run", folder)
    cli.main([*map(str, ("train", "features+surface-ridge", "--data", parts, *arguments))])
    return folder


def test_the_best_within_a_budget(parts, tmp_path, capsys) -> None:
    target, size = ("--target", "volume"), ("--points", 32, "--budget", "1s", "--run", tmp_path / "run")
    printed = succeed(capsys, "train", "--data", parts, *target, *size)
    for word in ("R2", "features-ridge", "chosen", "pointset predict"):
        assert word in printed
    model, description = pointset.load_run(tmp_path / "run")
    assert (model.targets, description["data"]["target"]) == (("volume",), ["volume"])
    again = json.loads(succeed(capsys, "train", "--data", parts, *target, *size, "--json"))
    assert again["candidates"][0]["accuracy"] > 0.5


def test_a_network_with_intervals(parts, tmp_path, capsys) -> None:
    run, options = tmp_path / "run", ("--points", 32, "--epochs", 2, "--dim", 8, "--loss", "gaussian")
    printed = succeed(capsys, "train", "rff-max", "--data", parts, "--target", "volume", *options, "--run", run)
    assert "validation R2" in printed
    result = json.loads(succeed(capsys, "evaluate", "--model", run, "--level", "0.8", "--json"))
    assert (result["shapes"], result["level"]) == (8, 0.8)
    assert set(result["targets"]["volume"]) == {"r2", "mae", "rmse", "coverage", "width"}
    printed = succeed(capsys, "predict", parts / "box1.npy", "--model", run, "--level", "0.9")
    assert "too few shapes (6) were held out" in printed


def test_evaluate_and_predict_agree_with_the_truth(parts, trained, tmp_path, capsys) -> None:
    assert "in 90% interval" in succeed(capsys, "evaluate", "--model", trained, "-o", tmp_path / "test.csv")
    with (tmp_path / "test.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"name", "volume_true", "volume", "volume_low", "volume_high", "length", "points"} <= set(rows[0])
    succeed(capsys, "predict", parts, "--model", trained, "-o", tmp_path / "all.json")
    content = json.loads((tmp_path / "all.json").read_text())
    assert content["targets"] == ["volume", "length"]
    by_name = {row["name"]: row for row in content["predictions"]}
    for row in rows:
        assert by_name[row["name"]]["volume"] == pytest.approx(float(row["volume"]), rel=0.1)  # other pairs of points
        assert 0.2 < float(row["volume"]) / float(row["volume_true"]) < 5
        assert float(row["volume_low"]) < float(row["volume"]) < float(row["volume_high"])
    printed = succeed(capsys, "predict", parts / "box1.npy", parts / "box2.npy", "--model", trained)
    assert "length: 90% interval" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("classify", "{parts}", "--model", "{trained}"), ["pointset predict --model {trained}"]),
        (("attend", "{parts}/box1.npy", "--model", "{trained}"), ["numbers"]),
        (("predict", "{parts}", "--model", "rff-max.modelnet40-1024"), ["pointset classify"]),
        (("predict", "{parts}"), ["--model"]),
        (("predict", "{parts}", "--model", "{trained}", "--level", "1"), ["level", "(0, 1)"]),
        (("predict", "{trained}", "--model", "{trained}"), ["is a run"]),
        (("evaluate", "--model", "{trained}", "--calibrate"), ["calibrate"]),
        (("train", "--data", "{parts}", "--target", "mass"), ["column 'mass'", "volume, length"]),
        (("train", "features-svm", "--data", "{parts}", "--target", "volume", "--points", "64"), ["features-ridge"]),
        (("train", "features-ridge", "--data", "shapes10", "--points", "64"), ["numbers", "features-svm"]),
    ],
)
def test_what_does_not_fit_is_refused(arguments, words, parts, trained, capsys) -> None:
    places = {"parts": parts, "trained": trained}
    with pytest.raises(SystemExit) as left:
        cli.main([argument.format(**places) for argument in arguments])
    message = capsys.readouterr().err
    assert left.value.code == 2
    for word in words:
        assert word.format(**places) in message
    assert message.count("\n") == 1 + message.count("warning")
