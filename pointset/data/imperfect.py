"""Imperfect copies of a pool's shapes, for networks whose points know their neighbourhoods.

What a point is told of its neighbourhood must be that of the cloud which is given: a scan without its back, or with
points of the background, has other neighbours. So the whole cloud is changed, its numbers are computed, and then sets
are drawn from it, as from the shape itself.
"""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from pointset.data.augmentations import Augmentation
from pointset.data.neighbourhood_pools import with_numbers
from pointset.data.pool import Pool
from pointset.data.ragged import pad_rows

COPIES = 3
"""Copies of each shape: so many times neighbourhoods are computed again."""
WHOLE = 0.4
"""Share of the draws that are from the shape itself; a copy may be unchanged, too."""
AT_ONCE = 256
"""Shapes that are changed at a time."""


def pool_with_copies(pool: Pool, kind: str, change: Augmentation, seed: int) -> Pool:
    """The shapes of a pool and then `COPIES` times all of them, changed; with the numbers of their neighbourhoods.

    Points that a change repeats count once in the numbers.

    Args:
        pool: shapes with as many points as their neighbourhoods are described among.
        kind: see `pointset.data.neighbourhoods`.
        change: what happens to the copies.
        seed: seed of the changes.
    """
    blocks = [pool, *(_changed(pool, change, seed, copy) for copy in range(COPIES))]
    times = len(blocks)
    copies = replace(
        pool,
        points=np.concatenate([block.points for block in blocks]),
        names=[f"{name}#{copy}" if copy else name for copy in range(times) for name in pool.names],
        labels=np.tile(pool.labels, times),
        arrays={name: np.concatenate([block.arrays[name] for block in blocks]) for name in pool.arrays},
        checksums=(),
        offsets=None if pool.offsets is None else np.concatenate([[0], np.tile(pool.sizes, times).cumsum()]),
        groups=None if pool.groups is None else np.tile(pool.groups, times),
    )
    return with_numbers(copies, kind, repeated=True)


def drawn_copies(rows: np.ndarray, pool: Pool, generator: torch.Generator) -> np.ndarray:
    """For rows [B] of the shapes of a pool with copies, the rows of the shapes themselves or of random copies."""
    which = torch.rand(len(rows), generator=generator).numpy()
    copy = np.ceil((which - WHOLE) / (1 - WHOLE) * COPIES).clip(min=0).astype(np.int64)
    return rows + len(pool) // (COPIES + 1) * copy


def _changed(pool: Pool, change: Augmentation, seed: int, copy: int) -> Pool:
    """The pool with all its clouds changed."""
    arrays = {"points": pool.points, **pool.arrays}
    rows = torch.from_numpy(np.concatenate([one.reshape(-1, one.shape[-1]) for one in arrays.values()], axis=1))
    generator = torch.Generator().manual_seed(int(np.random.default_rng((seed, copy)).integers(2**62)))
    sizes = torch.from_numpy(pool.sizes).split(AT_ONCE)
    changed = list[Tensor]()
    for together, some in zip(rows.split([int(each.sum()) for each in sizes]), sizes, strict=True):
        sets, mask = pad_rows(together, some)
        sets = change(sets, generator, mask)
        changed.append(sets.flatten(0, 1) if mask is None else sets[mask])
    columns = torch.cat(changed).split([one.shape[-1] for one in arrays.values()], dim=1)
    points, *others = (new.numpy().reshape(old.shape) for new, old in zip(columns, arrays.values(), strict=True))
    return replace(pool, points=points, arrays=dict(zip(pool.arrays, others, strict=True)), checksums=())
