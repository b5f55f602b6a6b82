"""How rows of scores reach the functions that turn them into weights: their types and their pieces."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

SHORT = 64
"""Rows up to here are laid out keys first before they are worked on: a sum over 16 neighbours costs 10 times as much
as one over 16 rows of a matrix."""

PIECE = 2**17
"""Numbers in a piece for one thread: with two copies of it, they stay in a second-level cache of 2 MiB."""


def single_or_double(z: Tensor) -> Tensor:
    """The type that is computed in: float64 for itself, float32 for all others."""
    return z if z.dtype == torch.float64 else z.float()


def by_rows(kernel: Callable[..., tuple[Tensor, ...]], *rows: Tensor) -> tuple[Tensor, ...]:
    """What `kernel` makes of rows [..., n], in pieces that fit the processor's cache; it sees them keys first, [n, r].

    On an accelerator, and for few rows, there is one piece. The kernel returns tensors of the shape it is given.

    Kernels prefer numbers to truth values on the way: on a CPU, comparing, choosing and counting by bool tensors takes
    3 to 50 times as long as the same by signs, products and sums.
    """
    shape = rows[0].shape
    flat = [part.reshape(-1, shape[-1]) for part in rows]
    found: list[Tensor] = []
    for piece in _pieces(flat[0]):
        parts = [part[piece].contiguous().T for part in flat]  # one layout for all, also for expanded ones
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
