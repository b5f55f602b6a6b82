"""How rows of scores reach the functions that turn them into weights: their types, their masks, their pieces."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.autograd import forward_ad

from pointset.nn.tiles import tile_size

SHORT = 64
"""Rows up to here are laid out keys first before they are worked on: a sum over 16 neighbours costs 10 times as much
as one over 16 rows of a matrix."""


def is_watched() -> bool:
    """Whether a compiler, an exporter or a transform of `torch.func` looks on, which cannot follow values."""
    return (
        torch.compiler.is_compiling()
        or torch.jit.is_tracing()
        or torch._C._functorch.maybe_current_level() is not None
        or forward_ad._current_level >= 0
    )


def real_scores(z: Tensor, mask: Tensor | None, padding: float) -> Tensor:
    """The scores in float32 or float64, `padding` where the key is not real, whatever stood there."""
    z = z if z.dtype == torch.float64 else z.float()
    return z if mask is None else z.masked_fill(~mask, padding)


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *rows: Tensor) -> tuple[Tensor, ...]:
    """What `kernel` makes of rows [..., n], in pieces that fit the processor's cache; it sees them keys first, [n, r].

    On an accelerator, and for few rows, there is one piece. The kernel returns tensors of the shape it is given.
    """
    shape = rows[0].shape
    flat = [part.reshape(-1, shape[-1]) for part in rows]
    found: list[Tensor] = []
    for piece in _pieces(flat[0]):
        parts = [part[piece].T for part in flat]
        results = kernel(*(part.contiguous() if shape[-1] <= SHORT else part for part in parts))
        if not found:
            found = [result.new_empty(flat[0].shape) for result in results]
        for whole, result in zip(found, results, strict=True):
            whole[piece] = result.T
    return tuple(part.view(shape) for part in found)


def _pieces(rows: Tensor) -> Iterator[slice]:
    count, n = rows.shape
    step = max(1, tile_size() // n if rows.device.type == "cpu" else count)
    for start in range(0, max(1, count), step):
        yield slice(start, start + step)
