"""The portable form of a model: the same numbers, whatever the sizes, the masks and the order of products."""

import pytest
import torch
from torch import nn

import pointset
from pointset.export.portable import FixedOrder, RowwiseBatchNorm, portable
from pointset.nn.attention import Multihead
from pointset.nn.norms import BatchNorm
from pointset.nn.pooling.aggregation import AggregationPool

CLASSES = 5


def moved(model: nn.Module) -> nn.Module:
    """A model in float64 whose batch statistics and biases are not those of the beginning."""
    generator = torch.Generator().manual_seed(3)
    model = model.double().eval()
    for name, tensor in model.state_dict().items():
        if name.endswith(("running_mean", "running_var", "bias")):
            tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype))
    return model


def batch(sets: int, points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, and a mask that hides some, of one set all."""
    generator = torch.Generator().manual_seed(points)
    X = torch.randn(sets, points, 3, generator=generator, dtype=torch.float64)
    mask = torch.rand(sets, points, generator=generator) < 0.7
    mask[0], mask[-1] = True, False
    X[1:][~mask[1:]] = torch.nan
    return X, mask


MODELS = [
    *((name, {}) for name in pointset.list_models()),
    ("isab4-pma3", {"form": "paper"}),
    ("isab4-pma3", {"form": "paper", "norm": "set", "prenorm": True, "seeds": "pooled", "scale": "head"}),
    ("isab4-pma3", {"weights": "sparsemax", "score": "bilinear", "trained_temperature": True}),
    ("isab4-pma3", {"weights": ("csoftmax", "entmax15", "csparsemax", "softmax"), "score": "additive"}),
    ("isab4-pma3", {"weights": "csparsemax", "coverage": "seeds", "norm": "group", "seeds": "statistics"}),
    ("isab70-max", {"norm": "batch", "temperature": 0.5}),
    ("rff-max", {"norm": "batch"}),
    ("rff-aggr.softmax", {}),
    ("rff-aggr.set2set", {}),
]


@pytest.mark.parametrize(("name", "options"), MODELS, ids=lambda value: str(value))
def test_the_numbers_are_those_of_the_model(name, options):
    model = moved(pointset.create_model(name, classes=CLASSES, dim=16, **options))
    found = portable(model)
    for sets, points in ((2, 1), (3, 30), (2, 71)):
        X, mask = batch(sets, points)
        whole = X.nan_to_num()
        with torch.no_grad():
            torch.testing.assert_close(found(whole), model(whole), rtol=1e-11, atol=1e-11)
            torch.testing.assert_close(found(X, mask), model(X, mask), rtol=1e-11, atol=1e-11)


def test_the_model_itself_stays_as_it_was():
    model = pointset.create_model("isab3-aggr.softmax", classes=CLASSES, dim=16, norm="batch").train()
    kinds = [type(module) for module in model.modules()]
    found = portable(model)
    assert model.training
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert [type(module) for module in model.modules()] == kinds
    assert not {Multihead, BatchNorm, AggregationPool} & {type(module) for module in found.modules()}
    assert any(isinstance(module, RowwiseBatchNorm) for module in found.modules())
    assert not found.training


@pytest.mark.parametrize("hidden", [False, True])
def test_both_orders_of_products_agree(hidden):
    """Absorbed, rows are never projected; the choice between the two is made by what a size is not known to be."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = FixedOrder(6, 10, 12, heads=3).double()
        queries, Y = torch.randn(1, 5, 12).double(), torch.randn(2, 7, 10).double()
    mask = torch.tensor([[True] * 7, [True] * 3 + [False] * 4]) if hidden else None
    absorbed, plain = layer._absorbed(queries, Y, mask), layer._plain(queries, Y, mask)
    assert absorbed.shape == (2, 5, 12)
    torch.testing.assert_close(absorbed, plain, rtol=1e-12, atol=1e-12)
