"""Row-wise layers and dropout."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pointset.nn.layers import Dropout


def dropped(p: float, X: Tensor, seed: int = 0) -> Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(X)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_zeroes_a_share_of_the_numbers_and_scales_the_others(p, dtype):
    X = torch.ones(31, 401, 7, dtype=dtype)
    Y = dropped(p, X)
    kept = Y != 0
    deviation = (p * (1 - p) / X.numel()) ** 0.5
    assert abs(kept.double().mean() - (1 - p)) < 5 * deviation
    assert abs(kept.double().mean(dim=(0, 2)) - (1 - p)).max() < 5 * (p * (1 - p) / (31 * 7)) ** 0.5
    torch.testing.assert_close(Y[kept], X[kept] / (1 - p), rtol=1e-2 if dtype == torch.bfloat16 else 1e-4, atol=0)


def test_dropout_is_determined_by_the_seed_of_torch_and_not_by_the_number_of_threads():
    X = torch.randn(50, 1003)
    threads = torch.get_num_threads()
    first, other = dropped(0.5, X), dropped(0.5, X, seed=1)
    torch.set_num_threads(3 - min(threads, 2))
    try:
        again = dropped(0.5, X)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_gradient_of_dropout_is_zero_where_it_drops_and_has_derivatives():
    X = torch.randn(5, 7, 3, dtype=torch.double, requires_grad=True)
    Y = dropped(0.5, X)
    (gradient,) = torch.autograd.grad(Y.sum(), X)
    assert torch.equal(gradient, torch.where(Y == 0, 0.0, 2.0))
    assert torch.autograd.gradgradcheck(lambda X: dropped(0.5, X) ** 2, X)


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_dropout_of_nothing_or_of_everything(p):
    X = torch.randn(3, 5)
    torch.testing.assert_close(dropped(p, X), (1 - p) * X)
    assert Dropout(0.5).eval()(X) is X


def test_compiled_exported_and_transformed_dropout_is_that_of_torch():
    X, layer = torch.randn(8, 30), Dropout(0.5)
    program = torch.export.export(layer, (X,))
    assert any("dropout" in str(node.target) for node in program.graph.nodes)
    assert not any("random_" in str(node.target) for node in program.graph.nodes)
    torch.manual_seed(0)
    mapped = torch.func.vmap(layer, randomness="different")(X)
    torch.manual_seed(0)
    assert torch.equal(mapped, torch.func.vmap(lambda x: F.dropout(x, 0.5), randomness="different")(X))
