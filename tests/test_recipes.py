"""The recipes of scripts/docs/tools.md run where their libraries are installed."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy import train_run

import pointset

PAGE = (Path(__file__).parent.parent / "scripts" / "docs" / "tools.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"```python\n# recipe: (\w+)\n(.*?)```", PAGE, flags=re.DOTALL))
MOST_LINES = 25
pytestmark = pytest.mark.slow


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


def test_options_are_tuned(run: Any) -> None:
    search = run("tune")["search"]
    assert set(search.best_params_) == {"dim", "learning_rate"}
    assert search.best_score_ > 0.1


def test_a_training_is_logged(run: Any, tmp_path: Path) -> None:
    run("log")
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert log.stat().st_size


def test_a_model_is_served(run: Any) -> None:
    recipe = run("serve")
    from fastapi.testclient import TestClient

    client = TestClient(recipe["app"])
    mesh = b"OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
    answer = client.post("/classify", files={"file": ("a.off", mesh)}).json()
    assert answer["classes"][0]["class"] in recipe["model"].classes
    refused = client.post("/classify", files={"file": ("a.off", b"OFF\n")})
    assert refused.status_code == 422
    assert "shape.off" in refused.json()["detail"]


def test_an_exported_model_is_run(run: Any) -> None:
    recipe = run("run")
    assert recipe["about"]["normalize"].startswith("standardize: subtract the mean of all numbers")
    test = pointset.load_dataset("shapes10", split="test", points=512, normalize="standardize")
    expected = recipe["model"](test.points[:1])[0].detach().numpy()
    assert recipe["logits"] == pytest.approx(expected, abs=1e-3)
    assert recipe["about"]["classes"] == list(test.classes)


def test_a_model_is_sent(run: Any, clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, sent = run("send"), tmp_path / "sent.pointset"
    import huggingface_hub

    api = huggingface_hub.HfApi
    monkeypatch.setattr(api, "create_repo", lambda *_, **__: None)
    monkeypatch.setattr(api, "upload_file", lambda _, path_or_fileobj, **__: shutil.copy(path_or_fileobj, sent))
    train_run(tmp_path / "run", clouds_folder, "rff-max")
    recipe["push"](str(tmp_path / "run"), "user/parts")
    monkeypatch.setitem(recipe, "hf_hub_download", lambda *_: str(sent))
    assert recipe["pull"]("user/parts").classes == pointset.load_run(tmp_path / "run")[0].classes
