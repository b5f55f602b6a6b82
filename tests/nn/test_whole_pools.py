"""Properties of all poolings of whole sets: gradients, padded and packed sets, mixed precision."""

import inspect

import pytest
import torch
from torch import Tensor, nn

from pointset.nn import registry
from pointset.nn.pooling.aggregation import aggregation_names
from pointset.nn.pooling.whole import WholePool
from pointset.zoo.models import create_model

DIM = 4
WHOLE = [one for one in registry.parts("pooling") if inspect.isclass(one.make) and issubclass(one.make, WholePool)]
LISTED = [part.listed for part in WHOLE]


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


@pytest.mark.parametrize("listed", sorted({*LISTED, *(f"aggr.{name}" for name in aggregation_names())}))
def test_mixed_precision_pools_in_float32(listed):
    """1,000 rows: a count in bfloat16 would stop at 256."""
    pool, X = pool_of(listed, torch.float32), rows_of(2, 1000).float().bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pool(X)
    mixed.sum().backward()
    assert mixed.dtype == torch.float32
    assert X.grad.isfinite().all()
    torch.testing.assert_close(mixed, pool(X.float()))
