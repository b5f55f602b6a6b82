"""Which points of a pool a set gets: random subsets for training, one fixed subset for evaluation."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pointset.data.pool import Pool
from pointset.data.sampling import seed_for

Places = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows of all points of a pool [S], one set after the other, and the sizes of the sets [B], S together."""


def random_places(pool: Pool, rows: NDArray[np.int64], size: int, generator: torch.Generator) -> Places:
    """A fresh random subset of `size` points of each shape in rows [B] of a pool, or all its points if it has fewer."""
    sizes = np.minimum(pool.sizes[rows], size)
    if pool.offsets is None:
        chosen = random_subsets(pool.points.shape[1], size, len(rows), generator).ravel()
    else:
        each = zip(pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
        chosen = _joined([random_subsets(have, take, 1, generator)[0] for have, take in each])
    return np.repeat(pool.starts[rows], sizes) + chosen, sizes


def fixed_places(pool: Pool, rows: NDArray[np.int64], size: int, seed: int) -> Places:
    """One subset of each shape, which depends on the seed and the shape's name alone.

    It is the beginning of a permutation: fewer points are a subset of more.
    """
    sizes = np.minimum(pool.sizes[rows], size)
    each = zip(rows.tolist(), pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
    generators = ((np.random.default_rng(seed_for(seed, pool.names[row])), have, take) for row, have, take in each)
    chosen = [rng.permutation(have)[:take] for rng, have, take in generators]
    return np.repeat(pool.starts[rows], sizes) + _joined(chosen), sizes


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def random_subsets(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Subsets of range(available), each uniform among all of its size and independent of the others.

    Numbers are drawn with replacement and repeats are dropped, so the cost grows with `count` and not with `available`.
    For subsets of more than half, the complement is drawn. Only integers are computed: the result is the same with
    any number of threads.

    Returns:
        int64 [sets, count].
    """
    if 2 * count <= available:
        return _distinct(available, count, sets, generator)
    kept = np.ones((sets, available), dtype=bool)
    np.put_along_axis(kept, _distinct(available, available - count, sets, generator), False, axis=1)
    return kept.nonzero()[1].reshape(sets, count)


def _distinct(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """The first `count` different numbers of a sequence of random ones, for each of several sequences."""
    # So many draws nearly always hold `count` different numbers; if not, more are drawn.
    expected = -available * np.log1p(-count / available) if count else 0.0
    more = int(expected + 4.0 * np.sqrt(expected)) + 1
    drawn = np.empty((sets, 0), dtype=np.int64)
    while True:
        drawn = np.hstack([drawn, torch.randint(available, (sets, more), generator=generator).numpy()])
        fresh = _first_occurrences(drawn, available)
        rank = fresh.cumsum(axis=1)
        if not sets or rank[:, -1].min() >= count:
            return drawn[fresh & (rank <= count)].reshape(sets, count)


def _first_occurrences(drawn: NDArray[np.int64], available: int) -> NDArray[np.bool_]:
    """Where a number stands for the first time in its row [sets, draws]."""
    sets, draws = drawn.shape
    cell = drawn + np.arange(sets)[:, None] * available
    kind = np.min_scalar_type(draws)  # a small table stays in the processor's cache
    place = np.broadcast_to(np.arange(draws, dtype=kind), drawn.shape)
    first = np.empty(sets * available, dtype=kind)
    # Written from the last place to the first: of several that share a cell, the first place stays.
    first[cell[:, ::-1].ravel()] = place[:, ::-1].ravel()
    return first[cell] == place
