"""Point sets that a model trains on and is measured on, drawn from pools of points."""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from pointset.data.augment import Axis
from pointset.data.normalize import normalization
from pointset.data.sampling import seed_for
from pointset.errors import PointsetError


@dataclass(frozen=True, eq=False)
class Pool:
    """More points per shape than a set needs, to draw sets from."""

    points: NDArray[np.float32]
    """[M, P, 3]; in memory, or mapped from disk."""
    names: list[str]
    """[M], unique: they seed the fixed subsets."""
    labels: NDArray[np.int64]
    """[M], indices into `classes`."""
    classes: list[str]
    sampler: str
    """How the points were chosen on the surfaces."""
    normals: NDArray[np.float32] | None = None
    """[M, P, 3], unit normals of the surface at the points, if they were kept."""
    checksums: tuple[str, ...] = ()
    """[M], BLAKE2b of each shape's points, where they are known already."""
    skipped: tuple[str, ...] = ()
    """Names of shapes that the data set has and the pool lacks, because their meshes could not be used."""

    def checksum(self, row: int) -> str:
        """BLAKE2b of the points of one shape."""
        if self.checksums:
            return self.checksums[row]
        return hashlib.blake2b(np.ascontiguousarray(self.points[row]).data, digest_size=16).hexdigest()


