"""Scripts: the commands of the README, the benchmark, the fuzzer, and the page of results."""

import importlib
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import fuzz
import page
import pytest
import torch
from blocks import app, check_equal
from rivals import fused, rewritten, split_along_batch
from saved import FOLDER, read_all
from sections import SECTIONS

from pointset import create_model
from pointset.errors import PointsetError

CHECKOUT = Path(__file__).parent.parent
SCRIPTS = sorted((CHECKOUT / "scripts").glob("*.sh"))
PROGRAMS = sorted(path for path in (CHECKOUT / "scripts").rglob("[a-z]*.py") if path.stem != "conf")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """scripts/, pyproject.toml, and programs that log their calls to `calls`; uv fails."""
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    for name, status in ((".venv/bin/python", 0), (".venv/bin/pointset", 0), ("bin/uv", 1)):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{program.name} $*" >> "{tmp_path}/calls"\nexit {status}\n')
        program.chmod(0o755)
    return tmp_path


def bash(copy: Path, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
    """Exit status, output and errors, and the logged calls of a script."""
    (copy / "calls").unlink(missing_ok=True)
    environment = {**os.environ, "PYTHON": "", "PATH": f"{copy / 'bin'}:{os.environ['PATH']}", **environment}
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(["bash", *arguments], cwd=copy.parent, env=environment, timeout=60, **outputs)
    calls = copy / "calls"
    return done.returncode, done.stdout, calls.read_text().splitlines() if calls.exists() else []


def installs(calls: list[str]) -> list[str]:
    return [call for call in calls if "-m pip install" in call]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_script_is_valid_shell(script):
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_program_can_be_imported(path):
    assert importlib.import_module(path.stem).__doc__


def test_quickstart_installs_once_and_passes_its_arguments_on(copy):
    script = str(copy / "scripts" / "quickstart.sh")
    status, printed, calls = bash(copy, script, "--epochs", "5")
    assert status == 0, printed
    (install,) = installs(calls)
    assert install.endswith("-c scripts/constraints.txt -e .")
    assert calls[-1] == "pointset compare --epochs 5"
    assert not installs(bash(copy, script)[2]), "the second time there is nothing to install"
    (copy / "pyproject.toml").write_text("# changed\n")
    assert installs(bash(copy, script)[2]), "until what decides it changes"


def test_extras_are_installed_by_name_and_are_enough_without_them(copy):
    script = str(copy / "scripts" / "setup.sh")
    (install,) = installs(bash(copy, script, "export,notebook")[2])
    assert install.endswith("-e .[export,notebook]")
    assert not installs(bash(copy, script)[2])


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh"])
def test_an_interpreter_that_is_not_there_is_named(script, copy):
    status, printed, calls = bash(copy, str(copy / "scripts" / script), PYTHON="/no/such/python")
    assert (status, calls) == (2, [])
    assert "PYTHON=/no/such/python does not run or is older than Python 3.11" in printed


@pytest.mark.parametrize("attend", [split_along_batch, fused])
@pytest.mark.parametrize("name", ["isab5-pma", "sab-pma"])
def test_other_implementations_with_our_weights_give_our_results(name, attend):
    ours = create_model(name, classes=3, dim=12, heads=3).double().eval()
    points = torch.randn(2, 71, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    theirs = rewritten(ours, attend).eval()
    torch.testing.assert_close(theirs(points), ours(points), rtol=1e-10, atol=1e-12)


def test_another_function_is_found_out():
    ours = create_model("isab5-pma", classes=3, dim=12, heads=3).eval()
    other = create_model("isab5-pma", classes=3, dim=12, heads=3, seed=1).eval()
    with pytest.raises(PointsetError, match=r"the logits of sdpa are off ours by .*: it is not the same function"):
        check_equal({"pointset": ours, "released": ours, "sdpa": other})


@pytest.mark.slow
def test_the_command_prints_a_table_and_keeps_the_rows(tmp_path, capsys):
    out = tmp_path / "bench.json"
    sizes = "--dims 16 --heads 2 --points 70 --batch-size 2 --rounds 1 --threads 1 --floor"
    app(["sab-pma", *sizes.split(), "--out", str(out)], result_action="return_value")
    assert "| sab-pma |" in capsys.readouterr().out
    kept = json.loads(out.read_text())
    assert [row["work"] for row in kept["rows"]] == ["training step", "inference"]
    for row in kept["rows"]:
        assert min(row[rival] for rival in ("released", "sdpa", "torch-geometric", "torch", "aggregation")) > 0
        assert 0 < row["share of product rate"] < 1
        assert 0 < row["products"] < 1
    assert kept["machine"]["threads"] == 1
    assert set(kept) == {"rows", "versions", "machine", "commit", "command"}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("trimesh"), "disabled", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz.MESHES + fuzz.CLOUDS)
def test_damaged_files_are_refused_or_read_as_by_others(kind: str) -> None:
    counts = fuzz.judge_kind(kind, 40, seed=0)
    assert counts["WRONG"] == counts["CRASH"] == 0
    assert counts["refused"] > 10


def test_the_fuzzer_sees_a_reader_that_shortens_files(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    def shortened(path):
        mesh = read_mesh(path)
        return type(mesh)(mesh.vertices, mesh.faces[:-1])

    read_mesh = fuzz.read_mesh
    monkeypatch.setattr(fuzz, "read_mesh", shortened)
    with pytest.raises(AssertionError, match="undamaged"):
        fuzz.judge_kind("stl", 1, seed=0)


def test_the_page_and_its_figures_stand_as_the_saved_results_make_them():
    assert page.outdated(FOLDER) == [], "run scripts/experiments/page.py"


def test_every_saved_result_is_on_a_page_with_where_it_comes_from():
    pages = page.render(read_all())
    contents, text = pages["README.md"], "\n".join(pages.values())
    for name, one in read_all().items():
        assert f"(`{name}`)" in text
        assert f"```\n{one.about['command']}\n```\n\n{one.about['date']}, commit {one.about['commit']}" in text
        assert one.table in text or name in SECTIONS[0].names
        assert one.about["title"] in contents


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "docs" / "build.py", tmp_path], check=True)
    assert (tmp_path / "docs" / "notebooks" / "live.html").exists()
