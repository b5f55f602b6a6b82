"""Poolings of whole sets, torch-geometric's among them: values by hand, masks, gradients, mixed precision, names."""

import inspect
import math

import pytest
import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn import registry
from pointset.nn.pooling.aggregation import AGGREGATIONS, AggregationPool
from pointset.nn.pooling.whole import WholePool
from pointset.zoo.models import create_model

NAN = float("nan")
X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [NAN, NAN]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])
DIM = 8
WHOLE = [one for one in registry.entries("pooling") if inspect.isclass(one.make) and issubclass(one.make, WholePool)]
LISTED = [part.listed for part in WHOLE]


def aggregation_of(name: str) -> AggregationPool:
    torch.manual_seed(0)
    return AggregationPool(name, DIM, heads=2).double()


def sets() -> tuple[Tensor, Tensor]:
    """Five sets of up to 7 rows, NaN in the padding: full, scattered, empty, one row, the last rows."""
    Z = torch.randn(5, 7, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows = ["1111111", "0101100", "0000000", "0010000", "0000111"]
    mask = torch.tensor([[digit == "1" for digit in row] for row in rows])
    return Z.masked_fill(~mask.unsqueeze(-1), NAN), mask


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("max", [[3, -2], [9, 8]]),
        ("min", [[1, -4], [-7, -10]]),
        ("mean", [[2, -3], [7 / 3, 4 / 3]]),
        ("sum", [[4, -6], [7, 4]]),
        ("mul", [[3, 8], [-315, -480]]),
        ("var", [[1, 1], [416 / 9, 584 / 9]]),
        ("std", [[1, 1], [math.sqrt(416) / 3, math.sqrt(584) / 3]]),
        ("variancepreserving", [[4 / math.sqrt(2), -6 / math.sqrt(2)], [7 / math.sqrt(3), 4 / math.sqrt(3)]]),
        ("median", [[1, -4], [5, 6]]),
        ("quantile", [[1.5, -3.5, 2, -3, 2.5, -2.5], [-1, -2, 5, 6, 7, 7]]),
        ("sort", [[1, -2, 3, -4] + [0] * 28, [-7, 8, 5, 6, 9, -10] + [0] * 26]),
        # Negative numbers are clamped to 1e-4 and large ones to 100: the powers, too.
        ("powermean", [[2, 1e-4], [(14 + 1e-4) / 3, (14 + 1e-4) / 3]]),
    ],
)
def test_values_by_hand(name, expected):
    torch.testing.assert_close(AggregationPool(name, 2)(X, MASK), torch.tensor(expected).float().unsqueeze(1))


@pytest.mark.parametrize("name", AGGREGATIONS)
@pytest.mark.parametrize("training", [True, False])
def test_an_empty_set_pools_to_zero_and_no_gradient_is_lost_or_broken(name, training):
    (Z, mask), pool = sets(), aggregation_of(name).train(training)
    Z.requires_grad_()
    pooled = pool(Z, mask)
    pooled.square().sum().backward()
    assert (pooled[2] == 0).all()
    assert pooled.isfinite().all()
    assert Z.grad.isfinite().all()
    assert Z.grad[mask].any()
    assert (Z.grad[~mask] == 0).all()
    assert [key for key, value in pool.named_parameters() if value.grad is None or not value.grad.any()] == []


def test_aggregations_that_do_not_pool_sets_are_refused():
    with pytest.raises(
        PointsetError, match=r"'lstm' is not an aggregation of sets .* choose from attentional, .*softmax"
    ):
        create_model("rff-aggr.lstm")


def pool_of(listed: str, dtype: torch.dtype = torch.float64) -> nn.Module:
    """A pooling with parameters that differ from their initial values."""
    torch.manual_seed(0)
    pool = create_model(f"rff-{listed}", dim=DIM).pool
    with torch.no_grad():
        for parameter in pool.parameters():
            parameter += 0.2 * torch.rand_like(parameter)
    return pool.to(dtype)


def rows_of(*shape: int) -> Tensor:
    return torch.randn(*shape, DIM, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def padded(sizes: tuple[int, ...], longest: int) -> tuple[Tensor, Tensor]:
    """Rows with NaN in the padding."""
    mask = torch.arange(longest) < torch.tensor(sizes)[:, None]
    return rows_of(len(sizes), longest).masked_fill(~mask[..., None], torch.nan), mask


@pytest.mark.parametrize("listed", LISTED)
@pytest.mark.parametrize("sizes", [None, (5, 1, 3)])
def test_gradients_are_exact(listed, sizes):
    pool = pool_of(listed)
    X = rows_of(2, 5) if sizes is None else padded(sizes, 5)[0].nan_to_num()
    mask = None if sizes is None else padded(sizes, 5)[1]
    names, parameters = zip(*[*pool.named_parameters(), ("X", X.requires_grad_())], strict=True)

    def call(*values: Tensor) -> Tensor:
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(pool, {name: given[name] for name in names[:-1]}, (given["X"], mask))

    assert torch.autograd.gradcheck(call, parameters, fast_mode=True)


@pytest.mark.parametrize("listed", sorted({*LISTED, *(f"aggr.{name}" for name in AGGREGATIONS)}))
def test_mixed_precision_pools_in_float32(listed):
    """1,000 rows: a count in bfloat16 would stop at 256."""
    pool, X = pool_of(listed, torch.float32), rows_of(2, 1000).float().bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pool(X)
    mixed.sum().backward()
    assert mixed.dtype == torch.float32
    assert X.grad.isfinite().all()
    torch.testing.assert_close(mixed, pool(X.float()))
