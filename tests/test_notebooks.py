"""The notebooks run from clean kernels, and were committed with what they show."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def shown(notebook: nbformat.NotebookNode) -> list[set[str]]:
    """The kinds of output of every code cell."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [{kind for output in cell.outputs for kind in output.get("data", {"text/plain": None})} for cell in cells]


def test_there_are_four() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04"]


SHORTER = {
    "01": {"epochs=30": "epochs=2"},
    "02": {"epochs=15": "epochs=2"},
    "03": {"epochs=50": "epochs=4", "range(0, len(test), 12)": "range(0, len(test), 60)"},
    "04": {"STEPS = 2000": "STEPS = 20"},
}
"""What the tests change in a notebook that trains for its pictures' sake."""


def shortened(notebook: nbformat.NotebookNode, changes: dict[str, str]) -> nbformat.NotebookNode:
    """The notebook without outputs and with changed words, each of which must be in it once."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    for old, new in changes.items():
        (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source]
        cell.source = cell.source.replace(old, new)
    return notebook


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_was_committed(path: Path, tmp_path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    fresh = shortened(nbformat.read(path, as_version=4), SHORTER[path.name[:2]])
    # In a folder of its own: a notebook may leave files beside it.
    NotebookClient(fresh, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(fresh) == shown(committed), "run scripts/notebooks.py and commit what it writes"
    pictures = {kind for kinds in shown(committed) for kind in kinds if kind.startswith("image/")}
    assert "image/png" in pictures
    assert path.stat().st_size < 1_500_000, "small enough to be looked at on the web"
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs(committed))


def outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]
