"""Point caches with local features, which are computed once per cache and kept on disk."""

import dataclasses
import hashlib
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from pointset.configuration import LocalFeatures
from pointset.data.catalogue.locate import home
from pointset.data.local_features import WIDTHS, cloud_local_features
from pointset.data.point_cache import PointCache, fixed_indices
from pointset.runs.atomic import write_atomically
from pointset.runs.progress import followed

FOLDER = "local-features"
VERSION = 6
"""Increased whenever the same points get other features."""
FEW_POINTS = 2**18
"""Features of at most this number of points are computed each time and not stored on disk."""
_WITH_FEATURES: "WeakKeyDictionary[PointCache, dict[tuple[int, int], PointCache]]" = WeakKeyDictionary()


def stored_local_features(points: Float[ndarray, "n 3"], kind: LocalFeatures) -> Float[ndarray, "n width"]:
    """Return the result of `cloud_local_features` in float16, for caches and single shapes alike."""
    return cloud_local_features(points, kind).astype(np.float16)


def cache_with_local_features(cache: PointCache, kind: LocalFeatures, most: int, seed: int) -> PointCache:
    """Return the cache with an additional array of local features, whose name is their kind.

    If a shape has more than `most` points, the returned cache has a random subset of them, and its features are
    computed from this subset.
    """
    if kind in cache.arrays:
        return cache
    clouds = _WITH_FEATURES.setdefault(cache, {})
    cloud = clouds.get((most, seed)) or _subsampled(cache, most, seed)
    if kind not in cloud.arrays:
        cloud = dataclasses.replace(cloud, arrays={**cloud.arrays, kind: _local_features(cloud, kind)})
    clouds[most, seed] = cloud
    return cloud


def _subsampled(cache: PointCache, most: int, seed: int) -> PointCache:
    """Return a cache with at most `most` points of each shape."""
    if not len(cache) or cache.sizes.max(initial=0) <= most:
        return cache
    indices, sizes = fixed_indices(cache, np.arange(len(cache)), most, seed)
    is_ragged = sizes.min() < sizes.max()
    shape = (len(indices),) if is_ragged else (len(cache), sizes[0])
    taken = {name: cache.take(indices, name) for name in cache.columns}
    columns = {name: rows.reshape(*shape, *rows.shape[1:]) for name, rows in taken.items()}
    return cache.with_columns(columns, offsets=np.cumsum([0, *sizes]) if is_ragged else None)


def _local_features(cache: PointCache, kind: LocalFeatures) -> NDArray[np.float16]:
    """Return the features of all points, float16: [M, P, width], or [T, width] if the points are [T, 3]."""
    shape, rows = (*cache.points.shape[:-1], WIDTHS[kind]), range(len(cache))
    if int(cache.sizes.sum()) <= FEW_POINTS:
        clouds = [stored_local_features(cache.cloud(row), kind) for row in rows]
        return np.concatenate([np.zeros((0, WIDTHS[kind]), np.float16), *clouds]).reshape(shape)
    key = hashlib.sha256(f"{VERSION} {kind} {cache.fingerprint(rows)}".encode()).hexdigest()[:24]
    file = home() / FOLDER / f"{key}.npy"

    def write(temporary: Path) -> None:
        features = np.lib.format.open_memmap(temporary, "w+", np.float16, shape)
        flat = features.reshape(-1, shape[-1])
        for row in followed(rows, "local features", "shape", len(cache)):
            start = cache.starts[row]
            flat[start : start + cache.sizes[row]] = stored_local_features(cache.cloud(row), kind)
        features.flush()

    if not file.exists():
        write_atomically(file, write)
    return np.load(file, mmap_mode="r")
