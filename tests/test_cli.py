"""The command line as a user meets it: exit codes, one clear line for a mistake, JSON where a program reads."""

import json

import pytest

from pointset.cli import MAIN_JOB, main
from pointset.zoo import list_models


def succeed(capsys, *arguments: str) -> str:
    main(arguments)
    return capsys.readouterr().out


def fail(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.out == ""
    assert captured.err.startswith("pointset: ")
    assert captured.err.count("\n") == 1, "one line"
    assert "Traceback" not in captured.err
    return captured.err


def test_train_then_evaluate(capsys, clouds_folder, tmp_path):
    run = str(tmp_path / "run")
    sizes = ("--points", "24", "--dim", "16", "--epochs", "2", "--augment", "scale", "jitter")
    printed = succeed(capsys, "train", "rff-max", "--data", str(clouds_folder), "--run", run, *sizes)
    assert f"now: pointset evaluate {run}" in printed
    found = json.loads(succeed(capsys, "evaluate", run, "--json"))
    assert found["shapes"] == 60
    assert set(found["per_class"]) == {"ball", "box", "rod"}
    assert "60 test shapes: accuracy" in succeed(capsys, "evaluate", run)


def test_compare_prints_a_table_and_says_where_it_is(capsys, clouds_folder, tmp_path):
    arguments = ("--data", str(clouds_folder), "--points", "24", "--dim", "16", "--epochs", "1", "--workers", "1")
    chosen = ("--models", "rff-max", "rff-mean", "--seeds", "0", "--out", str(tmp_path))
    printed = succeed(capsys, "compare", *arguments, *chosen)
    assert "rff-mean" in printed
    assert "accuracy %" in printed
    saved = json.loads(succeed(capsys, "compare", *arguments, *chosen, "--json"))
    assert [row["model"] for row in saved["rows"]] == ["rff-max", "rff-mean"]


def test_zoo_lists_every_model_with_its_size(capsys):
    rows = json.loads(succeed(capsys, "zoo", "--json", "--dim", "16"))
    assert [row["model"] for row in rows] == list_models()
    assert all(row["parameters"] > 0 for row in rows)


def test_data_list_and_show(capsys):
    names = [row["name"] for row in json.loads(succeed(capsys, "data", "list", "--json"))]
    assert {"shapes10", "modelnet10", "modelnet40", "modelnet40-hdf5"} <= set(names)
    card = json.loads(succeed(capsys, "data", "show", "modelnet40", "--json"))
    assert card["splits"] == {"train": 9843, "test": 2468}
    assert "9,843" in succeed(capsys, "data", "show", "modelnet40")


def test_the_main_job_is_made_of_zoo_models():
    assert set(MAIN_JOB) <= set(list_models())


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["data", "--help"], ["data", "build", "-h"]])
def test_help_is_success(arguments, capsys):
    assert "Usage: pointset" in succeed(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compere"], 'Did you mean "compare"?'),
        (["train"], "--model"),
        (["train", "isab16-pam"], "did you mean isab16-pma"),
        (["train", "rff-max", "--dim", "wide"], "--dim"),
        (["train", "rff-max", "--dim", "10"], "dim=10 cannot be shared by heads=4"),
        (["train", "rff-max", "--form", "papre"], "--form"),
        (["train", "rff-max", "--augment", "shear"], "shear"),
        (["train", "rff-max", "--points", "65"], "65 is more than the 64"),
        (["train", "rff-max", "--no-such-option"], "--no-such-option"),
        (["evaluate", "no/such/run"], "no/such/run is no run"),
        (["compare", "--models", "rff-max", "rff"], "did you mean rff-"),
        (["data", "show", "modelnet50"], "modelnet40"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gives_one_line_and_code_2(arguments, words, capsys, clouds_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if arguments[0] in ("train", "compare") and len(arguments) > 1:
        arguments = [*arguments, "--data", str(clouds_folder)]
        arguments += [] if "--points" in arguments else ["--points", "24"]
    assert words in fail(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("data", ["no-such-set", "./no/such/folder", "modelnet40"])
def test_data_that_is_not_there_is_named(data, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    assert data.removeprefix("./") in fail(capsys, "train", "rff-max", "--data", data, "--run", str(tmp_path / "run"))


def test_debug_shows_the_traceback():
    with pytest.raises(Exception, match="no model is called"):
        main(["train", "nonsense", "--data", "shapes10", "--debug"])


def test_a_mistake_of_our_own_is_code_1(capsys, monkeypatch):
    import pointset.zoo

    monkeypatch.setattr(pointset.zoo, "list_models", lambda: 1 / 0)
    with pytest.raises(SystemExit) as left:
        main(["zoo"])
    assert left.value.code == 1
    assert "unexpected ZeroDivisionError" in capsys.readouterr().err
