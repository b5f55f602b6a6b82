"""Point caches: the points of shapes, in memory or on disk, and the subsets that are drawn from them."""

import functools
import hashlib
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pointset.data.axes import rotate_up
from pointset.data.sampling import seed_for
from pointset.errors import PointsetError, quoted

LOOKED_AT = 64
"""Maximum number of shapes that `PointCache.is_centred` examines."""
LARGEST_COORDINATE = 1e4
"""Largest coordinate that is accepted without normalisation: on larger ones, training is expected to fail."""
CENTRED = 0.05
"""Maximum distance of a centred shape's mean from the origin along an axis, in standard deviations of its points."""


@dataclass(eq=False)
class PointCache:
    """Points of shapes, from which sets are drawn.

    A memory-mapped array is pickled as the path of its file, so that worker processes share the file.
    """

    points: NDArray[np.float32]
    """[M, P, 3] for M shapes of P points. A ragged cache has `offsets` and [T, 3], all shapes concatenated."""
    names: list[str]
    """[M], unique, because a name seeds the fixed subset of its shape."""
    labels: NDArray[np.int64]
    """[M], indices into `classes`."""
    classes: list[str]
    """Names of the classes, in the order of the labels."""
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """Other values of each point, by name: unit "normals" (3) and "features" (f), [M, P, ...] or [T, ...]."""
    checksums: tuple[str, ...] = ()
    """[M], BLAKE2b digest of each shape's points, from a manifest; empty without one."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """The shapes that could not be used and are not in the cache, by name, and the reason for each."""
    remarks: str = ""
    """The warnings that were given while files were read, such as those about removed points."""
    offsets: NDArray[np.int64] | None = None
    """[M + 1] for a ragged cache: shape i is `points[offsets[i]:offsets[i + 1]]`. None if all shapes have P points."""

    def __post_init__(self) -> None:
        # Every draw from an array that is not contiguous would copy the whole array.
        self.points = np.require(self.points, requirements="C")
        self.arrays = {name: np.require(array, requirements="C") for name, array in self.arrays.items()}
        for row in np.flatnonzero((self.labels < 0) | (self.labels >= len(self.classes)))[:1].tolist():
            raise PointsetError(
                f"shape {quoted(self.names[row])} has label {self.labels[row]}, but there are {len(self.classes)} "
                "classes, counted from 0: correct the labels"
            )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The points and the other arrays, by name."""
        return {"points": self.points, **self.arrays}

    def with_columns(self, columns: Mapping[str, NDArray[Any]], **fields: Any) -> "PointCache":
        """Return a copy of the cache that has these columns and `fields` instead."""
        arrays = {name: array for name, array in columns.items() if name != "points"}
        return replace(self, points=columns["points"], arrays=arrays, checksums=(), **fields)

    def rotated(self, axes: Sequence[str], up: str) -> "PointCache":
        """Return the cache with all shapes rotated from their upward directions `axes` [M] to the upward axis `up`."""
        if {*axes} <= {up}:
            return self
        columns = self.columns
        for now in {*axes} - {up}:
            rows = np.repeat([axis == now for axis in axes], self.sizes)
            for name in {"points", "normals"} & {*columns}:
                flat = np.array(columns[name]).reshape(-1, 3)
                flat[rows] = rotate_up(flat[rows], now, up)
                columns[name] = flat.reshape(columns[name].shape)
        return self.with_columns(columns)

    @functools.cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of points of each shape, [M]."""
        if self.offsets is None:
            return np.full(len(self.names), self.points.shape[1], np.int64)
        return np.diff(self.offsets)

    @functools.cached_property
    def starts(self) -> NDArray[np.int64]:
        """Index of each shape's first point among all points, [M]."""
        return self.sizes.cumsum() - self.sizes

    def take(self, where: NDArray[np.int64], array: str = "points") -> NDArray[Any]:
        """Return rows [S, ...] of the points, or of one of the `arrays`, at the indices `where` [S] into all points."""
        source = self.columns[array]
        return source.view(np.ndarray).reshape(-1, *source.shape[self.points.ndim - 1 :]).take(where, axis=0)

    def cloud(self, row: int, array: str = "points") -> NDArray[Any]:
        """Return all points [n, 3] of one shape, or their values [n, ...] in one of the `arrays`."""
        return self.take(self.starts[row] + np.arange(self.sizes[row]), array)

    def is_centred(self, rows: NDArray[np.int64]) -> bool:
        """Return True if the means of these shapes are at the origin. Only some of the shapes are examined."""
        some = rows[:: -(-len(rows) // LOOKED_AT)] if len(rows) else rows
        for row in some[self.sizes[some] > 0].tolist():
            points = self.cloud(row).astype(np.float64)
            mean = points.mean(axis=0)
            if not np.abs(mean).max() <= CENTRED * (points - mean).std():
                return False
        return len(some) > 0

    def fault(self, rows: Sequence[int], how: str) -> str:
        """Return a message about the first shape that the normalisation `how` cannot use, or "" if there is none."""
        for row in rows:
            largest, name = float(np.abs(self.cloud(row)).max(initial=0.0)), quoted(self.names[row])
            if not np.isfinite(largest):
                return f"shape {name} has a coordinate that is not finite: correct it, or leave the shape out"
            if how == "none" and largest > LARGEST_COORDINATE:
                return (
                    f"shape {name} has coordinates of {largest:.3g}, and they are not normalised: choose normalize "
                    "'unit-sphere' or 'standardize'"
                )
        return ""

    def digest(self, row: int, array: str = "points") -> str:
        """Return a BLAKE2b hash of the points of one shape, or of their values in one of the `arrays`."""
        if array == "points" and self.checksums:
            return self.checksums[row]
        block = self.cloud(row, array)
        return digest_of(block.astype("<f4" if block.dtype.kind == "f" else block.dtype.newbyteorder("<"), copy=False))

    def fingerprint(self, rows: Sequence[int], beside: Sequence[str] = ()) -> str:
        """Return a hash of the classes and of the shapes' names, labels, points and the arrays `beside`, in order."""
        digest = hashlib.sha256("\0".join(self.classes).encode())
        for row in rows:
            digest.update(f"\n{self.names[row]}\0{self.labels[row]}\0{self.digest(row)}".encode())
            digest.update("".join(f"\0{array}\0{self.digest(row, array)}" for array in beside).encode())
        return digest.hexdigest()[:16]

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        arrays = {name: _stored(array) for name, array in self.arrays.items()}
        return {**fields, "points": _stored(self.points), "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        make, how = state["points"]
        arrays = {name: make(*how) for name, (make, how) in state["arrays"].items()}
        self.__dict__.update({**state, "points": make(*how), "arrays": arrays})


def one_width(what: str, widths: Mapping[str, int]) -> int:
    """Return the only value of `widths`, numbers of columns by shape name; a PointsetError if there are several."""
    (first, width), *others = widths.items()
    for name, other in others:
        if other != width:
            raise PointsetError(
                f"{what} have {width} columns in {quoted(first)} and {other} in {quoted(name)}: make them equal"
            )
    return width


def digest_of(array: NDArray[Any]) -> str:
    """Return a BLAKE2b hash of the values of an array."""
    return hashlib.blake2b(np.ascontiguousarray(array).data, digest_size=16).hexdigest()


def _stored(array: NDArray[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function and arguments that recreate an array, from its file if it is a whole read-only memory map."""
    if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap) and not array.flags.writeable:
        return np.memmap, (array.filename, array.dtype, "r", array.offset, array.shape)
    return np.asarray, (array,)


Indices = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Indices [S] into all points of a cache, for one set after another, and the sizes [B] of the sets, with sum S."""


def random_indices(cache: PointCache, rows: NDArray[np.int64], size: int, generator: torch.Generator) -> Indices:
    """Draw a random subset of `size` points of each shape in rows [B] of a cache. A smaller shape is used whole."""
    if cache.offsets is None:
        chosen = list(random_subsets(cache.points.shape[1], size, len(rows), generator))
    else:
        chosen = [random_subsets(have, min(have, size), 1, generator)[0] for have in cache.sizes[rows].tolist()]
    return _among_all(cache, rows, chosen)


def fixed_indices(cache: PointCache, rows: NDArray[np.int64], size: int, seed: int) -> Indices:
    """Return the fixed subset of each shape, which depends only on the seed and the shape's name.

    A subset is the start of a permutation, so a smaller subset is contained in a larger one.
    """
    generators = [np.random.default_rng(seed_for(seed, cache.names[row])) for row in rows.tolist()]
    each = zip(generators, cache.sizes[rows].tolist(), strict=True)
    return _among_all(cache, rows, [rng.permutation(have)[:size] for rng, have in each])


def _among_all(cache: PointCache, rows: NDArray[np.int64], chosen: Sequence[NDArray[np.int64]]) -> Indices:
    """Return the indices into all points of the cache from the indices that are chosen within each shape."""
    sizes = np.array([len(own) for own in chosen], np.int64)
    return np.repeat(cache.starts[rows], sizes) + np.concatenate([np.empty(0, np.int64), *chosen]), sizes


def random_subsets(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Return independent, uniform random subsets of range(available) of size `count`, int64 [sets, count].

    Numbers are drawn with replacement and repeats are dropped, so the cost grows with `count` and not with `available`.
    For more than half of the range, the complement is drawn. All arithmetic is in integers, so the result does not
    depend on the number of threads.
    """
    if 2 * count <= available:
        return _distinct(available, count, sets, generator)
    kept = np.ones((sets, available), dtype=bool)
    np.put_along_axis(kept, _distinct(available, available - count, sets, generator), False, axis=1)
    return kept.nonzero()[1].reshape(sets, count)


def _distinct(available: int, count: int, sets: int, generator: torch.Generator) -> NDArray[np.int64]:
    """Return the first `count` distinct numbers of a random sequence below `available`, for `sets` sequences."""
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
    """Return a mask [sets, draws], True where a number occurs for the first time in its row."""
    sets, draws = drawn.shape
    cell = drawn + np.arange(sets)[:, None] * available
    kind = np.min_scalar_type(draws)  # a small table stays in the processor's cache
    position = np.broadcast_to(np.arange(draws, dtype=kind), drawn.shape)
    first = np.empty(sets * available, dtype=kind)
    # Written from the last position to the first, so that each cell keeps the first position of its number.
    first[cell[:, ::-1].ravel()] = position[:, ::-1].ravel()
    return first[cell] == position
