"""Tiled attention against the plain operations: same values and gradients for any sizes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pointset import create_model
from pointset.nn import blocks, dropout
from pointset.nn.dropout import Dropout
from pointset.nn.fast import absorbed, packing, tiles
from pointset.nn.fast.reading import read_sets
from pointset.nn.fast.writing import write_rows

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12}


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


@pytest.fixture
def small_tiles(monkeypatch):
    """Sets the size of tiles to a few rows, so that small sets have many tiles."""
    monkeypatch.setattr(tiles, "tile_size", lambda: 64)


def plainly(model: nn.Module) -> nn.Module:
    """The model with a hook, so that it uses the plain operations."""
    for module in model.modules():
        module.register_forward_hook(lambda *_: None)
    return model


def learned(model: nn.Module, points: Tensor, layout: str) -> list[Tensor]:
    """Logits, and the gradients of points and parameters, of whole, masked or packed sets, of which one is empty."""
    mask = normal(*points.shape[:2], seed=1) > 0
    mask[1] = False
    points = points.clone().requires_grad_()
    model.zero_grad()
    if layout == "packed":
        logits = model.packed(points[mask], mask.nonzero()[:, 0], len(points))
    else:
        logits = model(points, mask if layout == "masked" else None)
    F.cross_entropy(logits, torch.arange(len(points))).backward()
    return [logits.detach(), points.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["whole", "masked", "packed"])
@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize("name", ["isab16-pma", "isab3-pma4", "sab-pma"])
def test_models_give_the_same_results_with_and_without_tiles(name, form, layout, dtype, small_tiles, monkeypatch):
    monkeypatch.setattr(packing, "RUN", 0)  # small sets would be padded, to save time
    model = create_model(name, classes=5, dim=32, form=form, dropout=0.0).to(dtype)
    points = normal(3, 83, 3).to(dtype)
    found, expected = learned(model, points, layout), learned(plainly(model), points, layout)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.slow
def test_second_derivatives(small_tiles):
    model = create_model("isab3-pma", classes=2, dim=8, heads=2, dropout=0.0).double()
    assert torch.autograd.gradgradcheck(model, normal(2, 40, 3).requires_grad_(), fast_mode=True)


def test_the_tiled_way_is_chosen(monkeypatch):
    """Otherwise the test above would compare the plain operations with themselves."""
    model, taken = create_model("isab3-pma", classes=5, dim=32), []

    def watched(call):
        return lambda *arguments: taken.append(call.__name__) or call(*arguments)

    monkeypatch.setattr(absorbed, "read_sets", watched(read_sets))
    monkeypatch.setattr(blocks, "write_rows", watched(write_rows))
    model(normal(3, 83, 3).float())
    assert taken == ["read_sets", "write_rows"] * 2 + ["read_sets"]
    plainly(model)(normal(3, 83, 3).float())
    assert len(taken) == 5


def test_transforms_and_autocast_get_the_plain_operations():
    model = create_model("isab4-pma", classes=5, dim=16, dropout=0.0).double()
    points = normal(2, 70, 3)

    def first(one: Tensor) -> Tensor:
        return model(one)[0, 0]

    gradient = torch.func.grad(first)(points)
    direction = normal(2, 70, 3, seed=1)
    _, change = torch.func.jvp(first, (points,), (direction,))
    torch.testing.assert_close(change, (gradient * direction).sum())
    each = torch.func.vmap(lambda one: model(one[None])[0])(points)
    torch.testing.assert_close(each, model(points))
    model.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert model(points.float()).dtype == torch.bfloat16


def test_hooks_are_called():
    model = create_model("isab4-pma", classes=5, dim=16)
    seen = []
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(lambda module, *_: seen.append(module))
    model(normal(2, 70, 3).float())
    writes = model.encoder[0].writes
    assert {writes.multihead.query, writes.feed_forward[0]} <= set(seen)


def test_dropout_draws_the_same_numbers_with_and_without_tiles(monkeypatch):
    X, weights = normal(7, 33, 5).requires_grad_(), normal(7, 33, 5, seed=1)
    monkeypatch.setattr(dropout, "TILE", 64)

    def dropped(layer: nn.Module) -> tuple[Tensor, Tensor]:
        torch.manual_seed(3)
        Y = layer(X)
        return Y, torch.autograd.grad((Y * weights).sum(), X)[0]

    with torch.random.fork_rng():
        for one, other in zip(dropped(Dropout(0.3)), dropped(plainly(Dropout(0.3))), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-12, atol=0)
