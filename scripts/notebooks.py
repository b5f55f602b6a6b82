"""Run notebooks from clean kernels and write them with their new output. Run this if code that they use has changed.

.venv/bin/python scripts/notebooks.py                              # all notebooks, in place
.venv/bin/python scripts/notebooks.py notebooks/03_visualise_attention.ipynb
"""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent.parent / "notebooks"


def refresh(path: Path) -> None:
    """Run a notebook in its folder, and write it with its output, but without data that differ between runs."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times
    notebook.metadata.pop("widgets", None)
    nbformat.write(notebook, path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(map(str, FOLDER.glob("*.ipynb"))):
        refresh(Path(name))
