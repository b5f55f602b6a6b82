"""Tiles: pieces of the rows of many sets that fit the processor's cache, so that successive operations find them there.

The sets are concatenated: X [N, d], with N the sum of their lengths. B sets of n rows each have the lengths [n] * B.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pointset.nn.fast.torch_private import has_hooks, is_traced

TILE = 2**18
"""Numbers in a tile, per thread: 1 MiB of float32. A tile and its result fit a second-level cache of 2 MiB, where
elementwise operations cost a tenth of a matrix product; in main memory they cost as much as one."""


def tile_size() -> int:
    """Numbers in a tile for all threads: each thread works on its share, in its own cache."""
    return TILE * torch.get_num_threads()


def may_tile(module: nn.Module, *rows: Tensor) -> bool:
    """True if a module may compute these rows tile by tile, in place of plain torch operations.

    It may not on a GPU, which has fast kernels for the plain operations; under a compiler, an exporter or a transform
    of `torch.func`, which must see the plain operations; under autocast, which chooses the type of each operation; or
    if a hook is registered, because hooks run only when modules are called.
    """
    if not all(part.device.type == "cpu" and part.dtype in (torch.float32, torch.float64) for part in rows):
        return False
    return not (is_traced() or torch.is_autocast_enabled("cpu") or has_hooks(module))


class Tile(NamedTuple):
    """Neighbouring sets of one length, or a part of one set."""

    sets: slice
    rows: slice


def whole_sets(lengths: Sequence[int], width: int) -> Iterator[Tile]:
    """Tiles of whole sets; a set larger than a tile is one tile. Empty sets are skipped."""
    most, first, row = tile_size() // width, 0, 0
    for length, run in itertools.groupby(lengths):
        count = len(list(run))
        together = max(1, most // max(1, length))
        for start in range(0, count if length else 0, together):
            stop = min(count, start + together)
            yield Tile(slice(first + start, first + stop), slice(row + start * length, row + stop * length))
        first, row = first + count, row + count * length


def parts_of_sets(lengths: Sequence[int], width: int) -> Iterator[Tile]:
    """Tiles for row-wise operations: sets larger than a tile are split."""
    most = max(1, tile_size() // width)
    for sets, rows in whole_sets(lengths, width):
        step = most if sets.stop - sets.start == 1 else rows.stop - rows.start
        for start in range(rows.start, rows.stop, step):
            yield Tile(sets, slice(start, min(start + step, rows.stop)))


def by_set(X: Tensor, tile: Tile) -> Tensor:
    """A view of the rows of a tile of X [N, ...], with an axis for the sets: [sets, rows per set, ...]."""
    return X[tile.rows].unflatten(0, (tile.sets.stop - tile.sets.start, -1))


class Scratch:
    """A buffer for temporary results, reused from tile to tile so that it stays in the cache."""

    def __init__(self, like: Tensor) -> None:
        self._memory = like.new_empty(0)

    def __call__(self, *shape: int) -> Tensor:
        """Return an uninitialised tensor that overwrites the previous one."""
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
    """A function of tensors, the rows first, that has a backward pass of its own.

    `forward(*inputs, keeps=...)` gives the result and what `backward(gradient, for_rows, *inputs, *kept)` needs, which
    gives the gradients of the inputs. `plain` is the function in plain torch operations, for second derivatives.
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
