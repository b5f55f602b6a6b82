"""The command line: exit codes, one clear line for a mistake, JSON for programs, and `pointset classify`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from command_line import asked, fail, options_of_commands, succeed
from toy import TETRAHEDRON, train_run

import pointset
from pointset.cli import configure_process, main, of_memory
from pointset.commands import zoo
from pointset.runs.spreadsheets import read_csv
from pointset.training.recipe import Recipe
from pointset.zoo.abilities import describe_models


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


def test_a_bug_of_the_package_ends_with_code_1_and_debug_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setattr(zoo, "list_pretrained", lambda: 1 / 0)
    with pytest.raises(SystemExit) as left:
        main(["zoo", "--pretrained"])
    assert left.value.code == 1
    assert "unexpected ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        main(["zoo", "--pretrained", "--debug"])


def test_the_module_that_is_advised_is_the_one_that_runs():
    root = Path(pointset.__file__).parents[1]
    paths = (*root.glob("pointset/**/*.py"), root / "scripts/docs/tools.md")
    advice = "".join(path.read_text(encoding="utf-8") for path in paths)
    assert {*re.findall(r"-m (?:-- )?(\S+) train", advice)} == {"pointset"}


def test_a_closed_output_pipe_is_not_an_error(tmp_path):
    script = f"{sys.executable} -m pointset data show modelnet40 | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stderr) in [(141, ""), (0, "")]  # 0: all was written before the reader left


def test_too_little_memory_is_one_line_and_code_2(capsys, monkeypatch):
    monkeypatch.setattr(zoo, "list_pretrained", Mock(side_effect=torch.OutOfMemoryError("CUDA out of memory.")))
    assert fail(capsys, "zoo", "--pretrained").startswith("pointset: not enough memory: use fewer points")


def test_the_memory_errors_of_torch_and_numpy_are_recognised():
    """Other versions may have other messages."""
    for ask in (lambda: torch.empty(10**8, 10**6), lambda: np.empty((10**8, 10**6))):
        with pytest.raises((MemoryError, RuntimeError)) as caught:
            ask()
        assert of_memory(caught.value)
    assert not of_memory(RuntimeError("a tensor has another shape"))
    assert not of_memory(ValueError("out of memory"))


@pytest.mark.parametrize(("load", "threads"), [(0.2, "8"), (6.4, "2"), (30.0, "1"), (6.4, None)])
def test_threads_sleep_when_idle_and_take_free_cores(load, threads, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    omp, malloc = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS"), ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")
    for name in ("KMP_BLOCKTIME", *omp, *malloc):
        monkeypatch.setenv(name, "")  # restored at the end
        monkeypatch.delenv(name)
    configure_process(fixed_threads=threads is None)
    assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
    assert os.environ.get("OMP_NUM_THREADS") == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    configure_process(fixed_threads=False)
    assert os.environ["OMP_NUM_THREADS"] == "3", "a variable of the user stays"


def test_a_run_is_evaluated_on_sets_of_another_size_and_where_its_data_has_moved(capsys, clouds_folder, tmp_path):
    data, run = shutil.copytree(clouds_folder, tmp_path / "data"), tmp_path / "run"
    train_run(run, data, "rff-mean", 24)
    found = asked(capsys, "evaluate", "--model", run, "--points", "64")
    sets = pointset.load_dataset(data, "test", 64)
    assert found["loss"] == pytest.approx(pointset.evaluate(pointset.load_model(run), sets).loss, rel=1e-6)
    assert found["loss"] != asked(capsys, "evaluate", "--model", run)["loss"]
    assert "points=65 is more than the 64 that data holds" in fail(capsys, "evaluate", "--model", run, "--points", "65")
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


CLOUD = np.random.default_rng(0).normal(size=(20, 3)) * 5 + 3
LARGE = np.random.default_rng(0).normal(size=(700, 3))


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    np.save(tmp_path / "scan.npy", CLOUD)
    return tmp_path / "scan.npy"


def predictions(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    return asked(capsys, "classify", *arguments)["predictions"]


def heard(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[dict[str, Any]], str]:
    """The predictions, and what is said beside them."""
    main(["classify", *map(str, arguments), "--json"])
    printed, said = capsys.readouterr()
    return json.loads(printed)["predictions"], said


def expected(run: Path, cloud: np.ndarray) -> dict[str, float]:
    """Classes and probabilities of the model in memory, most probable first."""
    model = pointset.load_model(run)
    pairs = zip(model.classes, model.predict_proba(cloud)[0].tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def test_the_answer_is_that_of_the_model_in_memory(isab_run, scan, capsys) -> None:
    (found,) = predictions(capsys, scan, "--model", isab_run)
    answer = expected(isab_run, CLOUD)
    assert [one["class"] for one in found["classes"]] == list(answer)
    np.testing.assert_allclose([one["probability"] for one in found["classes"]], list(answer.values()), atol=1e-5)
    assert found["entropy"] == pytest.approx(-sum(p * np.log(p) for p in answer.values()), abs=1e-4)
    assert (found["name"], found["points"]) == (str(scan), 20)


@pytest.mark.filterwarnings("default")
def test_of_a_large_cloud_a_random_part_is_used_and_one_line_says_so(isab_run, scan, capsys) -> None:
    for name in ("large", "larger"):
        np.save(scan.with_name(f"{name}.npy"), LARGE)
    answers = []
    for _ in range(2):
        found, said = heard(capsys, scan.with_name("large.npy"), scan.with_name("larger.npy"), "--model", isab_run)
        answers.append(found)
        assert said.count("of clouds with more points, 24 random points are used") == 1
    assert answers[0] == answers[1]
    assert [answer["points"] for answer in answers[0]] == [24, 24]


def test_the_default_output_is_a_table(isab_run, scan, capsys) -> None:
    printed = succeed(capsys, "classify", scan, "--model", isab_run)
    assert printed.startswith(f"{scan}: 20 points")
    np.save(scan.with_name("one.npy"), CLOUD[:1])
    assert ": 1 point" in succeed(capsys, "classify", scan.with_name("one.npy"), "--model", isab_run)
    best, probability = next(iter(expected(isab_run, CLOUD).items()))
    assert printed.splitlines()[3].split() == [best, f"{100 * probability:.1f}"]
    assert re.search(r"1 shape in \d+\.\d s", printed)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shapes of a known and an unknown class at two depths of folders, with text files beside them."""
    folder = tmp_path / "shapes"
    rng = np.random.default_rng(1)
    for kind, count in (("ball/train", 3), ("ball/test", 2), ("cat/train", 2)):
        (folder / kind).mkdir(parents=True)
        for number in range(count):
            np.save(folder / kind / f"{number}.npy", rng.normal(size=(15 + number, 3)))
    (folder / "cat" / "train" / "mesh.off").write_text(TETRAHEDRON.format(size=1))
    (folder / "cat" / "train" / "notes.txt").write_text("not a cloud")
    (folder / "list.txt").write_text("ball/train/0.npy")
    return folder