class PointSets(Dataset[tuple[Tensor, int]]):
    """Shapes as point sets of one size, each a subset of its pool of points.

    The evaluation view (`points`, `dataset[i]`) is one fixed subset per shape, which depends on the seed and
    the shape's name alone. The training view (`draw`) is a fresh random subset each time. Both are normalised
    after the subset is taken, so no model sees more of a shape than the points it is given.

    Attributes:
        name: the card's or the folder's.
        source: what `load_dataset` finds the data by again: the card's name, or the folder's path.
        split: "train", "test", "validation", ...
        classes: names of the classes, in the order of the labels.
        labels: int64 [N].
        names: N unique names of shapes.
        size: points per set, n.
        pool: float32 [M, P, 3], shared with other views of the same data: shape i is `pool[rows[i]]`.
        rows: int64 [N].
        up: the axis that points up, "y" or "z".
    """

    def __init__(
        self,
        pool: Pool,
        size: int,
        *,
        name: str = "",
        source: str = "",
        split: str = "train",
        normalize: str = "unit-sphere",
        seed: int = 0,
        split_seed: int = 0,
        up: Axis = "z",
        rows: Tensor | None = None,
    ) -> None:
        """Make a view of a pool; `load_dataset` does it from a name.

        Raises:
            PointsetError: the pool holds fewer points than asked for, or the normalisation is unknown.
        """
        available = pool.points.shape[1]
        if size < 1:
            raise PointsetError(f"points={size} makes no set: ask for at least 1 point per shape")
        if size > available:
            raise PointsetError(
                f"points={size} is more than the {available} that {name or 'the data'} holds per shape: "
                "ask for fewer, or, from meshes, for a larger pool (pool_points)"
            )
        self._source = pool
        self._normalize = normalization(normalize)
        self._normalize_name = normalize
        self.source = source or name
        self.name, self.split, self.size, self.seed, self.up = name, split, size, seed, up
        self.split_seed = split_seed
        self.rows = torch.arange(len(pool.points)) if rows is None else rows
        self.pool = pool.points
        self.classes = pool.classes
        self.labels = torch.from_numpy(pool.labels)[self.rows]
        self.names = [pool.names[row] for row in self.rows.tolist()]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """Shape `index` of the evaluation view: points [n, 3] and label."""
        return self.points[index], int(self.labels[index])

    @functools.cached_property
    def points(self) -> Tensor:
        """The evaluation view, float32 [N, n, 3]; made at first use."""
        chosen = np.array([self._fixed_choice(name) for name in self.names], np.int64).reshape(-1, self.size)
        return self._take(self.rows.numpy(), chosen)

    def draw(self, indices: Tensor | Sequence[int], generator: torch.Generator) -> Tensor:
        """The training view: a fresh random subset of each shape's pool, without replacement.

        Args:
            indices: int64 [B], of shapes of this data set.
            generator: on the CPU; the only source of randomness.

        Returns:
            float32 [B, n, 3], normalised.
        """
        rows = self.rows[torch.as_tensor(indices, dtype=torch.int64)].numpy()
        available = self.pool.shape[1]
        chosen = [torch.randperm(available, generator=generator)[: self.size].numpy() for _ in rows]
        return self._take(rows, np.array(chosen, np.int64).reshape(-1, self.size))

    def subset(self, indices: Tensor | Sequence[int], split: str | None = None) -> "PointSets":
        """The shapes at `indices`, in that order, as a data set of its own that shares the pool."""
        rows = self.rows[torch.as_tensor(indices, dtype=torch.int64)]
        return self._view(rows, split or self.split)

    def split_validation(self, fraction: float, seed: int) -> tuple["PointSets", "PointSets"]:
        """Cut a validation set, class by class, that shares no shape with what remains for training.

        Of a class of c shapes round(fraction * c) go to validation, but at least one stays in training.

        Args:
            fraction: above 0 and below 1.
            seed: which shapes; the same seed gives the same cut.

        Returns:
            (training, validation), both in the order of this data set.

        Raises:
            PointsetError: the fraction is out of range, or so small that validation would be empty.
        """
        if not 0.0 < fraction < 1.0:
            raise PointsetError(f"fraction={fraction} is no share to hold out: give a number between 0 and 1")
        rng = np.random.default_rng((seed, _VALIDATION_STREAM))
        held_out = np.zeros(len(self), dtype=bool)
        labels = self.labels.numpy()
        for label in range(len(self.classes)):
            members = rng.permutation(np.flatnonzero(labels == label))
            held_out[members[: min(round(fraction * len(members)), len(members) - 1)]] = True
        if not held_out.any():
            raise PointsetError(f"fraction={fraction} of {len(self)} shapes holds none out: give a larger fraction")
        train, validation = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        return self.subset(torch.from_numpy(train)), self.subset(torch.from_numpy(validation), "validation")

    def describe(self) -> dict[str, Any]:
        """What to save beside a result, as plain data."""
        return {
            "name": self.name,
            "source": self.source,
            "split": self.split,
            "shapes": len(self),
            "skipped": len(self._source.skipped),
            "classes": list(self.classes),
            "points": self.size,
            "pool": self.pool.shape[1],
            "normalize": self._normalize_name,
            "sampler": self._source.sampler,
            "seed": self.seed,
            "split_seed": self.split_seed,
            "up": self.up,
            "fingerprint": self.fingerprint,
        }

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of what the sets are drawn from: names, classes and pools of all shapes, in order.

        It is the same wherever the data lies, and another as soon as a shape, a class or a point changes.
        """
        found = hashlib.sha256()
        for name, label, row in zip(self.names, self.labels.tolist(), self.rows.tolist(), strict=True):
            found.update(f"{name}\0{self.classes[label]}\0{self._source.checksum(row)}\n".encode())
        return found.hexdigest()[:16]

    def _view(self, rows: Tensor, split: str) -> "PointSets":
        return PointSets(
            self._source,
            self.size,
            name=self.name,
            source=self.source,
            split=split,
            normalize=self._normalize_name,
            seed=self.seed,
            split_seed=self.split_seed,
            up=self.up,
            rows=rows,
        )

    def _fixed_choice(self, name: str) -> NDArray[np.int64]:
        """A prefix of one permutation per shape: fewer points are a subset of more."""
        rng = np.random.default_rng(seed_for(self.seed, name))
        return rng.permutation(self.pool.shape[1])[: self.size]

    def _take(self, rows: NDArray[np.int64], chosen: NDArray[np.int64]) -> Tensor:
        """Points `chosen` [B, n] of the pool's `rows` [B], normalised: [B, n, 3]."""
        return self._normalize(torch.from_numpy(self.pool[rows[:, None], chosen]), None)


_VALIDATION_STREAM = 1
"""Keeps the validation cut apart from other uses of the same seed."""
