"""Tiled attention against the plain operations: same values and gradients for any sizes."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from toy import normal

from pointset import create_model
from pointset.nn.fast import absorbed, kernels, tiles
from pointset.nn.fast import writing as fast_writing
from pointset.nn.fast.absorbed import read_plainly, read_sets
from pointset.nn.fast.writing import Keys, Projections, write_plainly, write_rows

SETS, ROWS = 7, 23


@pytest.fixture
def small_tiles(monkeypatch):
    """Sets the size of tiles to a few rows, so that small sets have many tiles."""
    monkeypatch.setattr(tiles, "tile_size", lambda: 64)


def plain_operations(monkeypatch):
    for module in (kernels, fast_writing):
        monkeypatch.setattr(module, "may_tile", lambda *_: False)


def gradients(function, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    inputs = tuple(part.detach().clone().requires_grad_() for part in inputs)
    out = function(*inputs)
    weights = normal(*out.shape, seed=9)
    return out.detach(), *torch.autograd.grad((out * weights).sum(), inputs)


@pytest.mark.parametrize("rows", [0, 1, 3, 23])
@pytest.mark.parametrize("masked", [False, True])
def test_reading(small_tiles, masked, rows):
    X, queries = normal(SETS, rows, 6), normal(11, 6, seed=1)
    keep = normal(SETS, rows, seed=2) > 0 if masked else None
    if keep is not None:
        keep[1] = False
    expected = gradients(lambda *inputs: read_plainly(*inputs, keep), (X, queries))
    found = gradients(lambda *inputs: read_sets(*inputs, keep), (X, queries))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    assert keep is None or found[0][1].eq(0).all()
    with torch.no_grad():
        torch.testing.assert_close(read_sets(X, queries, keep), expected[0], rtol=1e-12, atol=1e-12)


def written_inputs(sets: int = SETS, rows: int = ROWS) -> tuple[Tensor, ...]:
    """X, K, V, the two maps and their biases: three keys, width 8 from 5."""
    keys = (sets, 3, 8)
    sizes = ((sets, rows, 5), keys, keys, (8, 5), (8,), (8, 8), (8,))
    return tuple(normal(*size, seed=seed) for seed, size in enumerate(sizes))


def written(write):
    return lambda X, K, V, *maps: write(X, Keys(K, V), Projections(*maps), 2)


@pytest.mark.parametrize("rows", [0, 1, 3, 23])
def test_writing(small_tiles, rows):
    expected, found = (gradients(written(write), written_inputs(rows=rows)) for write in (write_plainly, write_rows))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        torch.testing.assert_close(written(write_rows)(*written_inputs(rows=rows)), expected[0], rtol=1e-12, atol=1e-12)


def learned(model: nn.Module, points: Tensor, masked: bool) -> list[Tensor]:
    """Logits, and the gradients of points and parameters; of three masked sets one is empty."""
    mask = normal(*points.shape[:2], seed=1) > 0
    mask[1] = False
    points = points.clone().requires_grad_()
    model.zero_grad()
    logits = model(points, mask if masked else None)
    F.cross_entropy(logits, torch.arange(len(points))).backward()
    return [logits.detach(), points.grad, *(p.grad for p in model.parameters() if p.grad is not None)]


@pytest.mark.slow
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [("isab16-pma", torch.float64, 1e-12), ("isab3-pma4", torch.float32, 2e-5), ("sab-pma", torch.float64, 1e-12)],
)
@pytest.mark.usefixtures("small_tiles")
def test_models_compute_the_same_with_and_without_tiles(name, dtype, tolerance, form, masked, monkeypatch):
    model = create_model(name, classes=5, dim=32, form=form, dropout=0.0).to(dtype)
    points = normal(3, 83, 3).to(dtype)
    found = learned(model, points, masked)
    plain_operations(monkeypatch)
    expected = learned(model, points, masked)
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
def test_second_derivatives(small_tiles):
    inputs = tuple(part.requires_grad_() for part in written_inputs(2, 3))
    assert torch.autograd.gradgradcheck(written(write_rows), inputs, fast_mode=True)
    inputs = (normal(2, 3, 6).requires_grad_(), normal(4, 6, seed=1).requires_grad_())
    assert torch.autograd.gradgradcheck(read_sets, inputs)


def test_the_tiled_way_is_chosen(monkeypatch):
    """Otherwise the test above would compare the plain operations with themselves."""
    model, taken = create_model("isab3-pma", classes=5, dim=32), []

    def watched(call):
        return lambda *arguments: taken.append(call.__name__) or call(*arguments)

    monkeypatch.setattr(absorbed, "read_sets", watched(read_sets))
    monkeypatch.setattr(fast_writing, "write_rows", watched(write_rows))
    model(normal(3, 83, 3).float())
    assert taken == ["read_sets", "write_rows"] * 2 + ["read_sets"]
    plain_operations(monkeypatch)
    model(normal(3, 83, 3).float())
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
