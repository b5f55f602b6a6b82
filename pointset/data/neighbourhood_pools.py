"""Pools whose points know their neighbourhoods: numbers computed once per pool, of many points on disk."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.locate import home
from pointset.data.neighbourhoods import WIDTHS, stored_numbers
from pointset.data.pool import Pool, fixed_indices
from pointset.runs.atomic import write_atomically
from pointset.runs.progress import followed

ARRAY = "neighbourhoods"
"""Name of the pool's array of numbers."""
VERSION = 4
"""Increased whenever the same points get other numbers."""
FEW_POINTS = 2**18
"""Numbers of so many points or fewer are computed again, and not kept on disk."""
_MADE: "WeakKeyDictionary[Pool, dict[tuple[str, int, int], Pool]]" = WeakKeyDictionary()


def pool_with_neighbourhoods(pool: Pool, kind: str, most: int, seed: int) -> Pool:
    """The pool with at most `most` points of each shape, and the numbers of their neighbourhoods.

    Args:
        pool: any pool.
        kind: see `pointset.data.neighbourhoods`.
        most: points of the cloud whose neighbourhoods are described; of larger shapes a random part.
        seed: seed of these parts.
    """
    made = _MADE.setdefault(pool, {})
    if (kind, most, seed) not in made:
        made[kind, most, seed] = with_numbers(cut_pool(pool, most, seed), kind)
    return made[kind, most, seed]


def with_numbers(pool: Pool, kind: str, repeated: bool = False) -> Pool:
    """The pool with the numbers of the neighbourhoods of all points, of which `repeated` ones count once."""
    return dataclasses.replace(pool, arrays={**pool.arrays, ARRAY: _numbers(pool, kind, repeated)})


def cut_pool(pool: Pool, most: int, seed: int) -> Pool:
    """At most `most` points of each shape."""
    if not len(pool) or pool.sizes.max(initial=0) <= most:
        return pool
    where, sizes = fixed_indices(pool, np.arange(len(pool)), most, seed)
    ragged = pool.offsets is not None and len(set(sizes.tolist())) > 1

    def shaped(array: NDArray[Any]) -> NDArray[Any]:
        return array if ragged else array.reshape(len(pool), int(sizes[0]), *array.shape[1:])

    offsets = np.concatenate([[0], sizes.cumsum()]) if ragged else None
    arrays = {name: shaped(pool.take(where, name)) for name in pool.arrays}
    return dataclasses.replace(pool, points=shaped(pool.take(where)), arrays=arrays, offsets=offsets, checksums=())


def _numbers(pool: Pool, kind: str, repeated: bool) -> NDArray[np.float16]:
    """The numbers of all points, float16 [M, P, width] or [T, width] as the points."""
    shape = (*pool.points.shape[:-1], WIDTHS[kind])
    rows = range(len(pool))
    numbers_of = _numbers_of_distinct if repeated else stored_numbers
    if int(pool.sizes.sum()) <= FEW_POINTS:
        each = [numbers_of(pool.cloud(row), kind) for row in rows]
        return np.concatenate([np.zeros((0, WIDTHS[kind]), np.float16), *each]).reshape(shape)
    key = hashlib.sha256(f"{VERSION} {kind}{' repeated' * repeated} {pool.fingerprint(rows)}".encode()).hexdigest()[:24]
    file = home() / ARRAY / f"{key}.npy"

    def write(temporary: Path) -> None:
        numbers = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
        flat = numbers.reshape(-1, shape[-1])
        for row in followed(rows, "neighbourhoods", "shape", len(pool)):
            start = pool.starts[row]
            flat[start : start + pool.sizes[row]] = numbers_of(pool.cloud(row), kind)
        numbers.flush()

    if not file.exists():
        write_atomically(file, write)
    return np.load(file, mmap_mode="r")


def _numbers_of_distinct(points: NDArray[np.float32], kind: str) -> NDArray[np.float16]:
    """`stored_numbers` of the cloud without repeated points, for all of its points."""
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    return stored_numbers(distinct, kind)[places]
