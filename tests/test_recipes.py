"""The recipes of scripts/docs/tools.md run where their libraries are installed."""

import re
import shutil
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
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, Any]:
    """The names of a recipe after it ran in an empty folder, with shorter trainings."""
    monkeypatch.chdir(tmp_path)
    for name, value in {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    code = RECIPES[request.param]
    assert len(code.splitlines()) <= MOST_LINES
    names: dict[str, Any] = {"__name__": "recipe"}
    try:
        exec(compile(re.sub(r"epochs=\d+", "epochs=1", code), request.param, "exec"), names)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    return names


@pytest.mark.parametrize("recipe", ["tune"], indirect=True)
def test_options_are_tuned(recipe: dict[str, Any]) -> None:
    assert set(recipe["search"].best_params_) == {"dim", "learning_rate"}
    assert recipe["search"].best_score_ > 0.1


@pytest.mark.parametrize("recipe", ["log"], indirect=True)
def test_a_training_is_logged(recipe: dict[str, Any], tmp_path: Path) -> None:
    (log,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert log.stat().st_size


@pytest.mark.parametrize("recipe", ["serve"], indirect=True)
def test_a_model_is_served(recipe: dict[str, Any]) -> None:
    from fastapi.testclient import TestClient

    client = TestClient(recipe["app"])
    mesh = b"OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
    answer = client.post("/classify", files={"file": ("a.off", mesh)}).json()
    assert answer["classes"][0]["class"] in recipe["model"].classes
    refused = client.post("/classify", files={"file": ("a.off", b"OFF\n")})
    assert refused.status_code == 422
    assert "shape.off" in refused.json()["detail"]


@pytest.mark.parametrize("recipe", ["run"], indirect=True)
def test_an_exported_model_is_run(recipe: dict[str, Any]) -> None:
    assert recipe["about"]["normalize"].startswith("standardize: subtract the mean of all numbers")
    test = pointset.load_dataset("shapes10", split="test", points=512, normalize="standardize")
    expected = recipe["model"](test.points[:1])[0].detach().numpy()
    assert recipe["logits"] == pytest.approx(expected, abs=1e-3)
    assert recipe["about"]["classes"] == list(test.classes)


@pytest.mark.parametrize("recipe", ["send"], indirect=True)
def test_a_model_is_sent(
    recipe: dict[str, Any], clouds_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub

    sent = tmp_path / "sent.pointset"
    monkeypatch.setattr(huggingface_hub.HfApi, "create_repo", lambda *_, **__: None)
    monkeypatch.setattr(
        huggingface_hub.HfApi, "upload_file", lambda _, path_or_fileobj, **__: shutil.copy(path_or_fileobj, sent)
    )
    run = tmp_path / "run"
    train_run(run, clouds_folder, "rff-max")
    recipe["push"](str(run), "user/parts")
    monkeypatch.setitem(recipe, "hf_hub_download", lambda *_: str(sent))
    assert recipe["pull"]("user/parts").classes == pointset.load_run(run)[0].classes
