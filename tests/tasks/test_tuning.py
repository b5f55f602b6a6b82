"""`pointset tune`: a search on the validation split that can be killed, and whose result is an experiment."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import toy
from command_line import fail, succeed
from damage import kill_at

import pointset
from pointset.cli import main
from pointset.tasks.shipped import shipped_experiment
from pointset.training.loop import Training

SEARCH = """
data = "{data}"
points = [16]
seeds = [0, 1]
models = ["rff-max", {{ name = "isab4-pma", label = "ISAB & PMA", heads = 2 }}]
[published."ISAB & PMA"]
16 = [0.5, 0.1, 3]
[published.rff-max]
16 = [0.4, 0.1, 3]
[model]
dim = 8
[recipe]
epochs = 3
clip_norm = "none"
[search]
learning_rate = {{ low = 1e-4, high = 1e-1, log = true }}
batch_size = {{ low = 8, high = 32, step = 8 }}
augment = [["scale", "jitter"], ["scale"]]
dropout = [0.0, 0.5]
"""


@pytest.fixture
def file(clouds_folder, tmp_path) -> Path:
    (tmp_path / "mine.toml").write_text(SEARCH.format(data=clouds_folder))
    return tmp_path / "mine.toml"


def shown(printed: str) -> list[dict[str, Any]]:
    return json.loads(printed)["trials"]


@pytest.mark.slow
def test_the_best_values_are_an_experiment_for_compare(file, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["tune", file, "--workers", "1", "--out", out]
    best, *others = shown(succeed(capsys, *command, "--trials", "3", "--json"))
    assert len(others) == 2
    assert all(best["validation"] >= other["validation"] for other in others)
    assert 1e-4 <= best["learning_rate"] <= 1e-1
    assert best["batch_size"] in (8, 16, 24, 32)

    before, after = pointset.read_experiment(file_without_search(file)), pointset.read_experiment(out / "best.toml")
    values = {name: best[name] for name in ("learning_rate", "batch_size")}
    assert after.recipe == before.recipe.changed(values | {"augment": best["augment"]})
    assert after.model == before.model.changed({"dropout": best["dropout"]})
    assert (after.task, after.seeds, after.labels) == (before.task, before.seeds, [best["models"]])
    assert after.entry(best["models"]) == before.entry(best["models"])
    assert after.published == {best["models"]: before.published[best["models"]]}
    assert "waiting" in succeed(capsys, "compare", out / "best.toml", "--out", tmp_path / "compare", "--status")

    printed = succeed(capsys, *command, "--trials", "4")
    assert "best of 4 trials" in printed
    assert f"pointset compare {out / 'best.toml'}" in printed
    assert "search" in fail(capsys, *command, "--seed", "1")


def file_without_search(file: Path) -> Path:
    copy = file.with_name("plain.toml")
    copy.write_text(file.read_text(encoding="utf-8").partition("[search]")[0])
    return copy


@pytest.mark.slow
def test_a_search_that_was_killed_ends_as_one_that_was_not(file, tmp_path, capsys):
    def command(out: str) -> list[str]:
        return ["tune", str(file), "--trials", "3", "--workers", "1", "--out", str(tmp_path / out), "--json"]

    kill_at(5, Training, "_save", main, command("killed"))  # in the second epoch of the second trial
    killed, whole = (shown(succeed(capsys, *command(out))) for out in ("killed", "whole"))
    for rows in (killed, whole):
        for row in rows:
            del row["trial"]  # the killed trial has a second number
    assert killed == whole
    assert {row["epochs"] for row in killed} == {3}
    assert not (tmp_path / "killed" / "trials" / "2" / "history.jsonl").exists(), "the second trial has been continued"


@pytest.mark.slow
def test_the_test_split_is_not_read_and_bad_trials_end_early(file, clouds_folder, tmp_path, capsys):
    shutil.copytree(clouds_folder, tmp_path / "data")
    (tmp_path / "data" / "ply_data_test0.h5").write_bytes(b"nothing")
    search = file.read_text().partition("[search]")[0]
    search = search.replace("epochs = 3", "epochs = 7\nbatch_size = 8").replace("dim = 8", "dim = 16\ndropout = 0.0")
    search += '[search]\nlearning_rate = [1e-9, 1e-2, 3e-2]\nclass_weights = ["balanced", "ball=1", "disc=2"]\n'
    file.write_text(search)
    command = ["tune", file, "--data", tmp_path / "data", "--trials", "12", "--workers", "1", "--json"]
    rows = shown(succeed(capsys, *command, "--out", tmp_path / "out"))
    early = [row for row in rows if row["state"] == "ended early"]
    assert early
    assert all(5 <= row["epochs"] < 7 for row in early)
    assert rows[0]["state"] == "trained"
    assert rows[0]["learning_rate"] > 1e-9
    (reason,) = {row["state"] for row in rows if not row["epochs"]} - {"trained", "ended early"}
    assert "disc" in reason, "trials that cannot be trained are among the others"
    assert pointset.read_experiment(tmp_path / "out" / "best.toml").recipe.learning_rate > 1e-9


@pytest.mark.slow
def test_numbers_are_judged_by_r2(tmp_path, capsys):
    folder = toy.write_boxes(tmp_path / "boxes", 24)
    content = f'task = "regression"\nmodels = ["rff-max"]\npoints = [16]\ndata = "{folder}"\n'
    content += '[sets]\ntarget = ["height"]\n'
    content += "[model]\ndim = 8\n[recipe]\nepochs = 2\n[search]\nbatch_size = [4, 8]\n"
    (tmp_path / "numbers.toml").write_text(content, encoding="utf-8")
    command = ("tune", tmp_path / "numbers.toml", "--trials", "2", "--workers", "1", "--out", out := tmp_path / "out")
    best, other = shown(succeed(capsys, *command, "--json"))
    assert 1 > best["validation"] >= other["validation"]
    assert pointset.read_experiment(out / "best.toml").recipe.batch_size == best["batch_size"]


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("", r"table \[search\]"),
        ("learning_rat = [1, 2]", "learning_rate"),
        ("learning_rate = [1e-3, -1.0]", r"learning_rate .*-1\.0"),
        ("learning_rate = {low = 1e-3}", "search.learning_rate .* low and high"),
        ("learning_rate = {low = 0.0, high = 1.0, log = true}", "learning_rate .* 0"),
        ("dropout = {low = 0.9, high = 1.5}", r"dropout .*1\.5"),
        ("epochs = {low = 1, high = 5, logarithmic = true}", "search.epochs"),
        ("dim = 64", "search.dim"),
        ("heads = [2, 4]", "heads is given for a model"),
    ],
)
def test_a_wrong_search_is_one_line_that_names_the_file(search, words, file, tmp_path, capsys):
    models = '["rff-max", { name = "isab4-pma", heads = 2 }]' if search else '["rff-max"]'
    file.write_text(f"models = {models}\n[search]\n{search}\n")
    said = fail(capsys, "tune", file, "--out", tmp_path / "out")
    assert said.startswith(f"pointset: {file}: ")
    assert re.search(words, said)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_tuned_is_said(file, tmp_path, capsys, monkeypatch):
    content = file.read_text()
    file.write_text(
        content.replace('"rff-max"', '"features-svm"').replace("published.rff-max", "published.features-svm")
    )
    assert "features-svm" in fail(capsys, "tune", file)
    file.write_text('task = "max-regression"\n[search]\nlearning_rate = [1e-3, 1e-2]\n')
    assert "regression" in fail(capsys, "tune", file)
    assert "--data" in fail(capsys, "tune")
    assert "validation" in fail(capsys, "tune", shipped_experiment("tune"), "--validation", "0")
    monkeypatch.setattr("pointset.errors.find_spec", lambda name: None)
    assert "pip install 'pointset-learn[tune]'" in fail(capsys, "tune", "--data", "shapes10")
