"""Callers that watch a training and end it, and finished runs that continue with more epochs."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import StopError, stop_after
from toy import numbers, same_weights, small

import pointset
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training
from pointset.training.optimization import learning_rate
from pointset.training.recipe import Recipe

SHORT = Recipe(epochs=2, batch_size=60, learning_rate=3e-3)
LONG = replace(SHORT, epochs=4)


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


def test_a_finished_run_goes_on_from_its_weights_with_a_new_schedule(train, tmp_path):
    first = fit(train, SHORT, tmp_path)
    longer = fit(train, LONG, tmp_path)
    assert longer.history[:2] == first.history
    steps = 2 * 2  # batches of 60 of 120 shapes, epochs 3 and 4
    assert [row["learning_rate"] for row in longer.history[2:]] == [learning_rate(LONG, step, steps) for step in (1, 3)]
    assert not same_weights(first.model, longer.model)

    about = json.loads((tmp_path / "run.json").read_text())
    assert about["recipe"]["epochs"] == 4
    assert (about["continued_from"]["epochs"], about["continued_from"]["recipe"]["epochs"]) == (2, 2)
    assert "versions" in about["continued_from"]
    again = fit(train, LONG, tmp_path)
    assert again.history == longer.history
    assert same_weights(again.model, longer.model)

    fit(train, replace(LONG, epochs=5), tmp_path)
    about = json.loads((tmp_path / "run.json").read_text())
    assert (about["continued_from"]["epochs"], about["continued_from"]["continued_from"]["epochs"]) == (4, 2)


def kill_before_the_weights_go(path: Path, missing_ok: bool = False) -> None:
    if path.name == "model.safetensors":
        kill()
    os.unlink(path) if path.exists() or not missing_ok else None  # noqa: PTH108 - Path.unlink is this function


MOMENTS = {
    "the finished weights are still there": (Path, "unlink", kill_before_the_weights_go),
    "run.json is written": (RunFolder, "weights"),
    "nothing is saved": (RunFolder, "save"),
    "all epochs are done": (Training, "_finish"),
}


@pytest.mark.parametrize("moment", ["an epoch is done", *MOMENTS])
def test_going_on_survives_a_kill_at_any_moment(moment, train, tmp_path, monkeypatch):
    """All end bitwise equal to a run that was not killed."""
    fit(train, SHORT, tmp_path / "whole")
    fit(train, SHORT, tmp_path / "killed")
    whole = fit(train, LONG, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(*(*MOMENTS[moment], kill)[:3]) if moment in MOMENTS else stop_after(patch, 3)
        with pytest.raises(StopError):
            fit(train, LONG, tmp_path / "killed")
    found = fit(train, LONG, tmp_path / "killed")
    assert numbers(found.history) == numbers(whole.history)
    assert same_weights(found.model, whole.model)


def test_early_stopping_begins_anew_and_never_loses_the_best(train, tmp_path):
    recipe = Recipe(epochs=4, batch_size=60, validation=0.2, patience=1, learning_rate=1e-9, average=0.5)
    first = fit(train, recipe, tmp_path)
    assert (len(first.history), first.best_epoch) == (2, 1), "nothing is learned at this rate"
    again = fit(train, recipe, tmp_path)
    assert again.history == first.history
    longer = fit(train, replace(recipe, epochs=6), tmp_path)
    assert (len(longer.history), longer.best_epoch) == (3, 1), "one more epoch, which is not better"
    assert same_weights(longer.model, first.model)


@pytest.mark.parametrize(
    ("recipe", "seed", "words"),
    [
        (replace(SHORT, epochs=1), 0, "recipe.epochs is 2 there and 1 here"),
        (LONG, 1, "recipe.epochs is 2 there and 4 here"),
        (replace(LONG, batch_size=7), 0, "is 2 there and 4 here"),
        (replace(LONG, steps=9), 0, "is 2 there and 4 here"),
    ],
)
def test_only_more_epochs_go_on(recipe, seed, words, train, tmp_path):
    fit(train, SHORT, tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(PointsetError, match=words):
        fit(train, recipe, tmp_path, seed=seed)
    assert (tmp_path / "model.safetensors").read_bytes() == before


def test_an_unfinished_run_is_not_lengthened(train, tmp_path, monkeypatch):
    monkeypatch.setattr(Training, "_finish", kill)
    with pytest.raises(StopError):
        fit(train, SHORT, tmp_path)
    with pytest.raises(PointsetError, match="2 there and 4 here"):
        fit(train, LONG, tmp_path)
