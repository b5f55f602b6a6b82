"""Upper bounds: large scores, bounds that sum to 1, and bounds that no weights satisfy."""

import math

import pytest
import torch
from simplex_cases import case, reference, weights_of

from pointset.errors import PointsetError
from pointset.nn.simplex import BOUNDED, BoundsError
from pointset.nn.simplex.bounded import constrained_sparsemax

# By hand. From the largest score on, keys take all they may, and equal scores share what is left. In these sizes a
# score less a bound is the score itself.
HUGE = {
    "two far above two": ([1e30, 1e30, 1, 1], 0.375, [0.375, 0.375, 0.125, 0.125]),
    "all equal": ([-3e38] * 4, 0.375, [0.25] * 4),
    "from end to end": ([3e38, -3e38, 1, 2], 0.375, [0.375, 0, 0.25, 0.375]),
    "the largest shared": ([1, 3e38, 0, 3e38], 0.75, [0, 0.5, 0, 0.5]),
    "down to the last": ([1e30, 1e20, 1e10, -1e30], 0.3125, [0.3125, 0.3125, 0.3125, 0.0625]),
    "between far keys, a projection": ([1e30, 0.5, 0.25, -1e30], 0.625, [0.625, 0.3125, 0.0625, 0]),
    "a bound of 0 on top": ([3e38, 1e30, 1e30, 1], [0, 0.5, 1, 1], [0, 0.5, 0.5, 0]),
    "no bounds": ([3e38, -3e38, 1, 2], math.inf, [1, 0, 0, 0]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("masked", [False, True])
def test_scores_however_large_keep_rows_on_the_simplex(dtype, masked):
    """Exact results, because every number has few bits; with a mask, padded keys come first."""
    scores, bounds, expected = zip(*HUGE.values(), strict=True)
    z, p = torch.tensor(scores, dtype=dtype), torch.tensor(expected, dtype=dtype)
    u = torch.stack([torch.tensor(upper, dtype=dtype).expand(4) for upper in bounds])
    mask = torch.ones(z.shape, dtype=torch.bool)
    if masked:
        z, u, p = (torch.nn.functional.pad(part, (2, 0), value=fill) for part, fill in ((z, 3e38), (u, 1.0), (p, 0.0)))
        mask = torch.nn.functional.pad(mask, (2, 0))
    found = constrained_sparsemax(z, u, mask)
    assert dict(zip(HUGE, found.tolist(), strict=True)) == dict(zip(HUGE, p.tolist(), strict=True))


@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize("keys", [1, 7, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_bounds_that_sum_to_1_are_the_weights(name, keys, dtype):
    """The sums of the bounds differ from 1 by rounding, in both directions."""
    z, u, mask = case(2, keys, room=1.0, dtype=dtype)
    for bounds in (u, u * (1 - 4 * torch.finfo(dtype).eps), u * (1 + 4 * torch.finfo(dtype).eps)):
        assert torch.equal(weights_of(name, bounds)(z, mask), bounds if mask is None else bounds * mask)


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_ratios_of_tiny_exponentials_are_accurate(name):
    """With another score of 0, exponentials of scores around -300 underflow in float32, but their ratios matter."""
    z, u = torch.tensor([0, -300.0, -300.0, -301.0]), torch.tensor([0.25, 1, 0.3, 1])
    expected = reference(name, z, u, None).float()
    assert expected[0] == 0.25
    torch.testing.assert_close(weights_of(name, u)(z), expected)


@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize("upper_shape", [(), (9,), (4, 1), (3, 1, 1), (2, 1, 1, 9), (2, 3, 4, 9)], ids=str)
def test_bounds_broadcast(name, upper_shape):
    z, _, mask = case(3, 9)
    upper = 0.5 + 0.3 * torch.rand(upper_shape, generator=torch.Generator().manual_seed(1), dtype=z.dtype)
    found = weights_of(name, upper.requires_grad_())(z, mask)
    torch.testing.assert_close(found, weights_of(name, upper.expand_as(z))(z, mask))
    found.square().sum().backward()
    assert upper.grad.shape == upper_shape


@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize(
    ("upper", "words"),
    [
        ([[0.5, 0.3, 0.1], [0.5, 0.3, 0.2]], "each row's real keys .* sum of 0.9: raise"),
        ([0.9, 0.9, -0.25], "got -0.25: clamp"),
        ([0.9, 0.9, math.nan], "got nan"),
        (0.25, "sum of 0.75"),
    ],
)
def test_bounds_that_no_weights_satisfy_are_an_error(name, upper, words):
    with pytest.raises(BoundsError, match=words) as refusal:
        weights_of(name, torch.tensor(upper))(torch.zeros(2, 3))
    assert isinstance(refusal.value, PointsetError)


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_the_bounds_of_a_row_without_real_keys_may_sum_to_less_than_1(name):
    mask = torch.tensor([[True, True, True], [False, False, False]])
    upper = torch.tensor([[0.5, 0.3, 0.3], [0, 0, 0]])
    assert torch.equal(weights_of(name, upper)(torch.zeros(2, 3), mask)[1], torch.zeros(3))
