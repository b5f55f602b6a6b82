"""`pointset compare`: rows, tables and failures; and the commands of the README, in its order and as it writes them."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from command_line import asked, fail, fail_late, succeed

from pointset.cli import main
from pointset.comparison import comparing
from pointset.comparison.experiment import Experiment
from pointset.comparison.runs import make_runs
from pointset.data.shapes10.build import build_shapes10
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.training import fine_tuning, selection
from pointset.training.fine_tuning import Plan

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

SHORT = ("max-regression", "--steps", "3", "--seeds", "0", "--workers", "1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(clouds_folder, tmp_path) -> str:
    (tmp_path / "two.toml").write_text(FILE.format(data=clouds_folder))
    return "two.toml"


@pytest.fixture
def asked_for(monkeypatch) -> list[Experiment]:
    """The experiments of commands, which are not run."""
    found = []

    def run(experiment, *_):
        found.append(experiment)
        raise PointsetError("enough")

    monkeypatch.setattr(comparing, "run_experiment", run)
    return found


@pytest.mark.slow
def test_a_file_from_first_look_to_table(capsys, file, tmp_path):
    """Half of the runs, all of the runs, and the report again."""
    half = succeed(capsys, "compare", file, "--seeds", "0", "--workers", "1")
    assert "24 / 9 points, 1 seed, 1 epoch, width 16" in half
    assert "saved in runs/two: report.html" in half
    assert "next:\n  python -m webbrowser runs/two/report.html\n  pointset evaluate --model runs/two/runs/" in half
    assert "  pointset attend SHAPE.off --model runs/two/runs/attention-n" in half

    whole = asked(capsys, "compare", file, "--workers", "1")
    rows = [(row["model"], row["points"], row["seeds"]) for row in whole["rows"]]
    assert rows == [(label, points, 2) for points in (24, 9) for label in ("rff-max", "attention")]
    assert whole["rows"][0]["metrics"]["accuracy"]["published"] == [0.5, 0.1, 5]
    assert len(list((tmp_path / "runs" / "two" / "runs").glob("*seed1/robustness.json"))) == 4
    assert not list((tmp_path / "runs" / "two" / "runs").glob("*seed0/robustness.json"))
    stale = tmp_path / "runs" / "two" / "figures" / "learning-curves-n8.png"
    records.write(stale, b"of a report by an earlier version")
    assert "saved in runs/two: report.html" in succeed(capsys, "compare", file, "--report")
    assert not stale.exists()
    page = (tmp_path / "runs" / "two" / "report.html").read_text(encoding="utf-8")
    assert " --report" not in page, "the command repeats the runs"


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (
            ["two.toml", "--models", "attention", "rff-max", "--seeds", "1", "7"],
            [(label, size, seed) for seed in (1, 7) for size in (24, 9) for label in ("rff-max", "attention")],
        ),
        (["--models", "rff-mean", "--points", "7", "--seeds", "5"], [("rff-mean", 7, 5)]),
    ],
    ids=["rows of a file, in its order", "flags alone"],
)
def test_flags_choose_the_runs(arguments, rows, capsys, file, clouds_folder, asked_for):
    fail(capsys, "compare", *arguments, *(() if "two.toml" in arguments else ("--data", clouds_folder)))
    found = make_runs(asked_for[0], Path("out"))
    assert [(run.model, run.points, run.seed) for run in found] == rows


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ((), {"epochs": 20, "min_steps": 300, "train_points": (24, 24)}),
        (("--epochs", "3"), {"epochs": 3, "min_steps": None}),
        (("--epochs", "3", "--min-steps", "40"), {"epochs": 3, "min_steps": 40}),
        (("--train-points", "8", "16"), {"train_points": (8, 16)}),
    ],
    ids=["the usual recipe", "epochs", "epochs and steps", "points"],
)
def test_no_default_of_the_usual_recipe_outdoes_a_flag(flags, wanted, capsys, clouds_folder, asked_for):
    fail(capsys, "compare", "--data", clouds_folder, "--models", "rff-max", "--points", "24", *flags)
    assert {name: getattr(asked_for[0].recipe, name) for name in wanted} == wanted


@pytest.mark.slow
def test_a_table_with_a_baseline_ends_with_the_next_commands(capsys, clouds_folder):
    """A baseline is made by a function, which says nothing of attention maps."""
    flags = ("--points", "24", "--seeds", "0", "--epochs", "1", "--dim", "8", "--workers", "1", "--out", "out")
    out = succeed(capsys, "compare", "--data", clouds_folder, "--models", "features-svm", "isab4-pma", *flags)
    assert "\n  pointset attend SHAPE.off --model out/runs/isab4-pma-n24-seed0\n" in out


@pytest.mark.slow
@pytest.mark.filterwarnings("default:training ends at chance")
def test_warnings_of_runs_are_lines_of_the_command(capsys, clouds_folder):
    sizes = "--models rff-max rff-mean --points 24 --seeds 0 --steps 1 --min-steps 1 --dim 8 --workers 2"
    main(["compare", "--data", str(clouds_folder), *sizes.split()])
    said = capsys.readouterr().err
    assert re.search(r"(?m)^pointset: warning: training ends at chance: .* \(rff-max, 24 points, seed 0\)$", said)
    assert "UserWarning" not in said


@pytest.mark.slow
def test_a_failed_run_is_code_2_after_the_table_of_the_others(capsys, file, tmp_path):
    text = Path(file).read_text(encoding="utf-8").replace("points = [24, 9]", "points = 24")
    text = text.replace("robustness_seeds = [1]", "")
    cold = '"rff-max", { name = "sab-max", temperature = 1e-60 },'
    Path(file).write_text(text.replace('"rff-max",', cold), encoding="utf-8")
    out, error = fail_late(capsys, "compare", file, "--workers", "1", "--seeds", "0")
    assert "attention" in out
    assert "accuracy %" in out
    assert "1 of 3 runs failed (sab-max temperature=1e-60, 24 points, seed 0: the loss became" in error
    assert error.endswith("run the same command to try again\n")


@pytest.mark.slow
def test_a_task_by_name(capsys, tmp_path):
    out = succeed(capsys, "compare", *SHORT, "--models", "SAB + PMA", "rFF + max")
    assert "Max regression, 1 seed, 3 steps of 128 sets, width 64" in out
    assert "0.1355 ± 0.0074" in out
    assert "rFF + mean" not in out
    assert "saved in runs/max-regression: report.html, table.md, results.csv, results.json" in out
    whole = asked(capsys, "compare", *SHORT, "--models", "rFF + max")
    files = ("-o", "runs/max-regression", "t.tex", "t.md")
    succeed(capsys, "compare", *SHORT, *files, "--report")
    assert r"\begin{tabular}{lr" in (tmp_path / "t.tex").read_text()
    assert "| SAB + PMA" in (tmp_path / "t.md").read_text()
    assert [row["model"] for row in whole["rows"]] == ["rFF + max"]


README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
KINDS = ("chair", "lamp", "table")
SHORTER = {"train": "--budget 1s", "compare": "--seeds 0 --steps 2 --min-steps 2 --workers 1"}
"""What is added to a command so that it takes seconds."""


def commands(section: str) -> list[str]:
    """The commands of a section: a line of a block each, or in backticks."""
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [line or quoted for line, quoted in re.findall(r"^pointset (.*)$|`pointset ([^`]+)`", text, re.MULTILINE)]


@pytest.fixture
def small(tmp_path, monkeypatch) -> None:
    """A folder with the files that the README speaks of, and a network that is trained for a moment."""
    monkeypatch.chdir(tmp_path)
    build_shapes10(Path("all"), train=6, test=2, progress=False)
    for kind in KINDS:
        shutil.copytree(Path("all") / kind, Path("parts") / kind)
    for copy in ("chair.off", "new/chair.off", "path/to/new/chair.off"):
        Path(copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy("all/chair/test/chair_0007.off", copy)
    monkeypatch.setattr(selection._Selection, "_plan", lambda *_: Plan(steps=8, folds=1))
    monkeypatch.setattr(fine_tuning, "FEWEST_STEPS", 8)


@pytest.mark.slow
def test_the_commands_of_the_readme(small, capsys):
    pytest.importorskip("onnx", reason="onnx: pip install 'pointset-learn[export]'")
    lines = [line for line in commands("Command line") if line.split()[0] not in ("compare", "rank")]
    assert len(lines) >= 7, "none of them is overlooked"
    for line in lines:
        words = shlex.split(line, comments=True)
        added = SHORTER.get(words[0], "").split()
        assert succeed(capsys, *words, *added), line
        written = [Path(words[place + 1]) for place, word in enumerate(words) if word in ("-o", "--run", "--out")]
        assert all(path.exists() for path in written), line
