"""Callers that watch a training and end it, and finished runs that are read again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damage import StopError
from toy import numbers, same_weights, small

import pointset
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training
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


def test_early_stopping_keeps_the_best(train, tmp_path):
    recipe = Recipe(epochs=4, batch_size=60, validation=0.2, patience=1, learning_rate=1e-9)
    first = fit(train, recipe, tmp_path)
    assert (len(first.history), first.best_epoch) == (2, 1), "nothing is learned at this rate"
    again = fit(train, recipe, tmp_path)
    assert again.history == first.history
    assert same_weights(again.model, first.model)


@pytest.mark.parametrize(
    ("recipe", "seed", "words"),
    [
        (replace(SHORT, epochs=1), 0, "recipe.epochs is 2 there and 1 here"),
        (LONG, 0, "recipe.epochs is 2 there and 4 here"),
        (SHORT, 1, "seed is 0 there and 1 here"),
    ],
)
def test_another_run_never_replaces_a_finished_one(recipe, seed, words, train, tmp_path):
    fit(train, SHORT, tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    with pytest.raises(PointsetError, match=words):
        fit(train, recipe, tmp_path, seed=seed)
    assert (tmp_path / "model.safetensors").read_bytes() == before
