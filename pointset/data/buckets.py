"""Batches of sets of similar sizes, in random order: little padding, and a bound on the points of a batch."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Sampler

from pointset.data.augment import Augmentation
from pointset.data.batches import Batch, draw_batches, epoch_generator
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError

SPREAD = 0.25
"""Sizes are sorted with random numbers up to this added to their logarithms to base 2. Sets so far apart, a factor of
1.19, change places from epoch to epoch, so that batches are made up anew each time."""


def buckets(
    sizes: Sequence[int] | NDArray[np.int64],
    generator: torch.Generator,
    *,
    batch_size: int | None = None,
    points: int | None = None,
) -> list[Tensor]:
    """Share sets out among batches of similar sizes, every set once; the batches are in random order.

    Args:
        sizes: points of each set.
        generator: on the CPU; the only source of randomness.
        batch_size: most sets of a batch. With this bound alone all batches but one have so many.
        points: most points of a batch, the sets' own and not those of padding. A set with more is a batch by itself.

    Returns:
        indices of the sets of each batch, int64.

    Raises:
        PointsetError: neither bound is given, or one is below 1.
    """
    _check(batch_size, points)
    counts = torch.as_tensor(np.asarray(sizes, dtype=np.int64))
    noise = torch.rand(len(counts), generator=generator, dtype=torch.float64)
    order = torch.argsort(counts.clamp(min=1).log2() + SPREAD * noise)
    batches = order.split(_lengths(counts[order].tolist(), batch_size, points))
    return [batches[place] for place in torch.randperm(len(batches), generator=generator).tolist()]


def _lengths(sizes: list[int], batch_size: int | None, points: int | None) -> list[int]:
    """Sets of each batch, when as many as fit are taken in turn."""
    lengths: list[int] = []
    total = 0
    for size in sizes:
        total += size
        full = not lengths or lengths[-1] == batch_size or (points is not None and total > points)
        if full:
            lengths.append(0)
            total = size
        lengths[-1] += 1
    return lengths


def _check(batch_size: int | None, points: int | None) -> None:
    if batch_size is None and points is None:
        raise PointsetError("nothing bounds a batch: give batch_size (sets), points, or both")
    for name, bound in (("batch_size", batch_size), ("points", points)):
        if bound is not None and bound < 1:
            raise PointsetError(f"{name}={bound} is too small: give at least 1")


def bucketed_batches(
    dataset: PointSets,
    *,
    batch_size: int | None = None,
    points: int | None = None,
    seed: int,
    epoch: int,
    augment: Augmentation | None = None,
) -> Iterator[Batch]:
    """One epoch of training like `batches`, but of batches of similar sizes; see `buckets` for the two bounds.

    Everything random comes from (seed, epoch), as there.
    """
    generator = epoch_generator(seed, epoch)
    return draw_batches(
        dataset, buckets(dataset.sizes, generator, batch_size=batch_size, points=points), generator, augment
    )


class BucketSampler(Sampler[list[int]]):
    """`buckets` for torch: `DataLoader(sets, batch_sampler=BucketSampler(sets.sizes, ...), collate_fn=collate)`.

    Every pass makes the batches of the current epoch; `set_epoch` says which that is, as for torch's
    `DistributedSampler`, and an epoch that is run again has the same batches.

    Args:
        sizes: points of each set.
        batch_size: most sets of a batch.
        points: most points of a batch.
        seed: of the batches, together with the epoch.

    Raises:
        PointsetError: neither bound is given, or one is below 1.
    """

    def __init__(
        self,
        sizes: Sequence[int] | NDArray[np.int64],
        *,
        batch_size: int | None = None,
        points: int | None = None,
        seed: int = 0,
    ) -> None:
        _check(batch_size, points)
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.batch_size, self.points, self.seed, self.epoch = batch_size, points, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass that of another epoch."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[list[int]]:
        return (batch.tolist() for batch in self._buckets())

    def __len__(self) -> int:
        return len(self._buckets())

    def _buckets(self) -> list[Tensor]:
        generator = epoch_generator(self.seed, self.epoch)
        return buckets(self.sizes, generator, batch_size=self.batch_size, points=self.points)
