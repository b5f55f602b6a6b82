"""Where in a pool the points of sets are: chosen anew for training, and once and for all for evaluation."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from pointset.data.pools.pool import Pool
from pointset.data.sampling import seed_for
from pointset.data.subsets import random_subsets

Places = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Rows of all points of a pool [S], one set after the other, and the sizes of the sets [B], S together."""


def random_places(pool: Pool, rows: NDArray[np.int64], size: int, generator: torch.Generator) -> Places:
    """A fresh random subset of each of some shapes.

    Args:
        pool: of the shapes.
        rows: of the pool, [B].
        size: points per set; shapes of a ragged pool with fewer give all they have.
        generator: on the CPU; the only source of randomness.
    """
    sizes = np.minimum(pool.sizes[rows], size)
    if pool.offsets is None:
        chosen = random_subsets(pool.points.shape[1], size, len(rows), generator).ravel()
    else:
        each = zip(pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
        chosen = _joined([random_subsets(have, take, 1, generator)[0] for have, take in each])
    return np.repeat(pool.starts[rows], sizes) + chosen, sizes


def fixed_places(pool: Pool, rows: NDArray[np.int64], size: int, seed: int) -> Places:
    """The same subset of each of some shapes each time, which depends on the seed and the shape's name alone.

    It is the beginning of one permutation: fewer points are a subset of more.
    """
    sizes = np.minimum(pool.sizes[rows], size)
    each = zip(rows.tolist(), pool.sizes[rows].tolist(), sizes.tolist(), strict=True)
    generators = ((np.random.default_rng(seed_for(seed, pool.names[row])), have, take) for row, have, take in each)
    chosen = [rng.permutation(have)[:take] for rng, have, take in generators]
    return np.repeat(pool.starts[rows], sizes) + _joined(chosen), sizes


def _joined(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])
