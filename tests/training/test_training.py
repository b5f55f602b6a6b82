"""The training loop: it learns, it is repeatable, and a kill changes no result."""

import math
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from damage import StopError, kill_at, stop_after
from torch import nn
from toy import numbers, same_weights, small

import pointset
from pointset import DataOptions, PointsetError, PointSets, Recipe, load_run
from pointset.cli import main
from pointset.data import Pool
from pointset.training.checkpoints import RunFolder
from pointset.training.loop import Training, best_epoch, learning_rate
from pointset.training.objectives import Classification

SHORT = Recipe(epochs=2, batch_size=16, learning_rate=3e-3)


class Flat(nn.Module):
    """A linear function of a cloud's corner."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        with torch.no_grad():
            self.layer.weight.copy_(torch.eye(3))
            self.layer.bias.zero_()

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        return self.layer(points.amax(dim=1))


def test_a_training_follows_its_formulas_by_hand(train):
    """Warm-up and cosine, smoothed labels, clipped gradients, decay of the matrix alone, momentum; in float64."""
    recipe = Recipe(
        epochs=2,
        batch_size=25,
        learning_rate=0.5,
        optimizer="sgd",
        weight_decay=0.1,
        warmup=0.3,
        label_smoothing=0.2,
        clip_norm=0.2,
    )
    model, objective, norms = Flat(), Classification(train, recipe, 3), []
    W, b = (parameter.detach().clone().double() for parameter in model.parameters())
    momenta, rates = [torch.zeros_like(W), torch.zeros_like(b)], [1 / 3, 2 / 3, 1]
    rates += [(1 + math.cos(math.pi * step / 7)) / 2 for step in range(7)]
    batches = [batch for epoch in range(2) for batch in objective.batches(epoch)]
    for batch, rate in zip(batches, rates, strict=True):
        rows = batch.points.double().amax(dim=1)
        wanted = 0.8 * nn.functional.one_hot(batch.labels, 3) + 0.2 / 3
        slopes = ((rows @ W.T + b).softmax(dim=1) - wanted) / len(rows)
        gradients = [slopes.T @ rows, slopes.sum(dim=0)]
        norms.append(math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients)))
        for weights, gradient, momentum, decay in zip((W, b), gradients, momenta, (0.1, 0.0), strict=True):
            momentum.mul_(0.9).add_(gradient * min(1, 0.2 / norms[-1]) + decay * weights)
            weights.sub_(0.5 * rate * momentum)
    fitted = pointset.fit(model, train, recipe, seed=3, progress=False)
    assert min(norms) < 0.2 < max(norms)
    for found, expected in zip(fitted.model.parameters(), (W, b), strict=True):
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


def test_waiting_time_is_not_counted_as_training_time(train):
    model = small("rff-max")
    model.register_forward_pre_hook(lambda *_: time.sleep(0.05))
    fitted = pointset.fit(model, train, replace(SHORT, batch_size=60))
    assert fitted.seconds > 4 * 0.05, "2 epochs of 2 steps"
    assert 0 < fitted.work < fitted.seconds - 0.15


@pytest.mark.slow
def test_only_the_seed_decides_the_numbers_and_not_the_global_random_state(train):
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    first = pointset.fit(small(), train, SHORT, seed=5)
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    again, other = (pointset.fit(small(), train, SHORT, seed=seed) for seed in (5, 6))
    assert numbers(first.history) == numbers(again.history)
    assert same_weights(first.model, again.model)
    assert numbers(first.history) != numbers(other.history)


@pytest.mark.slow
def test_killed_in_mid_epoch_and_resumed_gives_the_same_numbers_to_the_last_bit(clouds_folder, tmp_path):
    sizes = "--points 48 --dim 32 --train-points 8 24 --last-points 48 64 --batch-size 3"
    recipe = "--epochs 4 --validation 0.2 --seed 3 --augment stretch-wide drop cutmix-k"
    command = ["train", "isab4-pma", "--data", str(clouds_folder), "--json", *sizes.split(), *recipe.split(), "--run"]
    main([*command, str(tmp_path / "whole")])

    killed = tmp_path / "killed"
    kill_at(80, Training, "_backward", main, [*command, str(killed)])  # of 32 steps an epoch
    assert not (killed / "model.safetensors").exists()
    main([*command, str(killed)])

    whole = (tmp_path / "whole" / "model.safetensors").read_bytes()
    assert (killed / "model.safetensors").read_bytes() == whole
    assert numbers(RunFolder(killed).history()) == numbers(RunFolder(tmp_path / "whole").history())
    assert {path.name for path in killed.iterdir()} - {".lock"} == {"history.jsonl", "model.safetensors", "run.json"}


def test_a_model_of_the_users_own_trains_and_resumes_but_is_not_built_again(train, tmp_path):
    pointset.fit(Flat(), train, SHORT, run=tmp_path)
    with pytest.raises(PointsetError, match="a model of your own"):
        load_run(tmp_path)


def test_a_folder_whose_training_was_stopped_is_not_finished(train, tmp_path, monkeypatch):
    stop_after(monkeypatch, 1)
    with pytest.raises(StopError):
        pointset.fit(small(), train, SHORT, run=tmp_path)
    with pytest.raises(PointsetError, match="is not finished"):
        load_run(tmp_path)


@pytest.mark.slow
def test_a_budget_in_steps_ends_in_the_middle_of_an_epoch(train):
    """The schedule ends with the last step; a whole number of epochs in steps equals these epochs."""
    per_epoch = -(-len(train) // 7)
    fitted = pointset.fit(small(), train, Recipe(steps=per_epoch + 2, batch_size=7, warmup=0.0), progress=False)
    assert [row["epoch"] for row in fitted.history] == [1, 2]
    assert fitted.history[-1]["learning_rate"] == learning_rate(Recipe(warmup=0.0), per_epoch + 1, per_epoch + 2)
    whole = pointset.fit(small(), train, Recipe(steps=2 * per_epoch, batch_size=7, schedule="constant"), progress=False)
    same = pointset.fit(small(), train, Recipe(epochs=2, batch_size=7, schedule="constant"), progress=False)
    assert numbers(whole.history) == numbers(same.history)


@pytest.mark.slow
def test_mixed_precision_learns_the_same_to_its_precision_and_keeps_float32_weights(train):
    recipe = Recipe(epochs=3, batch_size=8, learning_rate=5e-3)
    exact = pointset.fit(small(), train, recipe, progress=False)
    rounded = pointset.fit(small(), train, replace(recipe, precision="bfloat16"), progress=False)
    assert {tensor.dtype for tensor in rounded.model.state_dict().values()} == {torch.float32}
    assert rounded.history[0]["loss"] != exact.history[0]["loss"]
    assert rounded.history[0]["loss"] == pytest.approx(exact.history[0]["loss"], rel=0.02)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimizer": "sgd", "weight_decay": 1e-3},
        {"optimizer": "adam", "weight_decay": 1e-3},
        {"optimizer": "muon", "weight_decay": 1e-3},
        {"patience": 5, "validation": 0.2},
        {"neighbourhoods": "oriented", "augment": ("rotate-up", "jitter", "cutmix-k")},
    ],
)
def test_a_training_resumes_to_the_last_bit(changes, train, tmp_path, monkeypatch):
    changes = dict(changes)
    network = partial(small, neighbourhoods=changes.pop("neighbourhoods", "none"))
    recipe = Recipe(epochs=4, batch_size=40, learning_rate=1e-2, **changes)
    whole = pointset.fit(network(), train, recipe)
    with monkeypatch.context() as patch:
        stop_after(patch, 2)
        with pytest.raises(StopError):
            pointset.fit(network(), train, recipe, run=tmp_path)
    resumed = pointset.fit(network(), train, recipe, run=tmp_path)
    assert numbers(resumed.history) == numbers(whole.history)
    assert same_weights(resumed.model, whole.model)


def with_points(value: float, normalize: str, count: int = 6) -> PointSets:
    """Sets of two classes, with one unusual coordinate."""
    points = torch.randn(count, 8, 3, generator=torch.Generator().manual_seed(0)).numpy()
    points[3, :, 1] = value
    pool = Pool(points, [f"s{row}" for row in range(count)], np.arange(count) % 2, ["a", "b"], "as released")
    return PointSets(pool, DataOptions(points=8, normalize=normalize))


@pytest.mark.parametrize(
    ("value", "normalize", "words"),
    [
        (math.nan, "unit-sphere", "the loss became nan in epoch 1: shape 's3' has a coordinate that is not finite"),
        (math.inf, "none", "shape 's3' has a coordinate that is not finite"),
        (3.3e38, "none", r"shape 's3' has coordinates of 3.3e\+38.* choose normalize"),
    ],
)
def test_a_shape_that_spoils_the_loss_is_named_in_training_and_in_evaluation(value, normalize, words):
    sets, model = with_points(value, normalize), pointset.create_model("isab4-pma", classes=2, dim=16)
    with pytest.raises(PointsetError, match=words.split(": ")[-1]):
        pointset.evaluate(model, sets)
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, sets, Recipe(epochs=1), progress=False)


@pytest.mark.parametrize(
    ("model", "sets", "words"),
    [
        (small(), torch.zeros(5, 32, 3), r"train must be .*PointSets, got float32 \[5, 32, 3\]"),
        ("isab4-pma", None, r"model must be a torch module.*create_model\('isab4-pma'\)"),
        (pointset.create_model("rff-max", classes=2), None, r"gives float32 \[16, 2\].*3 classes: .*classes=3"),
        (pointset.create_model("rff-max", classes=4), None, r"gives float32 \[16, 4\].*3 classes"),
    ],
)
def test_untrainable_data_is_an_error_before_anything_is_written(model, sets, words, train, tmp_path):
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, train if sets is None else sets, SHORT, run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "history.jsonl").exists()


def test_the_best_epoch_is_what_is_kept_and_saved(train, tmp_path):
    recipe = Recipe(epochs=12, batch_size=24, learning_rate=3e-2, validation=0.2, patience=3, schedule="constant")
    fitted = pointset.fit(small("rff-max", norm="batch"), train, recipe, run=tmp_path, progress=False)
    best = best_epoch(fitted.history)
    held_out = train.split_validation(0.2, 0)[1]
    found = fitted.history[best - 1]["validation_accuracy"]
    assert pointset.evaluate(fitted.model, held_out).accuracy == found
    assert same_weights(load_run(tmp_path)[0], fitted.model)
