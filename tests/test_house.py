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


WRONG = {
    "nn/masks.py": ("from pointset.data import normalize", "pointset.nn.masks -> pointset.data.normalize"),
    "errors.py": ("def late():\n    import pointset.cli", "pointset.errors -> pointset.cli"),  # hidden in a function
    "nn/scores.py": ("import pointset.nn.blocks", "No cycles are allowed in pointset.nn"),
}


@pytest.mark.slow
def test_wrong_imports_are_named(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "pointset", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    for file, (line, _) in WRONG.items():
        with (tmp_path / "pointset" / file).open("a", encoding="utf-8") as opened:
            opened.write(f"\n\n{line}\n")
    printed = lint_imports(tmp_path).stdout
    assert [words for _, words in WRONG.values() if words not in printed] == []


def test_the_package_has_few_files_at_its_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 5


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(PACKAGE).as_posix())
def test_each_package_docstring_says_what_belongs_there(room: Path) -> None:
    assert ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")))
