"""The command line: exit codes, one clear line for a mistake, and JSON for programs."""

import re
import shutil
import subprocess
import sys
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from command_line import asked, fail, options_of_commands, succeed

import pointset
from pointset.cli import main, of_memory
from pointset.training.recipe import Recipe
from pointset.zoo import models
from pointset.zoo.models import describe_models


def test_train_then_evaluate(capsys, clouds_folder, tmp_path):
    run = tmp_path / "run"
    sizes = ("--points", "24", "--dim", "16", "--epochs", "2", "--augment", "scale", "jitter")
    later = ("--pooled-dropout", "0", "--head-dim", "8", "--head-norm", "layer")
    printed = succeed(capsys, "train", "rff-max", "--data", clouds_folder, "--run", run, *sizes, *later)
    assert f"next: pointset evaluate --model {run}" in printed
    found = asked(capsys, "evaluate", "--model", run)
    assert found["shapes"] == 60
    assert set(found["per_class"]) == {"ball", "box", "rod"}
    assert "60 test shapes: accuracy" in succeed(capsys, "evaluate", "--model", run)


def test_zoo_shows_a_saved_list_which_equals_the_models(capsys):
    rows = asked(capsys, "zoo")
    assert rows == describe_models(), "python scripts/zoo_listing.py writes it anew"
    shown = succeed(capsys, "zoo")
    assert [line for line in shown.splitlines() if line.startswith("-pma ")]


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


def test_help_all_works_for_every_command_and_outputs_have_one_flag(capsys):
    assert "Usage: pointset" in succeed(capsys, "--help")
    for name, options in options_of_commands().items():
        few, every = (succeed(capsys, *name.split(), flag) for flag in ("-h", "--help-all"))
        assert name in ("train", "compare") or few == every
        assert ("-o" in options) == ("--out" in options)
        assert "--output" not in options


def test_debug_shows_the_traceback():
    with pytest.raises(Exception, match="no model is called"):
        main(["train", "nonsense", "--data", "shapes10", "--debug"])


def test_a_bug_of_the_package_ends_with_code_1(capsys, monkeypatch):
    monkeypatch.setattr(models, "list_models", lambda: 1 / 0)
    with pytest.raises(SystemExit) as left:
        main(["zoo", "--dim", "16"])
    assert left.value.code == 1
    assert "unexpected ZeroDivisionError" in capsys.readouterr().err


def test_a_closed_output_pipe_is_not_an_error(tmp_path):
    script = f"{sys.executable} -m pointset.cli data show modelnet40 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) in [(141, ""), (0, "")]  # 0: all was written before the reader left


@pytest.mark.parametrize(
    ("error", "much"),
    [
        (MemoryError(), ""),
        (MemoryError("Unable to allocate 728. TiB for an array with shape (9, 9)"), " (728. TiB at once)"),
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"), " (20.00 GiB at once)"),
    ],
)
def test_too_little_memory_is_one_line_and_code_2(error, much, capsys, monkeypatch):
    monkeypatch.setattr(models, "list_models", Mock(side_effect=error))
    assert fail(capsys, "zoo", "--dim", "16").startswith(f"pointset: not enough memory{much}: ")


def test_the_memory_errors_of_torch_and_numpy_are_recognised():
    """Other versions may have other messages."""
    for ask in (lambda: torch.empty(10**8, 10**6), lambda: np.empty((10**8, 10**6))):
        with pytest.raises((MemoryError, RuntimeError)) as caught:
            ask()
        assert of_memory(caught.value)
        assert re.search(r"allocate \d", str(caught.value))
    assert not of_memory(RuntimeError("a tensor has another shape"))
    assert not of_memory(ValueError("out of memory"))


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
    found = asked(capsys, "evaluate", "--model", run, "--points", "64")
    sets = pointset.load_dataset(data, "test", 64)
    assert found["loss"] == pytest.approx(pointset.evaluate(pointset.load_run(run)[0], sets).loss, rel=1e-6)
    assert found["loss"] != asked(capsys, "evaluate", "--model", run)["loss"]
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


@pytest.mark.slow
def test_onnx_with_a_mask_for_programs(plain_run, tmp_path, capsys):
    output = tmp_path / "model.onnx"
    facts = asked(capsys, "export", "--model", plain_run, "-o", output, "--mask")
    assert facts["output"] == str(output)
    assert facts["bytes"] == output.stat().st_size
    assert 0 < facts["difference"] < 1e-4
    assert facts["checked"] == [[1, 1], [3, 1], [1, 100], [3, 100], [1, 1500], [3, 1500]]
