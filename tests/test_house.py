"""The packages: which may import which (`tool.importlinter` in pyproject.toml), and their docstrings."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
PACKAGE = CHECKOUT / "pointset"
ROOMS = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)


def lint_imports(checkout: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_packages_import_only_lower_ones_without_circles() -> None:
    found = lint_imports(CHECKOUT)
    assert found.returncode == 0, found.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "line", "named"),
    [
        ("nn/masks.py", "from pointset.data import normalize", "pointset.nn.masks -> pointset.data.normalize"),
        (
            "errors.py",
            "def late():\n    import pointset.cli",
            "pointset.errors -> pointset.cli",
        ),  # hidden in a function
        ("nn/scores.py", "import pointset.nn.blocks", "No cycles are allowed in pointset.nn"),
    ],
)
def test_a_wrong_import_is_named(file: str, line: str, named: str, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pointset", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    with (tmp_path / "pointset" / file).open("a", encoding="utf-8") as opened:
        opened.write(f"\n\n{line}\n")
    found = lint_imports(tmp_path)
    assert found.returncode == 1
    assert named in found.stdout


def test_the_package_has_few_files_at_its_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 5


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(PACKAGE).as_posix())
def test_each_package_docstring_says_what_belongs_there(room: Path) -> None:
    assert said_of(room)


def said_of(room: Path) -> str:
    return ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
