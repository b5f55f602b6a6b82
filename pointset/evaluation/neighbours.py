"""Similar shapes by their embeddings: the nearest ones of a shape, and near-duplicates.

All rows are compared, by scikit-learn. With rows of 128 numbers on two cores, the nearest of 1,000,000 rows (0.5 GB,
2.4 GB at the peak) take about a second, and near-duplicates among 100,000 rows 45 s; their time grows with the square.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.data.catalogue.folders import list_folder
from pointset.errors import PointsetError

SAME_SHAPE = 0.95
"""Share of shapes of which two samplings are at most the threshold for near-duplicates apart."""


@dataclass(frozen=True)
class Pair:
    """Two shapes that may be one."""

    first: int
    second: int
    """Indices of rows; `first` is the smaller one."""
    distance: float
    leak: bool
    """True if one is a training and the other a test shape."""


def nearest(
    rows: Float[ndarray, "N d"], queries: Float[ndarray, "Q d"], count: int
) -> tuple[Float[ndarray, "Q k"], Int[ndarray, "Q k"]]:
    """Euclidean distances and indices of the `count` rows nearest to each query, the nearest first."""
    from sklearn.neighbors import NearestNeighbors

    count = min(count, len(rows))
    distances, indices = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows).kneighbors(queries)
    return distances, indices


def same_shape_distance(first: Float[ndarray, "N d"], second: Float[ndarray, "N d"]) -> float:
    """The distance that two samplings of one shape, row by row, rarely exceed: 95 % quantile."""
    return float(np.quantile(np.linalg.norm(first - second, axis=1), SAME_SHAPE))


def near_duplicates(
    rows: Float[ndarray, "N d"], threshold: float, splits: Sequence[str] = (), count: int = 10
) -> list[Pair]:
    """Pairs of rows at most `threshold` apart: those of training and test shapes first, then the nearest first."""
    splits = splits or [""] * len(rows)
    distances, indices = nearest(rows, rows, count + 1)
    near: dict[tuple[int, int], float] = {}
    for row, column in zip(*np.nonzero(distances <= threshold), strict=True):
        other = int(indices[row, column])
        if other != row:
            near[min(row, other), max(row, other)] = float(distances[row, column])
    pairs = [
        Pair(int(first), int(second), distance, {splits[first], splits[second]} == {"train", "test"})
        for (first, second), distance in near.items()
    ]
    return sorted(pairs, key=lambda pair: (not pair.leak, pair.distance))


def splits_of(folder: Path, names: Sequence[str]) -> list[str]:
    """Return "train", "test" or an empty text for the name of each shape, as `load_dataset` splits the folder."""
    splits: dict[str, str] = {}
    for split in ("train", "test") if folder.is_dir() else ():
        with contextlib.suppress(PointsetError):  # a folder without classes
            splits |= {shape.name: split for shape in list_folder(folder, split).shapes}
    return [splits.get(name, "") for name in names]
