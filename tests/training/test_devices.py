"""Devices, dropout on them, and the precision of their products."""

from contextlib import nullcontext

import pytest
import torch
from torch import nn

import pointset
from pointset import Recipe
from pointset.training import devices
from pointset.training.loop import seeded_dropout


def drawn(seed: int, epoch: int, rank: int = 0) -> tuple[float, ...]:
    with seeded_dropout(seed, epoch, torch.device("cpu"), rank):
        return tuple(torch.rand(4).tolist())


def test_every_seed_epoch_and_process_draws_its_own_numbers_and_draws_them_again():
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


def test_a_training_drops_other_units_in_every_epoch(train):
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


POOLS = ("mean", "sum", "pma", "pma2", "asp", "gem", "top2", "fspool", "pswe8", "fpswe8", "cov4", "repset2", "max+pma")
NAMES = [*(f"{name}-max" for name in ("none", "rff", "rffp", "sab", "isab4")), *(f"rff-{pool}" for pool in POOLS)]
STEPS = [(name, masked) for name in NAMES for masked in (False, True)]
STEPS += [("dumlp4-max", False), ("rff-dumlp4", False)]  # with a mask, their batch norm picks points by its values


@pytest.mark.parametrize(("name", "masked"), STEPS)
def test_no_tensor_of_a_training_step_is_on_another_device_than_the_points(name, masked, monkeypatch):
    """On "meta", whose tensors have no values: a new tensor on the CPU, or a value that is looked at, is an error."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # torch has none for "meta"
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
    model = pointset.create_model(name, classes=3, dim=8, heads=2).to("meta").train()
    points, mask = torch.randn(2, 20, 3, device="meta"), torch.ones(2, 20, dtype=torch.bool, device="meta")
    logits = model(points, mask if masked else None)
    nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.long, device="meta")).backward()
    assert model.embed_sets(points).device.type == "meta"
    assert {parameter.grad.device.type for parameter in model.parameters() if parameter.grad is not None} == {"meta"}
