"""Run folders: damage is named, processes never share one, callers may end a run, and a finished one is read again."""

import io
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from damage import StopError
from toy import numbers, same_weights, small

import pointset
from pointset import PointsetError, PointSets, Recipe, load_run
from pointset.runs import records
from pointset.training.checkpoints import Checkpoint, RunFolder
from pointset.training.loop import Training

SHORT = Recipe(epochs=2, batch_size=60, learning_rate=3e-3)
LONG = replace(SHORT, epochs=4)


@pytest.fixture(scope="module")
def finished(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    pointset.fit(small(), train, SHORT, run=folder)
    return folder


def begun(folder: Path, epochs: int = 1) -> RunFolder:
    """A run with a checkpoint after some epochs."""
    model, run = small(), RunFolder(folder)
    optimizer = torch.optim.AdamW(model.parameters())
    run.describe({"model": {}, "data": {}, "recipe": {}, "seed": 0})
    history = [{"epoch": epoch + 1, "loss": 1.0, "seconds": 0.1} for epoch in range(epochs)]
    weights = model.state_dict()
    run.save(Checkpoint(weights, optimizer.state_dict(), history, best=weights))
    return run


def damage(file: Path, how: str) -> None:
    if how == "truncated":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        file.unlink()


DAMAGES = [("history.jsonl", how) for how in ("truncated", "missing")]  # empty, it is that of no epoch
DAMAGES += [("checkpoint.pt", how) for how in ("truncated", "empty")]


@pytest.mark.parametrize(("name", "how"), DAMAGES)
def test_a_damaged_file_is_named(name, how, tmp_path):
    run = begun(tmp_path)
    damage(tmp_path / name, how)
    with pytest.raises(PointsetError, match=re.escape(name)):
        run.history() if name == "history.jsonl" else run.load()


class Executed:
    def __reduce__(self):
        return Path.write_text, (Path("executed"), "")


def saved(value) -> bytes:
    content = io.BytesIO()
    torch.save(value, content)
    return content.getvalue()


STATE = {"weights": {}, "optimizer": {}, "history": "[]"}


@pytest.mark.parametrize(
    "content",
    [
        b"no checkpoint",
        saved([1, 2]),
        saved({"weights": {}}),
        saved(STATE | {"further": 5}),
        saved(STATE | {"history": "[" * 100_000}),
        saved(STATE | {"history": '[{"epoch": 2, "seconds": 0.1}]'}),
        saved(STATE | {"weights": Executed()}),
    ],
)
def test_an_intact_checkpoint_with_other_content_is_named(content, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = begun(tmp_path)
    records.write(tmp_path / "checkpoint.pt", content)
    with pytest.raises(PointsetError) as caught:
        run.load()
    message = str(caught.value)
    assert re.search(r"checkpoint\.pt does not hold a checkpoint", message)
    assert f"or delete {tmp_path / 'checkpoint.pt'} and run the same training again" in message
    assert not Path("executed").exists()


@pytest.mark.parametrize("part", ["model", "data", "recipe", "seed"])
def test_a_run_goes_on_with_its_own_model_data_recipe_and_seed_only(part, tmp_path):
    run, same = begun(tmp_path), {"model": {}, "data": {}, "recipe": {}, "seed": 0}
    run.describe(same | {"versions": "others"})
    with pytest.raises(PointsetError, match=rf"holds another run \({part}\S* is .* there and .*1.* here\)"):
        run.describe(same | {part: 1 if part == "seed" else {"size": 1}})


def test_a_checkpoint_of_another_model_or_optimizer_is_refused(tmp_path):
    run, model = begun(tmp_path), small()
    state = pointset.create_model("isab4-pma", classes=3, heads=2, layers=3)
    moved = torch.optim.AdamW(state.parameters())
    with pytest.raises(PointsetError, match="does not fit the model"):
        run.load().restore(state, moved)
    for parameter in state.parameters():
        parameter.grad = torch.zeros_like(parameter)
    moved.step()
    checkpoint = run.load()
    checkpoint.optimizer = moved.state_dict()
    with pytest.raises(PointsetError, match="the optimizer state of the checkpoint does not belong to this run"):
        checkpoint.restore(model, torch.optim.AdamW(model.parameters()))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda about: [about], "run"),
        (lambda about: about | {"model": about["model"] | {"inputs": "three"}}, "$.model.inputs"),
        (lambda about: about | {"model": about["model"] | {"options": {"weights": 5}}}, "run.json"),
        (lambda about: about | {"data": about["data"] | {"classes": ["ball", "box"]}}, "2 names for 3 classes"),
        (lambda about: about | {"data": about["data"] | {"normalize": "somehow"}}, "somehow"),
    ],
)
def test_an_intact_description_of_something_else_is_refused(change, named, finished, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    records.write_json(folder / "run.json", change(json.loads((folder / "run.json").read_text())))
    with pytest.raises(PointsetError, match=r"run\.json does not") as caught:
        load_run(folder)
    assert named in str(caught.value)


def test_a_checkpoint_that_a_kill_left_in_a_finished_run_is_dropped(finished, train, tmp_path):
    folder = shutil.copytree(finished, tmp_path / "run")
    shutil.copy(begun(tmp_path / "other").path / "checkpoint.pt", folder)
    pointset.fit(small(), train, SHORT, run=folder)
    assert not (folder / "checkpoint.pt").exists()


@pytest.mark.slow
def test_a_description_without_a_finished_epoch_is_not_a_run(train, tmp_path):
    (tmp_path / "run.json").write_text('{"seed": 7}')
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


def test_a_folder_that_another_process_trains_in_is_refused(train, tmp_path):
    with RunFolder(tmp_path).locked(), pytest.raises(PointsetError, match="another process is training in"):
        pointset.fit(small(), train, SHORT, run=tmp_path)
    assert pointset.fit(small(), train, SHORT, run=tmp_path).best_epoch == 2


def fit(train: PointSets, recipe: Recipe, run: Path | None = None, **options: Any) -> pointset.Fitted:
    return pointset.fit(small("rff-max"), train, recipe, run=run, progress=False, **options)


def kill(*_: Any, **__: Any) -> None:
    raise StopError


def test_a_caller_sees_every_row_and_cannot_change_it(train):
    rows = []

    def watch(row: dict) -> int:
        rows.append(dict(row))
        row.clear()
        return 1  # a true value, as `file.write` gives one, does not end a run

    fitted = fit(train, SHORT, on_epoch=watch)
    assert rows == fitted.history
    assert [row["epoch"] for row in rows] == [1, 2]


@pytest.mark.parametrize("answer", [True, np.True_])
def test_a_caller_ends_a_run_which_is_finished_then(answer, train, tmp_path, monkeypatch):
    whole = fit(train, LONG)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", kill)  # after the checkpoint that knows of the answer
        with pytest.raises(StopError):
            fit(train, LONG, tmp_path, on_epoch=lambda row: answer if row["epoch"] == 2 else None)
    ended = fit(train, LONG, tmp_path)
    assert [row.get("stopped") for row in ended.history] == [None, True]
    assert numbers(ended.history)[0] == numbers(whole.history)[0]
    assert json.loads((tmp_path / "history.jsonl").read_text().splitlines()[1])["stopped"] is True
    monkeypatch.setattr(Training, "_epoch", kill)
    assert fit(train, LONG, tmp_path).history == ended.history


def test_early_stopping_keeps_the_best(train, tmp_path):
    recipe = Recipe(epochs=4, batch_size=60, validation=0.2, patience=1, learning_rate=1e-9)
    first = fit(train, recipe, tmp_path)
    assert (len(first.history), first.best_epoch) == (2, 1), "nothing is learned at this rate"
    again = fit(train, recipe, tmp_path)
    assert again.history == first.history
    assert same_weights(again.model, first.model)


def test_another_run_never_replaces_a_finished_one(train, tmp_path):
    fit(train, SHORT, tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(PointsetError, match=r"recipe\.epochs is 2 there and 4 here"):
        fit(train, LONG, tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == before
