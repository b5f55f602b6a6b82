"""The command line: exit codes, one clear line for a mistake, and JSON for programs."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import fail, fail_late, succeed
from cyclopts import App

import pointset
from pointset.cli import main
from pointset.commands.app import make_app
from pointset.training.recipe import Recipe
from pointset.zoo.abilities import describe_models
from pointset.zoo.listing import kept_rows


def test_train_then_evaluate(capsys, clouds_folder, tmp_path):
    run = tmp_path / "run"
    sizes = ("--points", "24", "--dim", "16", "--epochs", "2", "--augment", "scale", "jitter")
    later = ("--pooled-dropout", "0", "--head-dim", "8", "--head-norm", "layer", "--outputs", "all")
    printed = succeed(capsys, "train", "rff-max", "--data", clouds_folder, "--run", run, *sizes, *later)
    assert f"next: pointset evaluate --model {run}" in printed
    found = json.loads(succeed(capsys, "evaluate", "--model", run, "--json"))
    assert found["shapes"] == 60
    assert set(found["per_class"]) == {"ball", "box", "rod"}
    assert "60 test shapes: accuracy" in succeed(capsys, "evaluate", "--model", run)


def test_zoo_shows_a_saved_list_which_equals_the_models(capsys, monkeypatch):
    rows = json.loads(succeed(capsys, "zoo", "--json"))
    assert rows == describe_models(), "python scripts/zoo_listing.py writes it anew"
    shown = succeed(capsys, "zoo")
    assert [line for line in shown.splitlines() if line.startswith("-pma ")]
    assert "do not stream: sab, aggr.softmax" in shown
    assert "isab16, sab, " in shown.partition("have attention maps: ")[2]
    monkeypatch.setenv("POINTSET_PARTS", str(Path(__file__)))
    assert kept_rows() is None


@pytest.mark.parametrize("command", ["compare", "train"])
def test_help_shows_what_matters_and_help_all_every_option(command, capsys):
    few, every = (succeed(capsys, command, flag) for flag in ("--help", "--help-all"))
    common, flags = (re.findall(r"^│ [* ]*(--[a-z-]+)", shown, re.MULTILINE) for shown in (few, every))
    assert 10 <= len(common) <= 15
    assert {"--data", "--points", "--epochs", "--dim"} < set(common) < set(flags)
    assert {"--pool-seeds", "--train-points"} <= set(flags) - set(common)
    assert len(flags) == len(set(flags)) > 60
    assert few.count("\n") < 70
    assert {"--help-all", "--json"} <= set(re.findall(r"--[a-z-]+", few))
    assert "[default: 40]" in few, "the epochs of quick.toml"
    assert "None" not in re.findall(r"default: ([^]]+)", every)


def commands(app: App, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], App]]:
    for name in app:
        if not name.startswith("-"):
            if app[name].default_command is not None:
                yield (*words, name), app[name]
            yield from commands(app[name], (*words, name))


def test_help_all_works_for_every_command_and_outputs_have_one_flag(capsys):
    for words, command in commands(make_app()):
        few, every = (succeed(capsys, *words, flag) for flag in ("--help", "--help-all"))
        assert words[0] in ("train", "compare") or few == every
        names = [argument.names for argument in command.assemble_argument_collection()]
        assert all(("-o" in each) == ("--out" in each) and "--output" not in each for each in names)


def test_data_list_and_show(capsys):
    names = [row["name"] for row in json.loads(succeed(capsys, "data", "list", "--json"))]
    assert {"shapes10", "modelnet10", "modelnet40", "modelnet40-hdf5"} <= set(names)
    card = json.loads(succeed(capsys, "data", "show", "modelnet40", "--json"))
    assert card["splits"] == {"train": 9843, "test": 2468}
    assert "9,843" in succeed(capsys, "data", "show", "modelnet40")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["compare", "--help"], ["data", "--help"], ["data", "build", "-h"], ["zoo", "--help-all"]]
)
def test_help_is_success(arguments, capsys):
    assert "Usage: pointset" in succeed(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compere"], 'Did you mean "compare"? (see `pointset --help-all`)'),
        (["train"], "--data"),
        (["train", "rff-max", "--form", "papre"], "--form"),
        (["train", "rff-max", "--points", "65"], "65 is more than the 64"),
        (["train", "rff-max", "--form", "paper"], "rff-max does not use form"),
        (["train", "rff-max", "--learning-rate", "nan"], "got nan"),
        (["train", "rff-max", "--epochs", "1.5"], "--epochs must be a whole number, got '1.5'"),
        (["compare", "--variant", "x" * 4000], "leave variant='xxx"),
        (["classify", "x" * 5000], "xxx' has 5,000 characters: give a value of at most 4,096"),
        (
            ["train", "rff-max", "--no-such-option"],
            "Unknown option: --no-such-option (see `pointset train --help-all`)",
        ),
        (["train", "rff-max", "--batch", "16"], "Did you mean --batch-size?"),
        (["train", "rff-max", "--epochs", "ten"], '--epochs: unable to convert "ten"'),
        (["train", "rff-max", "--pose", "up"], '"aligned", "upright", "any"'),
        (["train", "rff-max", "--train-points", "9"], "--train-points requires 2"),
        (["train", "rff-max", "--budget", "5m"], "--budget is for the choice of a model"),
        (["train", "rff-max", "--freeze", "encoder"], "--freeze needs --start"),
        (["train", "rff-max", "--start", "rff-max.modelnet40-1024", "--dim", "8"], "dim is that of rff-max.modelnet40"),
        (["compare", "."], ". is a folder, and no experiment file: write --data ."),
        (["evaluate", "runs/best"], "'runs/best' is one argument too many; give models with --model"),
        (["classify"], "FILES requires an argument"),
        (["classify", "~/no-such.off"], str(Path.home())),
        (["train", "rff-max", "--batch-size", f"{10**19}"], "batch_size must be a whole number from 1 to 1,000,000"),
        (["train", "rff-max", "--device", "x" * 4000], "is not available on this machine"),
        (["evaluate", "--model", "no/such/run"], "no/such/run is not a run"),
        (["data", "show", "modelnet50"], "modelnet40"),
        (["data", "show", "no/such"], "'no/such' is neither a folder nor the name of a dataset"),
        (["data", "show", __file__], "is a file: give the folder of a dataset"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gives_one_line_and_code_2(arguments, words, capsys, clouds_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if arguments[0] in ("train", "compare") and len(arguments) > 1:
        arguments = [*arguments, "--data", clouds_folder]
        arguments += [] if "--points" in arguments else ["--points", "24"]
    said = fail(capsys, *arguments)
    assert words in said
    assert len(said) < 500
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"seeds = [" + b"9" * 5000 + b"]", "hostile.toml is not a TOML file"),
        (b"models = ['rff-max']\nseeds = [" + b"9" * 400 + b"]", "seed must be"),
        (b"models = ['" + b"x" * 9999 + b"']", "label 'xxx"),
        (b"[recipe]\nlearning_rate = 1e400", "learning_rate must be a finite number"),
        (b"[model]\n" + b"y" * 9999 + b" = 1", "is not an option of"),
    ],
)
def test_a_hostile_experiment_gives_one_short_line(content, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hostile.toml").write_bytes(content)
    said = fail(capsys, "compare", "hostile.toml")
    assert words in said
    assert len(said) < 700


@pytest.mark.parametrize("place", ["taken", "taken/run"])
@pytest.mark.parametrize(
    "command", [["task", "max-regression", "--workers", "1", "--out"], ["train", "rff-max", "--run"]]
)
def test_a_file_where_a_folder_is_expected_is_named(command, place, capsys, clouds_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("mine")
    data = ["--data", clouds_folder, "--points", "24"] if command[0] == "train" else []
    said = fail(capsys, *command, tmp_path / place, *data)
    assert f"{tmp_path / place} cannot be written to ({tmp_path}/taken is a file, not a folder)" in said
    assert "choose another folder" in said
    assert (tmp_path / "taken").read_text() == "mine"


def test_what_the_system_refuses_is_said_in_a_sentence(capsys):
    said = fail(capsys, "train", "rff-max", "--data", "./" + "x" * 4000)
    assert "xxx' cannot be used (File name too long): use another path" in said
    assert len(said) < 300


def test_debug_shows_the_traceback():
    with pytest.raises(Exception, match="no model is called"):
        main(["train", "nonsense", "--data", "shapes10", "--debug"])


def test_a_bug_of_the_package_ends_with_code_1(capsys, monkeypatch):
    import pointset.zoo.abilities

    monkeypatch.setattr(pointset.zoo.abilities, "list_models", lambda: 1 / 0)
    with pytest.raises(SystemExit) as left:
        main(["zoo", "--dim", "16"])
    assert left.value.code == 1
    assert "unexpected ZeroDivisionError" in capsys.readouterr().err


def test_a_closed_output_pipe_is_not_an_error(tmp_path):
    script = f"{sys.executable} -m pointset.cli data show modelnet40 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) in [(141, ""), (0, "")]  # 0: all was written before the reader left


@pytest.fixture
def trained(clouds_folder, tmp_path, capsys):
    data = shutil.copytree(clouds_folder, tmp_path / "data")
    sizes = ("--points", "24", "--dim", "16", "--epochs", "1")
    succeed(capsys, "train", "rff-mean", "--data", data, "--run", tmp_path / "run", *sizes)
    return data, tmp_path / "run"


def test_a_run_is_not_evaluated_on_other_classes(trained, capsys):
    data, run = trained
    (data / "shape_names.txt").write_text("ball\nbox\nstick\n")
    assert "has other classes than the model was trained on (rod, stick)" in fail(capsys, "evaluate", "--model", run)
    (data / "shape_names.txt").write_text("box\nball\nrod\n")
    assert "(their order)" in fail(capsys, "evaluate", "--model", run, "--data", data)


def test_a_run_is_evaluated_on_sets_of_another_size(trained, capsys):
    data, run = trained
    found = json.loads(succeed(capsys, "evaluate", "--model", run, "--points", "64", "--json"))
    sets = pointset.load_dataset(data, "test", 64)
    assert found["loss"] == pytest.approx(pointset.evaluate(pointset.load_run(run)[0], sets).loss, rel=1e-6)
    assert found["loss"] != json.loads(succeed(capsys, "evaluate", "--model", run, "--json"))["loss"]
    assert "points=65 is more than the 64 that data holds" in fail(capsys, "evaluate", "--model", run, "--points", "65")


def test_data_that_has_moved_is_given_again(trained, capsys):
    data, run = trained
    moved = data.rename(data.with_name("moved"))
    assert "if the data of the run has moved, give its folder with --data" in fail(capsys, "evaluate", "--model", run)
    assert "60 test shapes" in succeed(capsys, "evaluate", "--model", run, "--data", moved)


def test_a_run_on_arrays_asks_for_files(capsys, clouds_folder, tmp_path, monkeypatch):
    files = pointset.load_dataset(clouds_folder, points=16)
    sets = pointset.from_arrays(files.points, files.labels, files.classes)
    model = pointset.create_model("rff-max", classes=3, dim=8)
    pointset.fit(model, sets, Recipe(epochs=1, validation=0.2), run=tmp_path / "run", progress=False)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(clouds_folder, "arrays")  # another dataset, though it is called as those in memory are
    said = fail(capsys, "evaluate", "--model", "run")
    assert "data in memory ('arrays')" in said
    assert "--data" in said
    assert "60 test shapes" in succeed(capsys, "evaluate", "--model", "run", "--data", "arrays")
    said = fail(capsys, "evaluate", "--model", "run", "--data", "arrays", "--calibrate")
    assert "data in memory" in said
    assert "fit_temperature" in said


def test_data_build_reports_what_it_did_and_verify_what_is_wrong(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    for kind in ("cube", "wedge"):
        (tmp_path / "parts" / kind).mkdir(parents=True)
        for number in range(2):
            (tmp_path / "parts" / kind / f"{kind}{number}.off").write_text(
                f"OFF\n3 1 0\n0 0 0\n1 0 {number}\n0 1 0\n3 0 1 2\n"
            )
    parts = tmp_path / "parts"
    assert "has no pool in" in fail(capsys, "data", "verify", parts)
    options = ("--pool-points", "16", "--workers", "1")
    assert "train: 2 shapes of 16 points, 2 sampled now" in succeed(capsys, "data", "build", parts, *options)
    again = json.loads(succeed(capsys, "data", "build", parts, *options, "--json"))
    assert [pool["sampled"] for pool in again["pools"].values()] == [0, 0]
    assert succeed(capsys, "data", "verify", parts).count("sound") == 2

    broken = tmp_path / "parts" / "cube" / "cube0.off"
    broken.write_text("OFF\n3 1 0\n0 0 0\n")
    printed, said = fail_late(capsys, "data", "verify", parts)
    assert "cube0.off has changed since the pool was made" in printed
    assert "pointset data build" in said
    rebuild = ("data", "build", parts, *options, "--rebuild")
    assert "cube0.off" in fail(capsys, *rebuild)
    assert "left out cube/cube0.off" in succeed(capsys, *rebuild, "--on-error", "skip")
