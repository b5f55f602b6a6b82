"""The notebooks run in fresh kernels, and give the committed outputs."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHORTER = {
    "01": {"epochs=40": "epochs=2", "--budget 15s": "--budget 4s"},
    "02": {
        "epochs=15": "epochs=2",
        "seeds=[0, 1, 2]": "seeds=[0, 1]",
        "out=folder": "out=folder, workers=1, report=False",
    },
    "03": {"range(0, len(test), 6)": "range(0, len(test), 60)", "range(0, len(test), 12)": "range(0, len(test), 90)"},
    "04": {"STEPS = 1000": "STEPS = 20"},
    "05": {"epochs=10": "epochs=2", "out=tempfile.mkdtemp()": "out=tempfile.mkdtemp(), workers=1, report=False"},
    "06": {},
    "07": {},
    "08": {},
}
"""What the tests change in a notebook that trains or measures for its figures' sake. Starting workers, and a report,
take longer than so short a training; other tests have them."""

RULE = r"\n---|\\midrule"
"""The line below the headings of a table, as text and as LaTeX."""


def shortened(notebook: nbformat.NotebookNode, changes: dict[str, str]) -> nbformat.NotebookNode:
    """The notebook without outputs, and with words replaced, each of which must occur once."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    for old, new in changes.items():
        (cell,) = [cell for cell in notebook.cells if cell.cell_type == "code" and old in cell.source]
        cell.source = cell.source.replace(old, new)
    return notebook


def shown(cell: nbformat.NotebookNode) -> tuple[set[str], str]:
    """The kinds of output of a cell, and what of its text must not change.

    Under the tag "varies" stands what a training came to: only what is above the first rule of a table must stay.
    """
    outputs = cell.get("outputs", [])
    kinds = {kind for output in outputs for kind in output.get("data", {"stream": None})}
    text = "".join(output.get("text") or output.data.get("text/plain", "") for output in outputs)
    return kinds, lasting(re.split(RULE, text)[0] if "varies" in cell.metadata.get("tags", ()) else text)


def lasting(text: str) -> str:
    """Words, names, shapes such as [4, 16, 512], numbers such as 17,546; # for any other number, one space for many."""
    kept = r"\[\d+(?:, \d+)*\]|\b\d{1,3}(?:,\d{3})+\b(?! steps)"
    sizes, number = r"\d+(?:\.\d+)?x\d+(?:\.\d+)?", r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
    text = re.sub(f"({kept})|{sizes}|{number}", lambda found: found[1] or "#", text)
    return re.sub(r"\s+", " ", re.sub(r"--+", "-", text)).strip()


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_its_aim_and_all_its_links_work(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    first, *_ = notebook.cells
    assert first.source.startswith("# ")
    assert "At the end you will know" in first.source
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\((?!https?:)([^)]+)\)", text)
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_list_of_notebooks_has_all_of_them() -> None:
    links = re.findall(r"\]\((\w+\.ipynb)\)", (FOLDER / "README.md").read_text(encoding="utf-8"))
    assert links == [path.name for path in NOTEBOOKS]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_was_committed(path: Path, tmp_path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    nbformat.validate(committed)
    fresh = shortened(nbformat.read(path, as_version=4), SHORTER[path.name[:2]])
    # In a folder of its own: a notebook may leave files beside it.
    NotebookClient(fresh, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for now, then in zip(code_cells(fresh), code_cells(committed), strict=True):
        assert shown(now) == shown(then), "run scripts/notebooks.py and commit what it writes"
    outputs = [output for cell in code_cells(committed) for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.output_type == "stream" and output.name == "stderr" for output in outputs)
