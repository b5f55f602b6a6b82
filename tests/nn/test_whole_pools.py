"""Properties of all poolings of whole sets: gradients, padded and packed sets, mixed precision."""

import inspect

import pytest
import torch
from torch import Tensor, nn

from pointset.nn import registry
from pointset.nn.pooling.whole import WholePool
from pointset.zoo.models import create_model

DIM = 4
LISTED = [
    part.listed for part in registry.parts("pooling") if inspect.isclass(part.make) and issubclass(part.make, WholePool)
]


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


@pytest.mark.parametrize("listed", LISTED)
def test_mixed_precision_pools_in_float32(listed):
    pool, X = pool_of(listed, torch.float32), rows_of(2, 700).float().bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = pool(X)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, pool(X.float()))
    assert pool.bfloat16()(X).dtype == torch.bfloat16