@pytest.mark.filterwarnings("ignore:.*1 file beside folders of shapes.*1 file of text:UserWarning")
def test_a_folder_becomes_a_table_of_predictions(isab_run, folder, tmp_path, capsys) -> None:
    run, output = isab_run, tmp_path / "predictions.csv"
    printed = succeed(capsys, "classify", folder, "--model", run, "-o", output)
    rows = read_csv(output)
    names = [f"ball/{name}.npy" for name in ("test/0", "test/1", "train/0", "train/1", "train/2")]
    assert [row["name"] for row in rows] == [*names, "cat/train/0.npy", "cat/train/1.npy", "cat/train/mesh.off"]
    assert [row["true_class"] for row in rows] == ["ball"] * 5 + [""] * 3, "as the model names them"
    assert [row["points"] for row in rows] == ["15", "16", "15", "16", "17", "15", "16", "24"]
    for row in rows[:7]:  # in batches of several sizes as alone
        answer = expected(run, np.load(folder / row["name"]))
        assert row["class_1"] == next(iter(answer))
        assert float(row["probability_1"]) == pytest.approx(answer[row["class_1"]], abs=1e-5)
    assert "class_4" not in rows[0]
    right = sum(row["class_1"] == "ball" for row in rows[:5])
    assert f"accuracy {right / 5:.1%} of the 5 shapes" in printed
    assert "the model does not know the classes of the other 3" in printed


def test_bad_files_are_all_named_or_left_out(isab_run, folder, tmp_path, capsys) -> None:
    run, output = isab_run, tmp_path / "predictions.csv"
    for text in ("list.txt", "cat/train/notes.txt"):
        (folder / text).unlink()
    (folder / "cat" / "train" / "0.npy").write_bytes(b"no array")
    (folder / "cat" / "train" / "mesh.off").write_text("OFF\n")
    error = fail(capsys, "classify", folder, "--model", run, "-o", output)
    words = ("2 of 8 files cannot be used", "cat/train/0.npy", "mesh.off", "--on-error skip")
    assert all(word in error for word in words)
    assert not output.exists()
    printed = succeed(capsys, "classify", folder, "--model", run, "-o", output, "--on-error", "skip")
    assert "left out cat/train/mesh.off, line 2: expected" in printed
    assert len(output.read_text().splitlines()) == 7
    embed = ("embed", folder, "-o", tmp_path / "rows.npz", "--model", run, "--on-error", "skip")
    assert "mesh.off" in "".join(asked(capsys, *embed)["left_out"])


def test_evaluate_writes_the_same_table(isab_run, tmp_path, capsys) -> None:
    found = asked(capsys, "evaluate", "--model", isab_run, "-o", tmp_path / "test.csv")
    rows = read_csv(tmp_path / "test.csv")
    right = sum(row["class_1"] == row["true_class"] for row in rows) / len(rows)
    assert right == pytest.approx(found["accuracy"])
    assert len({row["name"] for row in rows}) == 60
    assert {row["points"] for row in rows} == {"24"}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("cloud", "stray", "flags", "words"),
    [
        (CLOUD, [np.nan, 0, 0], (), "1 of 21 points have no position and were left out"),
        (LARGE, [900.0, 0, 0], (), ""),
        (LARGE, [900.0, 0, 0], ("--remove-outliers",), "1 outlier of 701 points removed"),
    ],
)
def test_points_without_position_or_neighbours_are_left_out(cloud, stray, flags, words, isab_run, tmp_path, capsys):
    np.save(tmp_path / "stray.npy", np.concatenate([cloud, [stray]]))
    ((answer,), said) = heard(capsys, tmp_path / "stray.npy", "--model", isab_run, *flags)
    assert answer["points"] == min(len(cloud), 24)
    assert words in said
    assert said.count("left out") + said.count("removed") == bool(words)
