"""torch-geometric's aggregations as poolings: values by hand, masks, empty sets, mixed precision, names."""

import math

import pytest
import torch
from torch import Tensor

from pointset.errors import PointsetError
from pointset.nn.pooling.aggregation import AggregationPool, aggregation_names, check_aggregation

NAN = float("nan")
X = torch.tensor([[[1.0, -2.0], [3.0, -4.0], [NAN, NAN]], [[5.0, 6.0], [-7.0, 8.0], [9.0, -10.0]]])
MASK = torch.tensor([[True, True, False], [True, True, True]])
NAMES = aggregation_names()
DIM = 8


def pool_of(name: str) -> AggregationPool:
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
        ("add", [[4, -6], [7, 4]]),
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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("training", [True, False])
def test_an_empty_set_pools_to_zero_and_no_gradient_is_lost_or_broken(name, training):
    (Z, mask), pool = sets(), pool_of(name).train(training)
    Z.requires_grad_()
    pooled = pool(Z, mask)
    pooled.square().sum().backward()
    assert (pooled[2] == 0).all()
    assert pooled.isfinite().all()
    assert Z.grad.isfinite().all()
    assert Z.grad[mask].any()
    assert (Z.grad[~mask] == 0).all()
    assert [key for key, value in pool.named_parameters() if value.grad is None or not value.grad.any()] == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sofmax", "no aggregation 'sofmax': did you mean softmax"),
        ("sett", "did you mean set"),
        ("lstm", "aggr.lstm does not pool sets: its result depends on the order of its rows.*softmax"),
        ("MLPAggregation", "depends on the order of its rows"),
        ("degree_scaler", "histogram"),
        ("equilibrium", "depends on the other sets"),
        ("multi", "list of others"),
        ("aggregation", "base class"),
    ],
)
def test_aggregations_that_do_not_pool_sets_are_an_error_with_the_reason(name, words):
    with pytest.raises(PointsetError, match=words):
        check_aggregation(name)
    with pytest.raises(PointsetError, match=words):
        AggregationPool(name, 4)
