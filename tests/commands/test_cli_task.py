"""`pointset task`, and `pointset compare FILE` for a set problem."""

import json
from pathlib import Path

import pytest
from command_line import fail, succeed

FILE = """
title = "Two of them"
task = "max-regression"
seeds = [0, 1]
models = ["rFF + max", { name = "SAB + PMA", label = "attention", weights = "sparsemax" }]
[model]
dim = 8
heads = 2
[recipe]
steps = 3
batch_size = 4
"""
SHORT = ("max-regression", "--steps", "3", "--seeds", "0", "--workers", "1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(FILE)


@pytest.mark.slow
def test_a_task_by_name(capsys, tmp_path):
    out = succeed(capsys, "task", *SHORT, "--models", "SAB + PMA", "rFF + max")
    assert "Max regression, 1 seed, 3 steps of 128 sets, width 64" in out
    assert "0.1355 ± 0.0074" in out
    assert "rFF + mean" not in out
    assert "saved in runs/max-regression: report.html, table.md, results.csv, results.json" in out
    states = json.loads(succeed(capsys, "task", *SHORT[:-2], "--status", "--json"))
    assert [one["model"] for one in states] == ["rFF + mean", "rFF + sum", "rFF + max", "SAB + PMA"]
    assert [one["state"] for one in states] == ["waiting", "waiting", "finished", "finished"]
    whole = json.loads(succeed(capsys, "task", *SHORT, "--models", "rFF + max", "--json"))
    assert [row["model"] for row in whole["rows"]] == ["rFF + max"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", "task"])
def test_a_file_on_a_task(command, capsys, tmp_path):
    out = succeed(capsys, command, "two.toml", "--seeds", "1", "--workers", "1")
    assert "attention" in out
    assert "saved in runs/two: report.html" in out
    shown = succeed(capsys, command, "two.toml", "--status")
    assert shown.count("finished") == 2
    assert shown.count("waiting") == 2
    assert (tmp_path / "runs" / "two" / "runs" / "attention-seed1" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["task", "max-reg"], "no task is called 'max-reg': did you mean max-regression"),
        (["task", "max-regression", "--models", "SAB"], "'SAB' is not a row of the experiment: choose from rFF + mean"),
        (["task", "max-regression", "--steps", "0"], "got 0"),
        (["task", "max-regression", "--data", "images"], "'data' is unknown: did you mean"),
        (["compare", "two.toml", "--data", "x"], "'data' is unknown: did you mean"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_one_line_and_nothing_is_written(arguments, words, capsys, tmp_path):
    assert words in fail(capsys, *arguments)
    assert {path.name for path in Path(tmp_path).iterdir()} == {"two.toml"}
