"""Choose the points of each set from its pool: random subsets for training, one fixed subset for evaluation."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pointset.data.pool import Pool
from pointset.data.sampling import seed_for

Places = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Row indices [S] into all points of a pool, concatenated over sets, and the sizes [B] of the sets, with sum S."""


def random_places(pool: Pool, rows: NDArray[np.int64], size: int, generator: torch.Generator) -> Places:
    """Draw a random subset of `size` points of each shape in rows [B] of a pool; a smaller shape gives all points."""
    sizes = np.minimum(pool.sizes[rows], size)
    if pool.offsets is None:
        chosen = random_subsets(pool.points.shape[1], size, len(rows), generator).ravel()
    else:
        each = zip(pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
        chosen = _joined([random_subsets(have, take, 1, generator)[0] for have, take in each])
    return np.repeat(pool.starts[rows], sizes) + chosen, sizes


def fixed_places(pool: Pool, rows: NDArray[np.int64], size: int, seed: int) -> Places:
    """The fixed subset of each shape, which depends only on the seed and the shape's name.

    It is the start of a permutation, so a smaller subset is contained in a larger one.
    """
    sizes = np.minimum(pool.sizes[rows], size)
    each = zip(rows.tolist(), pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
    generators = ((np.random.default_rng(seed_for(seed, pool.names[row])), have, take) for row, have, take in each)
    chosen = [rng.permutation(have)[:take] for rng, have, take in generators]
    return np.repeat(pool.starts[rows], sizes) + _joined(chosen), sizes


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def random_subsets(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Independent random subsets of range(available), each uniform among all subsets of size `count`.

    Numbers are drawn with replacement and repeats are dropped, so the cost grows with `count` and not with `available`.
    For more than half of the range, the complement is drawn. All arithmetic is in integers, so the result does not
    depend on the number of threads.

    Returns:
        int64 [sets, count].
    """
    if 2 * count <= available:
        return _distinct(available, count, sets, generator)
    kept = np.ones((sets, available), dtype=bool)
    np.put_along_axis(kept, _distinct(available, available - count, sets, generator), False, axis=1)
    return kept.nonzero()[1].reshape(sets, count)


def _distinct(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """The first `count` distinct numbers of a random sequence below `available`, for each of `sets` sequences."""
    # This many draws nearly always contain `count` distinct numbers; if not, the loop draws more.
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
    """Mask [sets, draws], True where a number occurs for the first time in its row."""
    sets, draws = drawn.shape
    cell = drawn + np.arange(sets)[:, None] * available
    kind = np.min_scalar_type(draws)  # a small table stays in the processor's cache
    place = np.broadcast_to(np.arange(draws, dtype=kind), drawn.shape)
    first = np.empty(sets * available, dtype=kind)
    # Written from the last place to the first, so that the first place overwrites the others in a shared cell.
    first[cell[:, ::-1].ravel()] = place[:, ::-1].ravel()
    return first[cell] == place
