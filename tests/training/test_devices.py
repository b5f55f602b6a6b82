"""Devices, dropout on them, and the precision of their products."""

import re

import pytest
import torch
from torch import nn
from toy import small

import pointset
from pointset.training import devices
from pointset.training.loop import seeded_dropout
from pointset.training.recipe import Recipe


def drawn(seed: int, epoch: int, rank: int = 0) -> tuple[float, ...]:
    with seeded_dropout(seed, epoch, torch.device("cpu"), rank):
        return tuple(torch.rand(4).tolist())


def test_every_seed_epoch_and_process_draws_its_own_numbers_and_draws_them_again() -> None:
    keys = [(seed, epoch, rank) for seed in range(3) for epoch in range(3) for rank in range(3)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    assert drawn(1, 2) == drawn(1, 2)


class Watched(nn.Module):
    """Records which units dropout kept in the first batch of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.layer = nn.Linear(3, 3)
        self.left: list[torch.Tensor] = []

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.left.append(self.dropout(torch.ones(64)))
        return self.layer(points.amax(dim=1))


def test_a_training_drops_other_units_in_every_epoch(train) -> None:
    models = Watched(), Watched()
    for model in models:
        pointset.fit(model, train, Recipe(epochs=3, batch_size=len(train)), seed=2, progress=False)
    masks = [tuple(mask.tolist()) for mask in models[0].left]
    assert len(set(masks)) == len(masks) == 3
    assert masks == [tuple(mask.tolist()) for mask in models[1].left]


@pytest.fixture
def measured(monkeypatch):
    def measure(speed: float) -> None:
        monkeypatch.setattr(devices, "bfloat16_speed", lambda device="auto": speed)

    return measure


@pytest.mark.parametrize(("speed", "taken"), [(3.4, "bfloat16"), (1.05, "float32"), (0.3, "float32")])
def test_auto_chooses_the_faster_precision_and_results_name_it(measured, speed, taken):
    measured(speed)
    recipe = pointset.Recipe(precision="auto")
    assert recipe.precision == "auto", "a configuration measures nothing"
    assert devices.measured_precision(recipe) == pointset.Recipe(precision=taken)


def test_bfloat16_says_so_where_it_is_slower(measured, train):
    measured(0.25)
    with pytest.warns(UserWarning, match=re.escape("4.0 times as long as in float32")):
        pointset.fit(small("rff-max"), train, pointset.Recipe(steps=1, precision="bfloat16"), progress=False)


@pytest.mark.parametrize(("asked", "speed"), [("bfloat16", 1.2), ("float32", 0.25)])
def test_there_is_no_warning_otherwise(measured, train, recwarn, asked, speed):
    measured(speed)
    pointset.fit(small("rff-max"), train, pointset.Recipe(steps=1, precision=asked), progress=False)
    assert not recwarn.list


def test_the_measurement_is_a_ratio_of_seconds_and_is_made_once(monkeypatch):
    devices.bfloat16_speed.cache_clear()
    speed = devices.bfloat16_speed("cpu")
    assert 0.01 < speed < 100
    monkeypatch.setattr(devices, "find_device", None)
    assert devices.bfloat16_speed("cpu") == speed
