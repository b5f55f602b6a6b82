"""Rows of many sets in pieces that fit the processor's cache, so that what one step writes the next still finds there.

Sets are laid end to end, X [N, d] with N the sum of their lengths; B equal sets of n rows are the case [n] * B.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pointset.nn.fast.torch_private import has_hooks, is_watched

TILE = 2**18
"""Numbers in a tile: 1 MiB of float32. A tile and what is made of it stay in a second-level cache of 2 MiB, where
element-wise work costs a tenth of a matrix product; in memory it costs as much as one."""


def tile_size() -> int:
    """Numbers in a tile: every thread of torch works on its share of it, in a cache of its own."""
    return TILE * torch.get_num_threads()


def may_tile(module: nn.Module, *rows: Tensor) -> bool:
    """True if a module may leave torch's operators aside and do the same work tile by tile.

    On a GPU the plain order has kernels of its own; a compiler, an exporter or a transform of `torch.func` wants to see
    the plain order, autocast decides types operator by operator, and hooks want their modules called.
    """
    if not all(part.device.type == "cpu" and part.dtype in (torch.float32, torch.float64) for part in rows):
        return False
    return not (is_watched() or torch.is_autocast_enabled("cpu") or has_hooks(module))


class Tile(NamedTuple):
    """Neighbouring sets of one length, or a piece of one set."""

    sets: slice
    rows: slice


def whole_sets(lengths: Sequence[int], width: int) -> Iterator[Tile]:
    """Tiles of whole sets; a set longer than a tile is one tile. Empty sets are in none."""
    most, first, row = tile_size() // width, 0, 0
    for length, run in itertools.groupby(lengths):
        count = len(list(run))
        together = max(1, most // max(1, length))
        for start in range(0, count if length else 0, together):
            stop = min(count, start + together)
            yield Tile(slice(first + start, first + stop), slice(row + start * length, row + stop * length))
        first, row = first + count, row + count * length


def parts_of_sets(lengths: Sequence[int], width: int) -> Iterator[Tile]:
    """Tiles for work that does each row on its own: long sets are cut."""
    most = max(1, tile_size() // width)
    for sets, rows in whole_sets(lengths, width):
        step = most if sets.stop - sets.start == 1 else rows.stop - rows.start
        for start in range(rows.start, rows.stop, step):
            yield Tile(sets, slice(start, min(start + step, rows.stop)))


def by_set(X: Tensor, tile: Tile) -> Tensor:
    """A view of the rows of a tile, X [N, ...], set by set: [sets, rows of each, ...]."""
    return X[tile.rows].unflatten(0, (tile.sets.stop - tile.sets.start, -1))


class Scratch:
    """One piece of memory for what a tile needs for a moment: it stays in the cache from tile to tile."""

    def __init__(self, like: Tensor) -> None:
        self._memory = like.new_empty(0)

    def __call__(self, *shape: int) -> Tensor:
        """An uninitialised tensor, in the place of the last one."""
        count = math.prod(shape)
        if count > len(self._memory):
            self._memory = self._memory.new_empty(count)
        return self._memory[:count].view(shape)
