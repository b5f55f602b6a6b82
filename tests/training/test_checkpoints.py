"""Runs as folders and as one file: damage is named, processes never share one, and a file does no harm."""

import contextlib
import copy
import io
import json
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from toy import StopError, numbers, same_weights, small, stop_after

import pointset
from pointset import PointsetError, PointSets, Recipe, load_model
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


def begun(folder: Path) -> RunFolder:
    """A run with a checkpoint after an epoch."""
    model, run = small(), RunFolder(folder)
    run.describe({"model": {}, "data": {}, "recipe": {}, "seed": 0})
    weights, state = model.state_dict(), torch.optim.AdamW(model.parameters()).state_dict()
    run.save(Checkpoint(weights, state, [{"epoch": 1, "loss": 1.0, "seconds": 0.1}], best=weights))
    return run


@pytest.mark.parametrize(
    ("name", "share"), [("history.jsonl", 0.5), ("history.jsonl", None), ("checkpoint.pt", 0.5), ("checkpoint.pt", 0.0)]
)
def test_a_file_that_is_cut_or_missing_is_named(name, share, tmp_path):
    run, file = begun(tmp_path), tmp_path / name
    content = file.read_bytes()
    file.unlink()
    if share is not None:
        file.write_bytes(content[: int(share * len(content))])
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


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    run, other = begun(tmp_path), pointset.create_model("isab4-pma", classes=3, heads=2, layers=3)
    with pytest.raises(PointsetError, match="does not fit the model"):
        run.load().restore(other, torch.optim.AdamW(other.parameters()))


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
        load_model(folder)
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


def fit(train: PointSets, recipe: Recipe, run: Path | None = None, **options: Any) -> pointset.training.Fitted:
    return pointset.fit(small("rff-max"), train, recipe, run=run, progress=False, **options)


def kill(*_: Any, **__: Any) -> None:
    raise StopError


def test_callbacks_get_a_copy_of_every_row(train):
    rows, rows_seen = [], []

    def watch(row: dict) -> int:
        rows.append(dict(row))
        row.clear()
        return 1  # a true value, as `file.write` gives one, does not end a run

    fitted = fit(train, SHORT, callbacks=[watch, rows_seen.append])
    assert rows == rows_seen == fitted.history
    assert [row["epoch"] for row in rows] == [1, 2]


def test_a_callback_ends_a_run_which_is_finished_then(train, tmp_path, monkeypatch):
    whole = fit(train, LONG)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "finish", kill)  # after the checkpoint that knows of the answer
        with pytest.raises(StopError):
            fit(train, LONG, tmp_path, callbacks=[lambda row: np.True_ if row["epoch"] == 2 else None])
    ended = fit(train, LONG, tmp_path)
    assert [row.get("stopped") for row in ended.history] == [None, True]
    assert numbers(ended.history)[0] == numbers(whole.history)[0]
    assert json.loads((tmp_path / "history.jsonl").read_text().splitlines()[1])["stopped"] is True
    monkeypatch.setattr(Training, "_epoch", kill)
    assert fit(train, LONG, tmp_path).history == ended.history


def other_weights() -> nn.Module:
    model = small("rff-max")
    model.load_state_dict(small("rff-max", seed=1).state_dict())
    return model


def partly_frozen() -> nn.Module:
    model = small("rff-max")
    next(model.parameters()).requires_grad_(False)
    return model


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_run_of_other_initial_weights_or_frozen_parameters_is_refused(is_finished, train, tmp_path, monkeypatch):
    model = small("rff-max")
    with monkeypatch.context() as patch:
        if not is_finished:
            patch.setattr(RunFolder, "finish", kill)
        with contextlib.suppress(StopError):
            pointset.fit(model, train, SHORT, run=tmp_path, progress=False)
    for other, words in ((other_weights(), "initial_weights"), (partly_frozen(), "frozen")):
        before = copy.deepcopy(other.state_dict())
        with pytest.raises(PointsetError, match=rf"another run \({words}"):
            pointset.fit(other, train, SHORT, run=tmp_path, progress=False)
        assert all(tensor.equal(before[name]) for name, tensor in other.state_dict().items())
    again = pointset.fit(small("rff-max"), train, SHORT, run=tmp_path, progress=False)
    assert same_weights(again.model, model)
    pointset.fit(again.model, train, SHORT, run=tmp_path, progress=False)  # it has the weights of the finished run


