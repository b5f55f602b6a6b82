"""The notebooks run in fresh kernels and give the committed outputs; the recipes of scripts/docs/tools.md run too."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from toy import TETRAHEDRON, train_run

import pointset

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
def test_a_notebook_runs_and_shows_what_was_committed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")  # other tests use the cores, too
    monkeypatch.setenv("PYTHONWARNINGS", "ignore:training ends at chance:UserWarning")  # because it is shortened
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


PAGE = (Path(__file__).parent.parent / "scripts" / "docs" / "tools.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"```python\n# recipe: (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))
MOST_LINES = 25


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Run a recipe in an empty folder, with shorter trainings; the result has its names."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)

    def run_recipe(title: str) -> dict[str, Any]:
        code = RECIPES[title]
        assert len(code.splitlines()) <= MOST_LINES
        names: dict[str, Any] = {"__name__": "recipe"}
        try:
            exec(compile(re.sub(r"epochs=\d+", "epochs=1", code), title, "exec"), names)
        except ModuleNotFoundError as error:
            pytest.skip(f"{error.name} is not installed")
        return names

    return run_recipe


@pytest.mark.slow
def test_options_are_tuned(run: Any) -> None:
    search = run("tune")["search"]
    assert set(search.best_params_) == {"options__dim", "recipe__learning_rate"}
    assert search.best_score_ > 0.1


@pytest.mark.slow
def test_a_training_is_logged(run: Any, tmp_path: Path) -> None:
    run("log")
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert log.stat().st_size


@pytest.mark.slow
def test_a_model_is_served(run: Any) -> None:
    recipe = run("serve")
    from fastapi.testclient import TestClient

    client = TestClient(recipe["app"])
    answer = client.post("/classify", files={"file": ("a.off", TETRAHEDRON.format(size=1).encode())}).json()
    assert answer["class"] in recipe["model"].classes
    refused = client.post("/classify", files={"file": ("a.off", b"OFF\n")})
    assert refused.status_code == 422
    assert "shape.off" in refused.json()["detail"]


@pytest.mark.slow
def test_an_exported_model_gives_the_probabilities_of_classify(run: Any) -> None:
    recipe = run("run")
    assert recipe["about"]["normalize"].startswith("center-standardize: subtract the mean")
    assert recipe["about"]["classes"] == recipe["model"].classes
    assert recipe["model"].temperature != 1
    (expected,) = recipe["model"].predict_proba(recipe["cloud"])
    assert recipe["probabilities"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_a_model_is_sent(run: Any, clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, sent = run("send"), tmp_path / "sent"
    import huggingface_hub

    api = huggingface_hub.HfApi
    monkeypatch.setattr(api, "create_repo", lambda *_, **__: None)
    monkeypatch.setattr(api, "upload_folder", lambda _, folder_path, **__: shutil.copytree(folder_path, sent))
    train_run(tmp_path / "run", clouds_folder, "rff-max")
    recipe["push"](str(tmp_path / "run"), "user/parts")
    monkeypatch.setitem(recipe, "snapshot_download", lambda *_: str(sent))
    assert recipe["pull"]("user/parts").classes == pointset.load_model(tmp_path / "run").classes
