"""Tiles: parts of the rows of many sets that stay in the processor's cache from one operation to the next."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

TILE = 2**18
"""Number of values in a tile, per thread: 1 MiB of float32. A tile and the result of an operation on it fit a
second-level cache of 2 MiB. An elementwise operation takes a tenth of the time of a matrix product there, but the same
time in main memory."""


def tile_size() -> int:
    """Return the number of values in a tile for all threads. The cache of each thread has a part of the tile."""
    return TILE * torch.get_num_threads()


def have_values(*tensors: Tensor) -> bool:
    """Return False under a compiler, an exporter, a transform of `torch.func` or forward-mode differentiation."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    try:
        for tensor in tensors:
            tensor.data_ptr()  # a tensor in a transform has no data
    except RuntimeError:
        return False
    return all(forward_ad.unpack_dual(tensor).tangent is None for tensor in tensors)


def may_tile(*tensors: Tensor) -> bool:
    """Return True if rows and weights may be computed tile by tile instead of by plain torch operations.

    Plain operations are needed on a GPU, which has fast kernels for them; under a compiler, an exporter or a transform
    of `torch.func`, which must see them; and under autocast, which chooses the type of each operation.
    """
    if not all(part.device.type == "cpu" and part.dtype in (torch.float32, torch.float64) for part in tensors):
        return False
    return have_values(*tensors) and not torch.is_autocast_enabled("cpu")


def whole_sets(sets: int, numbers: int) -> Iterator[slice]:
    """Yield tiles of whole sets of `numbers` values. A set larger than a tile is one tile."""
    together = max(1, tile_size() // max(1, numbers))
    for start in range(0, sets, together):
        yield slice(start, min(sets, start + together))


def parts_of_sets(sets: int, length: int, width: int) -> Iterator[tuple[slice, slice]]:
    """Yield tiles, each as slices of the sets and of the rows of X [B n, d]. Sets larger than a tile are split."""
    most = max(1, tile_size() // width)
    for chosen in whole_sets(sets, length * width):
        first, last = chosen.start * length, chosen.stop * length
        step = most if chosen.stop - chosen.start == 1 else max(1, last - first)
        for start in range(first, last, step):
            yield chosen, slice(start, min(start + step, last))


def softmax_backward(g: Tensor, A: Tensor) -> Tensor:
    """Convert the gradient g of A = softmax(logits) in place to the gradient A (g - sum(g A)) of the logits."""
    g *= A
    return g.addcmul_(A, g.sum(dim=-1, keepdim=True), value=-1)


class Scratch:
    """A buffer for temporary results that all tiles reuse, so that it stays in the cache."""

    def __init__(self, like: Tensor) -> None:
        self._memory = like.new_empty(0)

    def __call__(self, *shape: int) -> Tensor:
        """Return an uninitialised tensor in the buffer, which shares memory with those of earlier calls."""
        count = math.prod(shape)
        if count > len(self._memory):
            self._memory = self._memory.new_empty(count)
        return self._memory[:count].view(shape)


def in_tiles(
    forward: Callable[..., tuple[Tensor, ...]],
    backward: Callable[..., tuple[Tensor | None, ...]],
    plain: Callable[..., Tensor],
    *inputs: Tensor,
) -> Tensor:
    """Apply a function of tensors with a custom backward pass.

    `forward(*inputs, keeps=...)` returns the result and the tensors kept for the backward pass. `backward(gradient,
    for_rows, *inputs, *kept)` returns the gradients of the inputs, that of the first one (the rows) only if `for_rows`
    is True. `plain` is the function in plain torch operations, for second derivatives.
    """
    if torch.is_grad_enabled() and any(part.requires_grad for part in inputs):
        return _InTiles.apply(forward, backward, plain, *inputs)
    return forward(*inputs, keeps=False)[0]


class _InTiles(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, forward: Any, backward: Any, plain: Any, *inputs: Tensor) -> Tensor:
        result, *kept = forward(*inputs, keeps=True)
        ctx.save_for_backward(*inputs, *kept)
        ctx.backward_of, ctx.plain = backward, plain
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[3:]
        if not torch.is_grad_enabled():
            return None, None, None, *ctx.backward_of(gradients[0], needed[0], *ctx.saved_tensors)
        inputs = ctx.saved_tensors[: len(needed)]
        wanted = [part for part, need in zip(inputs, needed, strict=True) if need]
        made = iter(torch.autograd.grad(ctx.plain(*inputs), wanted, gradients[0], create_graph=True))
        return None, None, None, *(next(made) if need else None for need in needed)
