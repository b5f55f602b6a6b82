"""Functions from scores to weights: by hand, against bisection, and as solutions of their optimisation problems."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from simplex_cases import case, reference, weights_of
from torch import Tensor

from pointset.nn.simplex import WEIGHTS

NAMES = sorted(WEIGHTS)
SIZES = st.integers(1, 90)

cases = st.builds(
    case,
    seed=st.integers(0, 2**31),
    keys=SIZES,
    scale=st.sampled_from([0.0, 0.01, 0.3, 1.0, 5.0, 1e3]),
    masked=st.booleans(),
    room=st.sampled_from([1.0, 1.05, 1.5, 4.0, 50.0]),
)


def tensor(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


# By hand. sparsemax (1, 0.5, -1): both of two, tau = 0.25. entmax-1.5 (2, 1, -9): halves 1 and 0.5 have mean 0.75 and
# squares about it 0.125, tau = 0.75 - sqrt(0.875 / 2). csparsemax: 0.4 is held, 0.6 is left for 0.5 and 0.3. csoftmax
# of logarithms of 6, 2, 1: 0.5 is held, and 2 : 1 share the other half.
BY_HAND = {
    "softmax": (tensor(0, math.log(3)), None, tensor(0.25, 0.75)),
    "sparsemax": (tensor(1, 0.5, -1), None, tensor(0.75, 0.25, 0)),
    "sparsemax, one takes all": (tensor(2, 0.9, 1), None, tensor(1, 0, 0)),
    "entmax15": (tensor(2, 1, -9), None, tensor((0.25 + 0.4375**0.5) ** 2, (-0.25 + 0.4375**0.5) ** 2, 0)),
    "csparsemax": (tensor(3, 0.5, 0.3), tensor(0.4, 1, 1), tensor(0.4, 0.4, 0.2)),
    "csparsemax, a bound of 0": (tensor(3, 0.5, 0.3), tensor(0, 1, 1), tensor(0, 0.6, 0.4)),
    "csparsemax, a plateau": (tensor(2, 2, 0, 0), tensor(0.5, 0.5, 0.5, 0.5), tensor(0.5, 0.5, 0, 0)),
    "csoftmax": (tensor(6, 2, 1).log(), tensor(0.5, 1, 1), tensor(0.5, 1 / 3, 1 / 6)),
    "csoftmax, two rounds": (tensor(6, 3, 1).log(), tensor(0.5, 0.35, 1), tensor(0.5, 0.35, 0.15)),
}


@pytest.mark.parametrize("title", BY_HAND)
def test_values_by_hand(title):
    z, u, expected = BY_HAND[title]
    found = weights_of(title.split(",")[0], u)(z)
    torch.testing.assert_close(found, expected)
    assert torch.equal(found == 0, expected == 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(drawn=cases)
def test_weights_equal_those_found_by_bisection(name, drawn):
    z, u, mask = drawn
    found = weights_of(name, u)(z, mask)
    torch.testing.assert_close(found, reference(name, z, u, mask), atol=1e-9, rtol=1e-7)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keys", [5, 70])
def test_padded_keys_get_weight_zero_whatever_their_scores(name, keys):
    z, u, mask = case(8, keys)
    real = mask.expand(z.shape)
    spoilt = z.masked_fill(~mask, math.nan)
    bounds = u.masked_fill(~mask, math.nan)
    p = weights_of(name, bounds)(spoilt, mask)
    assert (p[~real] == 0).all()
    torch.testing.assert_close(p, weights_of(name, u)(z, mask))
    alone = torch.stack([weights_of(name, u[b][..., m])(z[b][..., m]).sum() for b, m in enumerate(mask[:, 0, 0])])
    torch.testing.assert_close(p.sum(dim=(1, 2, 3)), alone)


@pytest.mark.parametrize("name", NAMES)
def test_empty_tensors_are_allowed(name):
    assert weights_of(name, 1.0)(torch.zeros(2, 3, 0)).shape == (2, 3, 0)
    assert weights_of(name, 1.0)(torch.zeros(2, 3, 0), torch.ones(2, 1, 0, dtype=torch.bool)).shape == (2, 3, 0)
    assert weights_of(name, 1.0)(torch.zeros(0, 3, 5)).shape == (0, 3, 5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keys", [16, 1000])
@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float32, 2e-6), (torch.bfloat16, 4e-3), (torch.float16, 5e-4)], ids=str
)
def test_data_types_are_kept_with_errors_of_rounding_only(name, keys, dtype, atol):
    for scale in (0.01, 3.0):
        z, u, mask = case(10, keys, scale=scale, room=3, dtype=dtype)
        found = weights_of(name, u)(z, mask)
        assert found.dtype == dtype
        torch.testing.assert_close(found.double(), reference(name, z, u, mask), atol=atol, rtol=0)
