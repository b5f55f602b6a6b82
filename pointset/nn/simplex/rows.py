"""Converts rows of scores to the type and layout in which their weights are computed, piece by piece."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

SHORT = 64
"""Rows of at most this length are transposed in memory first: a sum over 16 neighbouring numbers costs 10 times as
much as a sum over 16 rows of a matrix."""

PIECE = 2**17
"""Numbers in a piece, per thread: a piece and two copies of it fit a second-level cache of 2 MiB."""


def single_or_double(z: Tensor) -> Tensor:
    """The scores in the type of the computation: float64 stays, every other type becomes float32."""
    return z if z.dtype == torch.float64 else z.float()


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *rows: Tensor) -> tuple[Tensor, ...]:
    """Apply `kernel` to rows [..., n], in pieces that fit the processor's cache.

    The kernel gets each piece with keys first, [n, r], and returns tensors of that shape. On an accelerator, and for
    few rows, there is one piece.

    Kernels avoid bool tensors: on a CPU, comparing, selecting and counting with them takes 3 to 50 times as long as
    with signs, products and sums.
    """
    shape = rows[0].shape
    flat = [part.reshape(-1, shape[-1]) for part in rows]
    found: list[Tensor] = []
    for piece in _pieces(flat[0]):
        parts = [part[piece].contiguous().T for part in flat]  # the same layout for all, expanded tensors included
        results = kernel(*(part.contiguous() if shape[-1] <= SHORT else part for part in parts))
        if not found:
            found = [result.new_empty(flat[0].shape) for result in results]
        for whole, result in zip(found, results, strict=True):
            whole[piece] = result.T
    return tuple(part.view(shape) for part in found)


def _pieces(rows: Tensor) -> Iterator[slice]:
    count, n = rows.shape
    step = max(1, PIECE * torch.get_num_threads() // n if rows.device.type == "cpu" else count)
    for start in range(0, max(1, count), step):
        yield slice(start, start + step)
