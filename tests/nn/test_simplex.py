"""Functions from scores to weights: by hand, against bisection, with bounds, and their gradients."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from toy import normal

from pointset.inputs import InputError
from pointset.nn.simplex import BOUNDED, WEIGHTS
from pointset.nn.simplex.bounded import constrained_sparsemax

Numbers = NDArray[np.float64]
NAMES, BOUND = sorted(WEIGHTS), sorted(BOUNDED)
SHAPE = (2, 3, 4)
"""Sets, heads and queries, before the keys."""


def case(seed, keys, scale=1.0, masked=True, room=1.5, dtype=torch.float64, ties=True) -> tuple:
    """Scores [2, 3, 4, keys], bounds likewise that sum to `room` over the real keys, and a mask [2, 1, 1, keys].

    A sixth of the bounds is 0, and a sixth of the scores are equal to others, unless there are no `ties`.
    """
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(*SHAPE, keys, generator=generator, dtype=torch.float64) * scale
    if ties:
        z[..., ::6] = z[..., :1].clone()
    mask = None
    if masked:
        mask = torch.rand(SHAPE[0], 1, 1, keys, generator=generator) < 0.7
        mask[..., 0] = True
    u = torch.rand(*SHAPE, keys, generator=generator, dtype=torch.float64)
    if ties:
        u[..., 1::6] = 0
    real = u if mask is None else u * mask
    u *= room / real.sum(dim=-1, keepdim=True)
    return z.to(dtype), u.to(dtype), mask


def weights_of(name: str, upper: Tensor | float) -> Callable[..., Tensor]:
    """The named function as f(z, mask=mask), with `upper` bound if it has bounds."""
    function = WEIGHTS[name]
    return partial(lambda z, mask=None: function(z, upper, mask)) if name in BOUNDED else function


def reference(name: str, z: Tensor, u: Tensor, mask: Tensor | None) -> Tensor:
    """The weights by bisection of the threshold of each row; each row must have a real key."""
    scores, bounds = z.double().numpy(), u.double().numpy()
    top, bottom = scores.max(axis=-1, keepdims=True), scores.min(axis=-1, keepdims=True)
    if mask is not None:
        scores = np.where(mask.numpy(), scores, -np.inf)
    shares: dict[str, Callable[[Numbers], Numbers]] = {
        "softmax": lambda tau: np.exp(np.minimum(scores - tau, 1)),
        "sparsemax": lambda tau: np.maximum(scores - tau, 0),
        "entmax15": lambda tau: np.maximum(scores / 2 - tau, 0) ** 2,
        "csoftmax": lambda tau: np.minimum(np.exp(np.minimum(scores - tau, 1)), bounds),
        "csparsemax": lambda tau: np.clip(scores - tau, 0, bounds),
    }
    share, lowest, highest = shares[name], np.minimum(bottom, bottom / 2) - 100, np.maximum(top, top / 2) + 100
    for _ in range(100):
        middle = (lowest + highest) / 2
        enough = share(middle).sum(axis=-1, keepdims=True) >= 1
        lowest, highest = np.where(enough, middle, lowest), np.where(enough, highest, middle)
    return torch.from_numpy(share((lowest + highest) / 2))


cases = st.builds(
    case,
    seed=st.integers(0, 2**31),
    keys=st.integers(1, 90),
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
def test_padded_keys_get_weight_and_gradient_zero_whatever_their_scores(name, keys):
    z, u, mask = case(8, keys)
    mask[0] = False
    spoilt = [part.masked_fill(~mask, math.nan).requires_grad_() for part in (z, u)]
    p, padding = weights_of(name, spoilt[1])(spoilt[0], mask), ~mask.expand(z.shape)
    assert (p[padding] == 0).all()
    torch.testing.assert_close(p[1], reference(name, z, u, mask)[1])
    p.square().sum().backward()
    for leaf in spoilt[: 1 + (name in BOUNDED)]:
        assert (leaf.grad[padding] == 0).all()
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[1] != 0).any()


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


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("keys", [1, 7, 300])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_bounds_that_sum_to_1_are_the_weights(name, keys, dtype):
    """The sums of the bounds differ from 1 by rounding, in both directions."""
    z, u, mask = case(2, keys, room=1.0, dtype=dtype)
    for bounds in (u, u * (1 - 4 * torch.finfo(dtype).eps), u * (1 + 4 * torch.finfo(dtype).eps)):
        assert torch.equal(weights_of(name, bounds)(z, mask), bounds if mask is None else bounds * mask)


@pytest.mark.parametrize("name", BOUND)
def test_ratios_of_tiny_exponentials_are_accurate(name):
    """With another score of 0, exponentials of scores around -300 underflow in float32, but their ratios matter."""
    z, u = torch.tensor([0, -300.0, -300.0, -301.0]), torch.tensor([0.25, 1, 0.3, 1])
    expected = reference(name, z, u, None).float()
    assert expected[0] == 0.25
    torch.testing.assert_close(weights_of(name, u)(z), expected)


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("upper_shape", [(), (9,), (4, 1), (3, 1, 1), (2, 1, 1, 9), (2, 3, 4, 9)], ids=str)
def test_bounds_broadcast(name, upper_shape):
    z, _, mask = case(3, 9)
    upper = 0.5 + 0.3 * torch.rand(upper_shape, generator=torch.Generator().manual_seed(1), dtype=z.dtype)
    found = weights_of(name, upper.requires_grad_())(z, mask)
    torch.testing.assert_close(found, weights_of(name, upper.expand_as(z))(z, mask))
    found.square().sum().backward()
    assert upper.grad.shape == upper_shape


@pytest.mark.parametrize("name", BOUND)
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
    with pytest.raises(InputError, match=words):
        weights_of(name, torch.tensor(upper))(torch.zeros(2, 3))


@pytest.mark.parametrize("name", BOUND)
def test_the_bounds_of_a_row_without_real_keys_may_sum_to_less_than_1(name):
    mask = torch.tensor([[True, True, True], [False, False, False]])
    upper = torch.tensor([[0.5, 0.3, 0.3], [0, 0, 0]])
    assert torch.equal(weights_of(name, upper)(torch.zeros(2, 3), mask)[1], torch.zeros(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seed", "keys", "masked"), [(0, 1, False), (1, 5, False), (2, 6, True), (3, 70, True)])
def test_first_and_second_derivatives_are_those_of_finite_differences(name, seed, keys, masked):
    """Without equal scores: weights are not differentiable at ties."""
    z, u, mask = case(seed, keys, masked=masked, room=1.7, ties=False)
    z, u, mask = z[:1, :2, :1], u[:1, :2, :1], mask if mask is None else mask[:1]
    inputs, fast_mode = (z.requires_grad_(), u.requires_grad_(name in BOUNDED)), keys > 6  # long rows: another layout
    for check in (gradcheck, gradgradcheck):
        assert check(lambda z, u: weights_of(name, u)(z, mask), inputs, fast_mode=fast_mode)


@pytest.mark.parametrize("name", BOUND)
def test_bounds_that_sum_to_1_have_the_gradient_of_normalised_bounds(name):
    """The gradient of u / sum(u): a constant added to the gradient of a row has no effect, as for other rows."""
    z, g = normal(3, 5), normal(3, 5, seed=1)
    u = torch.tensor([0.1, 0.4, 0.2, 0.3, 0.0], dtype=torch.float64).expand(3, 5)
    gradients = torch.func.grad(lambda z, u: (weights_of(name, u)(z) * g).sum(), argnums=(0, 1))(z, u)
    expected = torch.func.grad(lambda u: (u / u.sum(dim=-1, keepdim=True) * g).sum())(u)
    torch.testing.assert_close(gradients, (torch.zeros_like(z), expected))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(WEIGHTS) - {"softmax"}))
def test_weights_compile_without_a_graph_break_and_can_be_transformed(name, unchecked):
    z, u, mask = case(8, 7)
    z, u = z.requires_grad_(), u.requires_grad_()

    def weigh(z: Tensor, u: Tensor, mask: Tensor = mask) -> Tensor:
        return weights_of(name, u)(z, mask)

    compiled = torch.compile(weigh, fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, weigh, torch.func.vmap(weigh)):
        p = function(z, u, mask)
        results.append((p.detach(), *torch.autograd.grad(p.square().sum(), (z, u), materialize_grads=True)))
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(results[2], results[1])
    _, forward = torch.func.jvp(lambda z: weigh(z, u), (z,), (z.cos(),))
    (backward,) = torch.autograd.grad((weigh(z, u) * z.detach().cos()).sum(), z)
    torch.testing.assert_close(forward, backward)  # the Jacobian with respect to the scores is symmetric