def test_a_model_that_is_frozen_as_a_whole_is_refused(train):
    with pytest.raises(PointsetError, match="all parameters of the model are frozen: set requires_grad"):
        pointset.fit(small().requires_grad_(False), train, SHORT, progress=False)


def rms(rate: float) -> Any:
    return partial(torch.optim.RMSprop, lr=rate)


def decay(step: int, steps: int) -> float:
    return 1 - step / steps


OWN = {"loss": nn.CrossEntropyLoss(), "optimizer": rms(1e-3)}


OTHERS = [
    ({"loss": nn.CrossEntropyLoss(label_smoothing=0.3)}, r"another run \(loss"),
    ({"loss": None}, r"another run \(loss"),
    ({"optimizer": rms(1e-4)}, r"another run \(optimizer\.groups"),
    ({"optimizer": None}, r"another run \(optimizer"),
    ({"recipe": replace(LONG, schedule=lambda step, steps: 1.0)}, r"another run \(recipe\.schedule"),
]


def test_a_run_with_a_loss_optimizer_and_schedule_of_ones_own_resumes_with_the_same_alone(train, tmp_path, monkeypatch):
    own = {"recipe": replace(LONG, schedule=decay), **OWN}
    whole = fit(train, **own)
    assert [row["learning_rate"] for row in whole.history[:2]] != [0.0, 0.0]
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StopError):
            fit(train, run=tmp_path, **own)
    for changes, words in OTHERS:
        with pytest.raises(PointsetError, match=words):
            fit(train, run=tmp_path, **{**own, **changes})
    resumed = fit(train, run=tmp_path, **own)
    assert numbers(resumed.history) == numbers(whole.history)
    assert same_weights(resumed.model, whole.model)


def test_a_loss_and_a_schedule_do_what_they_compute(train):
    recipe = replace(SHORT, label_smoothing=0.2, schedule="constant", warmup=0.0)
    usual = fit(train, recipe)
    same = fit(train, replace(recipe, schedule=lambda step, steps: 1.0), loss=nn.CrossEntropyLoss(label_smoothing=0.2))
    assert numbers(same.history) == numbers(usual.history)
    adam = fit(train, recipe, optimizer=partial(torch.optim.Adam, lr=recipe.learning_rate))
    assert numbers(adam.history)[-1] == pytest.approx(
        numbers(fit(train, replace(recipe, optimizer="adam")).history)[-1], rel=1e-4
    )


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"loss_fn": len}, TypeError, "no argument 'loss_fn': use loss"),
        ({"criterion": len}, TypeError, "'criterion': use loss"),
        ({"scheduler": len}, TypeError, r"'scheduler': use recipe=Recipe\(schedule=...\), one of 'cosine'"),
        ({"callback": len}, TypeError, "'callback': use callbacks"),
        ({"optimzer": len}, TypeError, "'optimzer': use optimizer"),
        ({"loss": nn.CrossEntropyLoss(reduction="none")}, PointsetError, r"must return the mean of a batch, .* \["),
        ({"optimizer": lambda _: 5}, PointsetError, r"optimizer\(parameters\) must return a torch.optim.Optimizer"),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)])}, PointsetError, "must be a function of the parameters"),
        (
            {"loss": nn.CrossEntropyLoss(), "recipe": replace(SHORT, class_weights="balanced")},
            PointsetError,
            "class_weights cannot be used with loss",
        ),
    ],
)
def test_what_a_training_cannot_take_is_answered_with_what_it_takes(arguments, kind, words, train):
    with pytest.raises(kind, match=words) as caught:
        fit(train, **{"recipe": SHORT, **arguments})
    assert "\n" not in str(caught.value)
