"""`pointset train --target`, `evaluate` and `predict`: numbers of shapes on the command line."""

import csv
import json

import pytest
from command_line import asked, succeed

import pointset


def test_the_best_within_a_budget(solids, tmp_path, capsys) -> None:
    target, size = ("--target", "volume"), ("--points", 32, "--budget", "1s", "--run", tmp_path / "run")
    printed = succeed(capsys, "train", "--data", solids, *target, *size)
    for word in ("R2", "features-ridge", "chosen", "pointset predict"):
        assert word in printed
    model, description = pointset.load_run(tmp_path / "run")
    assert (model.targets, description["data"]["target"]) == (("volume",), ["volume"])
    again = asked(capsys, "train", "--data", solids, *target, *size)
    assert again["candidates"][0]["accuracy"] > 0.5


def test_a_network_with_intervals(solids, tmp_path, capsys) -> None:
    run, options = tmp_path / "run", ("--points", 32, "--epochs", 2, "--dim", 8, "--loss", "gaussian")
    printed = succeed(capsys, "train", "rff-max", "--data", solids, "--target", "volume", *options, "--run", run)
    assert "validation R2" in printed
    result = asked(capsys, "evaluate", "--model", run, "--level", "0.8")
    assert (result["shapes"], result["level"]) == (8, 0.8)
    assert set(result["targets"]["volume"]) == {"r2", "mae", "rmse", "coverage", "width"}
    printed = succeed(capsys, "predict", solids / "1.npy", "--model", run, "--level", "0.9")
    assert "too few shapes (6) were held out" in printed


def test_evaluate_and_predict_agree_with_the_truth(solids, numbers_run, tmp_path, capsys) -> None:
    assert "in 90% interval" in succeed(capsys, "evaluate", "--model", numbers_run, "-o", tmp_path / "test.csv")
    with (tmp_path / "test.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {"name", "volume_true", "volume", "volume_low", "volume_high", "height", "points"} <= set(rows[0])
    succeed(capsys, "predict", solids, "--model", numbers_run, "-o", tmp_path / "all.json")
    content = json.loads((tmp_path / "all.json").read_text())
    assert content["targets"] == ["volume", "height"]
    by_name = {row["name"]: row for row in content["predictions"]}
    for row in rows:
        assert by_name[row["name"]]["volume"] == pytest.approx(float(row["volume"]), rel=0.1)  # other pairs of points
        assert 0.2 < float(row["volume"]) / float(row["volume_true"]) < 5
        assert float(row["volume_low"]) < float(row["volume"]) < float(row["volume_high"])
    printed = succeed(capsys, "predict", solids / "1.npy", solids / "2.npy", "--model", numbers_run)
    assert "height: 90% interval" in printed
