"""`pointset compare` and `pointset task`: plans, progress, tables and failures."""

import re
from pathlib import Path

import pytest
from command_line import asked, fail_late, succeed

from pointset.commands.terminal import in_hours
from pointset.runs import records

FILE = """
title = "Two of them"
data = "{data}"
points = [24, 9]
seeds = [0, 1]
robustness_seeds = [1]
models = ["rff-max", {{ name = "isab4-pma", label = "attention" }}]
[model]
dim = 16
[recipe]
epochs = 1
[published.rff-max]
24 = [0.5, 0.1, 5]
"""

TASK = """
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


@pytest.fixture
def file(clouds_folder, tmp_path) -> str:
    (tmp_path / "two.toml").write_text(FILE.format(data=clouds_folder))
    return "two.toml"


@pytest.mark.slow
def test_a_file_from_first_look_to_table(capsys, file, tmp_path):
    """Plan, state, half of the runs, state, all of the runs, and nothing left."""
    plan = asked(capsys, "compare", file, "--dry-run", "--workers", "2")
    assert [(one["model"], one["points"], one["runs"]) for one in plan["runs"]] == [
        (label, points, 2) for points in (24, 9) for label in ("rff-max", "attention")
    ]
    assert plan["seconds"] == pytest.approx(sum(one["seconds"] for one in plan["runs"]))
    assert plan["workers"] == 2
    assert not (tmp_path / "runs").exists()

    half = succeed(capsys, "compare", file, "--seeds", "0", "--workers", "1")
    assert "24 / 9 points, 1 seed, 1 epoch, width 16" in half
    assert "saved in runs/two: report.html" in half
    assert "next:\n  python -m webbrowser runs/two/report.html\n  pointset evaluate --model runs/two/runs/" in half
    assert "  pointset attend SHAPE.off --model runs/two/runs/attention-n" in half
    states = asked(capsys, "compare", file, "--status")
    assert [(one["seed"], one["state"]) for one in states] == [(0, "finished")] * 4 + [(1, "waiting")] * 4
    assert all((one["accuracy"] is not None) == (one["seed"] == 0) for one in states)
    plan = asked(capsys, "compare", file, "--dry-run")
    assert [one["runs"] for one in plan["runs"]] == [1] * 4

    whole = asked(capsys, "compare", file, "--workers", "1")
    assert [(row["model"], row["points"], row["seeds"]) for row in whole["rows"]] == [
        (label, points, 2) for points in (24, 9) for label in ("rff-max", "attention")
    ]
    assert whole["rows"][0]["metrics"]["accuracy"]["published"] == [0.5, 0.1, 5]
    assert len(list((tmp_path / "runs" / "two" / "runs").glob("*seed1/robustness.json"))) == 4
    assert not list((tmp_path / "runs" / "two" / "runs").glob("*seed0/robustness.json"))
    assert asked(capsys, "compare", file, "--dry-run")["runs"] == []
    shown = succeed(capsys, "compare", file, "--status")
    assert shown.count("finished") == 8
    assert f"{100 * whole['runs'][0]['metrics']['accuracy']:.1f}" in shown

    stale = tmp_path / "runs" / "two" / "figures" / "learning-curves-n8.png"
    records.write(stale, b"of a report by an earlier version")
    assert "saved in runs/two: report.html" in succeed(capsys, "compare", file, "--report")
    assert not stale.exists()
    page = (tmp_path / "runs" / "two" / "report.html").read_text(encoding="utf-8")
    assert " --report" not in page, "the command repeats the runs"


@pytest.mark.slow
def test_a_plan_as_text(capsys, file, tmp_path):
    shown = succeed(capsys, "compare", file, "--dry-run", "--workers", "2")
    succeed(capsys, "compare", file, "--status")
    assert [path.name for path in tmp_path.iterdir()] == ["two.toml"], "nothing is run"
    assert re.search(r"attention +9 +2 +[\d.]+ +0:\d\d:\d\d\n", shown)
    assert re.search(r"0:\d\d:\d\d of training in total, about 0:\d\d:\d\d with 2 at once; testing not included", shown)


def test_some_rows_of_a_file(capsys, file):
    states = asked(capsys, "compare", file, "--models", "attention", "--seeds", "1", "7", "--status")
    assert [(one["model"], one["points"], one["seed"]) for one in states] == [
        ("attention", points, seed) for seed in (1, 7) for points in (24, 9)
    ]
    states = asked(capsys, "compare", file, "--models", "attention", "rff-max", "--status")
    assert [one["model"] for one in states[:2]] == ["rff-max", "attention"], "in the order of the file"


def test_flags_alone_make_an_experiment_of_one_size(capsys, clouds_folder):
    chosen = ("--data", str(clouds_folder), "--models", "rff-mean", "rff-max", "--points", "7", "--seeds", "5")
    states = asked(capsys, "compare", *chosen, "--status")
    assert [(one["model"], one["points"], one["seed"]) for one in states] == [("rff-mean", 7, 5), ("rff-max", 7, 5)]


@pytest.mark.slow
def test_a_failed_run_is_code_2_after_the_table_of_the_others(capsys, file, tmp_path):
    text = (
        Path(file)
        .read_text(encoding="utf-8")
        .replace("points = [24, 9]", "points = 24")
        .replace("robustness_seeds = [1]", "")
    )
    Path(file).write_text(
        text.replace('"rff-max",', '"rff-max", { name = "sab-max", temperature = 1e-60 },'), encoding="utf-8"
    )
    out, error = fail_late(capsys, "compare", file, "--workers", "1", "--seeds", "0")
    assert "attention" in out
    assert "accuracy %" in out
    assert "1 of 3 runs failed (sab-max temperature=1e-60, 24 points, seed 0: the loss became" in error
    assert error.endswith("run the same command to try again\n")
    states = asked(capsys, "compare", file, "--seeds", "0", "--status")
    assert [one["state"] for one in states] == ["finished", "failed", "finished"]
    assert "the loss became" in states[1]["reason"]


@pytest.mark.slow
def test_a_task_by_name(capsys, tmp_path):
    out = succeed(capsys, "compare", *SHORT, "--models", "SAB + PMA", "rFF + max")
    assert "Max regression, 1 seed, 3 steps of 128 sets, width 64" in out
    assert "0.1355 ± 0.0074" in out
    assert "rFF + mean" not in out
    assert "saved in runs/max-regression: report.html, table.md, results.csv, results.json" in out
    states = asked(capsys, "compare", *SHORT[:-2], "--status")
    assert [one["model"] for one in states] == ["rFF + mean", "rFF + sum", "rFF + max", "SAB + PMA"]
    assert [one["state"] for one in states] == ["waiting", "waiting", "finished", "finished"]
    whole = asked(capsys, "compare", *SHORT, "--models", "rFF + max")
    files = ("-o", "runs/max-regression", "t.tex", "t.md", "--spread", "deviation")
    succeed(capsys, "compare", *SHORT, *files, "--report")
    assert (tmp_path / "t.tex").read_text().startswith(r"\begin{tabular}{lrlr")
    assert "interval" not in (tmp_path / "t.md").read_text()
    assert [row["model"] for row in whole["rows"]] == ["rFF + max"]


@pytest.mark.slow
def test_a_file_on_a_task(capsys, tmp_path):
    (tmp_path / "two.toml").write_text(TASK)
    out = succeed(capsys, "compare", "two.toml", "--seeds", "1", "--workers", "1")
    assert "attention" in out
    assert "saved in runs/two: report.html" in out
    shown = succeed(capsys, "compare", "two.toml", "--status")
    assert shown.count("finished") == 2
    assert shown.count("waiting") == 2
    assert (tmp_path / "runs" / "two" / "runs" / "attention-seed1" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0:00:00"), (59.6, "0:01:00"), (3599.4, "0:59:59"), (100_000, "1 day, 3:46:40")]
)
def test_times_in_hours(seconds, words):
    assert in_hours(seconds) == words
