"""Point caches whose points know their neighbourhoods, and imperfect copies of shapes with neighbourhoods of their own.

What a point is told of its neighbourhood must be that of the cloud which is given: a scan without its back, or with
points of the background, has other neighbours. So the whole cloud is changed, its numbers are computed once per cache,
of many points on disk, and then sets are drawn from it, as from the shape itself.
"""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pointset.configuration import LocalFeatures
from pointset.data.augmentations import Augmentation
from pointset.data.catalogue.locate import home
from pointset.data.local_feature_kinds import COLUMNS, WIDTHS, joint_kind
from pointset.data.local_features import stored_local_features
from pointset.data.point_cache import PointCache, fixed_indices
from pointset.data.ragged import pad_rows
from pointset.runs.atomic import write_atomically
from pointset.runs.progress import followed

FOLDER = "local-features"
VERSION = 5
"""Increased whenever the same points get other numbers."""
FEW_POINTS = 2**18
"""Numbers of so many points or fewer are computed again, and not kept on disk."""
COPIES = 3
"""Copies of each shape: so many times neighbourhoods are computed again."""
WHOLE = 0.4
"""Share of the draws that are from the shape itself; a copy may be unchanged, too."""
AT_ONCE = 256
"""Shapes that are changed at a time."""
_MADE: "WeakKeyDictionary[PointCache, dict[tuple[int, int], PointCache]]" = WeakKeyDictionary()


def cache_with_local_features(cache: PointCache, kind: LocalFeatures, most: int, seed: int) -> PointCache:
    """The cache with the local features, among at most `most` points of each shape: a part by the seed.

    They are an array of the cache, named by its kind, which may be another one that has them all; see `kind_in`.
    """
    if kind_in(cache, kind):
        return cache
    made = _MADE.setdefault(cache, {})
    known = made.get((most, seed)) or _cut(cache, most, seed)
    made[most, seed] = known if kind_in(known, kind) else _with_numbers(known, kind)
    return made[most, seed]


def kind_in(cache: PointCache, kind: LocalFeatures) -> LocalFeatures | None:
    """The smallest kind of numbers in the cache that has those of this kind, if there is one."""
    known = [own for own in COLUMNS if own in cache.arrays and kind != "none" and joint_kind((own, kind)) == own]
    return min(known, key=WIDTHS.__getitem__, default=None)


def cache_with_copies(
    cache: PointCache, kind: LocalFeatures, most: int, seed: int, change: Augmentation, change_seed: int
) -> PointCache:
    """`cache_with_local_features`, and then `COPIES` times all shapes, changed; points that repeat count once."""
    cache = _cut(cache, most, seed)
    blocks = [cache.columns, *(_changed(cache, change, change_seed, copy) for copy in range(COPIES))]
    times = len(blocks)
    copies = cache.with_columns(
        {name: np.concatenate([block[name] for block in blocks]) for name in cache.columns},
        names=[f"{name}#{copy}" if copy else name for copy in range(times) for name in cache.names],
        labels=np.tile(cache.labels, times),
        offsets=None if cache.offsets is None else np.cumsum([0, *np.tile(cache.sizes, times)]),
        groups=None if cache.groups is None else np.tile(cache.groups, times),
    )
    return _with_numbers(copies, kind, repeated=True)


def drawn_copies(rows: np.ndarray, cache: PointCache, generator: torch.Generator) -> np.ndarray:
    """For rows [B] of the shapes of a cache with copies, the rows of the shapes themselves or of random copies."""
    which = torch.rand(len(rows), generator=generator).numpy()
    copy = np.ceil((which - WHOLE) / (1 - WHOLE) * COPIES).clip(min=0).astype(np.int64)
    return rows + len(cache) // (COPIES + 1) * copy


def _changed(cache: PointCache, change: Augmentation, seed: int, copy: int) -> dict[str, NDArray[Any]]:
    """The columns of the cache with all its clouds changed."""
    old = cache.columns
    rows = torch.from_numpy(np.concatenate([one.reshape(-1, one.shape[-1]) for one in old.values()], axis=1))
    generator = torch.Generator().manual_seed(int(np.random.default_rng((seed, copy)).integers(2**62)))
    sizes = torch.from_numpy(cache.sizes).split(AT_ONCE)
    changed = list[Tensor]()
    for together, some in zip(rows.split([int(each.sum()) for each in sizes]), sizes, strict=True):
        sets, mask = pad_rows(together, some)
        sets = change(sets, generator, mask)
        changed.append(sets.flatten(0, 1) if mask is None else sets[mask])
    new = torch.cat(changed).split([one.shape[-1] for one in old.values()], dim=1)
    return {name: own.numpy().reshape(old[name].shape) for name, own in zip(old, new, strict=True)}


def _cut(cache: PointCache, most: int, seed: int) -> PointCache:
    """At most `most` points of each shape."""
    if not len(cache) or cache.sizes.max(initial=0) <= most:
        return cache
    where, sizes = fixed_indices(cache, np.arange(len(cache)), most, seed)
    is_ragged = sizes.min() < sizes.max()
    shape = (len(where),) if is_ragged else (len(cache), sizes[0])
    taken = {name: cache.take(where, name) for name in cache.columns}
    columns = {name: rows.reshape(*shape, *rows.shape[1:]) for name, rows in taken.items()}
    return cache.with_columns(columns, offsets=np.cumsum([0, *sizes]) if is_ragged else None)


def _with_numbers(cache: PointCache, kind: LocalFeatures, repeated: bool = False) -> PointCache:
    """The cache with the local features of all points, of which `repeated` ones count once."""
    return dataclasses.replace(cache, arrays={**cache.arrays, kind: _numbers(cache, kind, repeated)})


def _numbers(cache: PointCache, kind: LocalFeatures, repeated: bool) -> NDArray[np.float16]:
    """The numbers of all points, float16 [M, P, width] or [T, width] as the points."""
    shape = (*cache.points.shape[:-1], WIDTHS[kind])
    rows = range(len(cache))
    numbers_of = _numbers_of_distinct if repeated else stored_local_features
    if int(cache.sizes.sum()) <= FEW_POINTS:
        each = [numbers_of(cache.cloud(row), kind) for row in rows]
        return np.concatenate([np.zeros((0, WIDTHS[kind]), np.float16), *each]).reshape(shape)
    identity = f"{VERSION} {kind}{' repeated' * repeated} {cache.fingerprint(rows)}"
    key = hashlib.sha256(identity.encode()).hexdigest()[:24]
    file = home() / FOLDER / f"{key}.npy"

    def write(temporary: Path) -> None:
        numbers = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
        flat = numbers.reshape(-1, shape[-1])
        for row in followed(rows, "local_features", "shape", len(cache)):
            start = cache.starts[row]
            flat[start : start + cache.sizes[row]] = numbers_of(cache.cloud(row), kind)
        numbers.flush()

    if not file.exists():
        write_atomically(file, write)
    return np.load(file, mmap_mode="r")


def _numbers_of_distinct(points: NDArray[np.float32], kind: LocalFeatures) -> NDArray[np.float16]:
    """`stored_local_features` of the cloud without repeated points, for all of its points."""
    distinct, places = np.unique(points, axis=0, return_inverse=True)
    return stored_local_features(distinct, kind)[places]
