"""Dual-MLP attention against its formulas, written out set by set and row by row in float64."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.evaluation.costs import multiply_adds
from pointset.nn.encoders.dumlp import InteractionLayer
from pointset.nn.pooling.dumlp import DualMLPPool

LENGTHS = (5, 9, 0, 1, 9)
NORMS = ("batch", "none", "layer")


def sets(width: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(4)
    return [torch.randn(length, width, generator=generator, dtype=torch.float64) for length in LENGTHS]


def padded(rows: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Batch and mask, with NaN in the padding."""
    X = torch.full((len(rows), max(LENGTHS), rows[0].shape[1]), torch.nan, dtype=torch.float64)
    mask = torch.zeros(X.shape[:2], dtype=torch.bool)
    for number, one in enumerate(rows):
        X[number, : len(one)], mask[number, : len(one)] = one, True
    return X, mask


def moved(module: nn.Module, train: bool) -> nn.Module:
    """The module in float64, with biases and statistics that differ from their initial values."""
    generator = torch.Generator().manual_seed(5)
    for tensor in module.state_dict().values():
        if tensor.is_floating_point():
            tensor += 0.3 * torch.rand(tensor.shape, generator=generator)
    return module.double().train(train)


def normed(rows: list[Tensor], norm: nn.Module) -> list[Tensor]:
    """Rows of all sets through batch norm or layer norm, by the formula."""
    if not list(norm.parameters()):
        return rows
    together = torch.cat(rows)
    if not hasattr(norm, "running_mean"):
        mean, variance = together.mean(1, keepdim=True), together.var(1, correction=0, keepdim=True)
    elif norm.training:
        mean, variance = together.mean(0), together.var(0, correction=0)
    else:
        mean, variance = norm.running_mean, norm.running_var
    together = (together - mean) / (variance + 1e-5).sqrt() * norm.weight + norm.bias
    return list(together.split([len(one) for one in rows]))


def linear(rows: list[Tensor], layer: nn.Linear) -> list[Tensor]:
    bias = 0.0 if layer.bias is None else layer.bias
    return [one @ layer.weight.T + bias for one in rows]


def network(rows: list[Tensor], layers: nn.Module) -> list[Tensor]:
    for number, (one, norm) in enumerate(zip(layers.linear, layers.norm, strict=True)):
        rows = [row.clamp(min=0) for row in rows] if number else rows
        rows = normed(linear(rows, one), norm)
    return rows


def read(rows: list[Tensor], module: nn.Module) -> list[Tensor]:
    """A^T V of each set."""
    pairs = zip(network(rows, module.logits), network(rows, module.values), strict=True)
    found = []
    for logits, values in pairs:
        weights = (logits - logits.max(dim=0).values).exp() if len(logits) else logits
        weights = weights / weights.sum(dim=0)
        found.append(sum((torch.outer(a, v) for a, v in zip(weights, values, strict=True)), torch.zeros(module.k, 4)))
    return found


def interacted(rows: list[Tensor], module: InteractionLayer) -> list[Tensor]:
    shared = [S.double().flatten() @ module.summary.weight.T for S in read(rows, module.reads)]
    changed = [own + one for own, one in zip(linear(rows, module.rows), shared, strict=True)]
    pairs = zip(rows, normed(changed, module.norm), strict=True)
    return [row + one.clamp(min=0) for row, one in pairs]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize(("width", "hidden"), [(3, [4, 16]), (15, [4, 16]), (16, [16]), (20, [16])])
def test_the_pooling_is_its_formula(width, hidden, train, norm):
    pool, rows = moved(DualMLPPool(6, width, 16, norm), train), sets(width)
    assert [one.out_features for one in pool.logits.linear] == [*hidden, 6]
    assert [one.out_features for one in pool.values.linear] == [*hidden, 4]
    expected = torch.stack([one.double() for one in read(rows, pool)])
    found = pool(*padded(rows))
    assert found.shape == (5, 6, 4)
    assert (found[2] == 0).all()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("train", [True, False])
def test_the_encoder_is_its_formula(train, norm):
    """A stem ReLU(N(X W)), then two interaction layers."""
    model, rows = moved(pointset.create_model("dumlp3-max", classes=4, dim=16, norm=norm), train), sets(3)
    stem, *layers = model.encoder
    expected = [one.clamp(min=0) for one in network(rows, stem)]
    for layer in layers:
        expected = interacted(expected, layer)
    X, mask = padded(rows)
    torch.testing.assert_close(model.encode(X, mask)[mask], torch.cat(expected))
    with torch.no_grad():  # works in place
        torch.testing.assert_close(model.encode(X, mask)[mask], torch.cat(expected))


def test_the_published_network_has_its_number_of_parameters_and_operations():
    """3 -> 32 -> 128 -> 32 twice, no bias before a batch norm, 1024 -> 256 -> 40."""
    model = pointset.create_model("none-dumlp32", classes=40, dim=128, head_dim=256, head_norm="batch")
    assert sum(one.numel() for one in model.parameters()) == 290_280
    assert multiply_adds(model, 100) == 2_032_384


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", ["dumlp16-max", "rff-dumlp32", "rff-aggr.softmax"])
def test_a_model_converted_to_another_type_returns_logits_of_that_type(name, dtype):
    """`model.half()`: sums are in float32, but the layers after them have weights of the model's type."""
    points = torch.randn(2, 9, 3, generator=torch.Generator().manual_seed(0))
    expected = pointset.create_model(name, classes=4, dim=16).eval()(points)
    model = pointset.create_model(name, classes=4, dim=16).eval().to(dtype)
    mask = torch.ones(2, 9, dtype=torch.bool)
    for found in (model(points.to(dtype)), model(points.to(dtype), mask)):
        assert found.dtype == dtype
        torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)
