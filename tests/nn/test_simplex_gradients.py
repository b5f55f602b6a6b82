"""Gradients of weights against finite differences, with autograd and torch.func."""

from collections.abc import Callable

import pytest
import torch
from simplex_cases import case, weights_of
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from pointset.nn.simplex import BOUNDED, WEIGHTS

NAMES = sorted(WEIGHTS)
OURS = sorted(set(WEIGHTS) - {"softmax"})


def smooth_case(seed: int, keys: int, masked: bool = True) -> tuple[Tensor, Tensor, Tensor | None]:
    """One set with two heads and one query, without equal scores: weights are not differentiable at ties."""
    z, u, mask = case(seed, keys, masked=masked, room=1.7, ties=False)
    return z[:1, :2, :1], u[:1, :2, :1], mask if mask is None else mask[:1]


def weigh(name: str, z: Tensor, u: Tensor, mask: Tensor | None = None) -> Tensor:
    return weights_of(name, u)(z, mask)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("seed", "keys", "masked"), [(0, 1, False), (1, 5, False), (2, 6, True), (3, 70, True)])
def test_first_and_second_derivatives_are_those_of_finite_differences(name, seed, keys, masked):
    z, u, mask = smooth_case(seed, keys, masked)
    inputs, fast_mode = (z.requires_grad_(), u.requires_grad_(name in BOUNDED)), keys > 6  # long rows: another layout
    assert gradcheck(lambda z, u: weigh(name, z, u, mask), inputs, fast_mode=fast_mode)
    assert gradgradcheck(lambda z, u: weigh(name, z, u, mask), inputs, fast_mode=fast_mode)


@pytest.mark.parametrize("name", sorted(BOUNDED))
@pytest.mark.parametrize("watched", [False, True], ids=["eager", "torch.func"])
def test_bounds_that_sum_to_1_have_the_gradient_of_normalised_bounds(name, watched):
    """The gradient of u / sum(u): a constant added to the gradient of a row has no effect, as for other rows."""
    z = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    u = torch.tensor([0.1, 0.4, 0.2, 0.3, 0.0], dtype=torch.float64).expand(3, 5)
    g = torch.randn(3, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def loss(z: Tensor, u: Tensor) -> Tensor:
        return (weigh(name, z, u) * g).sum()

    gradient = torch.func.grad if watched else grad_of
    gz, gu = gradient(loss, argnums=(0, 1))(z, u)
    assert torch.equal(gz, torch.zeros_like(z))
    expected = torch.func.grad(lambda u: (u / u.sum(dim=-1, keepdim=True) * g).sum())(u)
    torch.testing.assert_close(gu, expected)


def grad_of(loss: Callable[..., Tensor], argnums: tuple[int, ...]) -> Callable[..., tuple[Tensor, ...]]:
    """Like torch.func.grad, by autograd."""

    def gradients(*inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [part.clone().requires_grad_() for part in inputs]
        return torch.autograd.grad(loss(*leaves), [leaves[number] for number in argnums])

    return gradients


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keys", [5, 70])
def test_no_gradient_is_nan_and_padding_gets_none(name, keys):
    z, u, mask = case(0, keys)
    mask[0] = False
    z, u = z.masked_fill(~mask, torch.nan).requires_grad_(), u.masked_fill(~mask, torch.nan).requires_grad_()
    weigh(name, z, u, mask).square().sum().backward()
    for leaf in (z, u) if name in BOUNDED else (z,):
        assert (leaf.grad[~mask.expand_as(z)] == 0).all()
        assert leaf.grad.isfinite().all()
        assert (leaf.grad[1] != 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize("keys", [6, 70])
def test_grad_jvp_vjp_and_vmap_of_torch_func_agree(name, keys):
    z, u, mask = (part[0, :, 0] for part in smooth_case(4, keys))
    direction = torch.randn(z.shape, generator=torch.Generator().manual_seed(5), dtype=z.dtype)

    def loss(z: Tensor, u: Tensor) -> Tensor:
        return (weigh(name, z, u, mask) * direction).sum()

    leaves = z.clone().requires_grad_(), u.clone().requires_grad_()
    expected = torch.autograd.grad(loss(*leaves), leaves, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(torch.func.grad(loss, argnums=(0, 1))(z, u), expected)
    _, forward = torch.func.jvp(lambda z: weigh(name, z, u, mask), (z,), (direction,))
    backward = torch.func.vjp(lambda z: weigh(name, z, u, mask), z)[1](direction)[0]
    torch.testing.assert_close(forward, backward)  # the Jacobian with respect to the scores is symmetric
    each = torch.func.vmap(lambda z, u, mask: weigh(name, z, u, mask), in_dims=(0, 0, None))(z, u, mask[0])
    torch.testing.assert_close(each, weigh(name, z, u, mask))


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_weights_compile_without_a_graph_break(name, unchecked):
    z, u, mask = case(8, 7)
    compiled = torch.compile(lambda z, u: weigh(name, z, u, mask), fullgraph=True, backend="aot_eager")
    results = []
    for function in (compiled, lambda z, u: weigh(name, z, u, mask)):
        leaves = z.clone().requires_grad_(), u.clone().requires_grad_(name in BOUNDED)
        p = function(*leaves)
        p.square().sum().backward()
        results.append((p.detach(), leaves[0].grad, leaves[1].grad))
    torch.testing.assert_close(*results)
