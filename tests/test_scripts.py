"""The commands of the README, in a copy of the checkout with an interpreter that only records its arguments."""

import importlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
SCRIPTS = sorted((CHECKOUT / "scripts").glob("*.sh"))
PROGRAMS = sorted(path for path in (CHECKOUT / "scripts").rglob("[a-z]*.py") if path.stem != "conf")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """scripts/, pyproject.toml, and a .venv that logs its calls to `calls`."""
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "pointset"):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/calls"\n')
        program.chmod(0o755)
    uv(tmp_path, "exit 1")
    return tmp_path


def uv(copy: Path, does: str) -> None:
    """Puts a fake uv on the path of the scripts that records its arguments."""
    (copy / "bin").mkdir(exist_ok=True)
    program = copy / "bin" / "uv"
    program.write_text(f'#!/bin/sh\necho "uv $*" >> "{copy}/calls"\n{does}\n')
    program.chmod(0o755)


def bash(copy: Path, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
    """Exit status, output and errors, and the logged calls of a script."""
    (copy / "calls").unlink(missing_ok=True)
    done = subprocess.run(
        ["bash", *arguments],
        cwd=copy.parent,
        env={**os.environ, "PYTHON": "", "PATH": f"{copy / 'bin'}:{os.environ['PATH']}", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
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
    folder = "killing." if path.parent.name == "killing" else ""
    assert importlib.import_module(folder + path.stem).__doc__


def test_quickstart_installs_once_and_passes_its_arguments_on(copy):
    script = str(copy / "scripts" / "quickstart.sh")
    status, printed, calls = bash(copy, script, "--epochs", "5")
    assert status == 0, printed
    (install,) = installs(calls)
    assert install.endswith("-c scripts/constraints.txt -e .[open3d]")
    assert calls[-1] == "pointset compare --epochs 5"
    assert not installs(bash(copy, script)[2]), "the second time there is nothing to install"
    (copy / "pyproject.toml").write_text("# changed\n")
    assert installs(bash(copy, script)[2]), "until what decides it changes"


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh"])
def test_an_interpreter_that_is_not_there_is_named(script, copy):
    status, printed, calls = bash(copy, str(copy / "scripts" / script), PYTHON="/no/such/python")
    assert (status, calls) == (2, [])
    assert "PYTHON=/no/such/python does not run or is older than Python 3.11" in printed
