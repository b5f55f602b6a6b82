"""Batches for training and evaluation. Sets of different sizes are padded and masked."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pointset.data.mixing import CutMix
from pointset.data.point_sets import PointSets
from pointset.data.transforms import Augmentation
from pointset.runs.workers import torch_threads

SORTED_TOGETHER = 16
"""Number of batches whose sets are sorted by size together, see `batches_of_rows`."""


class Batch(NamedTuple):
    """A batch of sets and their labels."""

    points: Tensor
    """[B, n, d] float32; d is 3, or more with features."""
    mask: Tensor | None
    """bool [B, n], True at real points; None when all sets have the same size."""
    labels: Tensor
    """int64 [B]."""
    others: Tensor | None = None
    """int64 [B], label of the shape from which `CutMix` inserted points into each set; None without CutMix."""
    shares: Tensor | None = None
    """float32 [B], share of the points of each set that come from this other shape; 0 for an unmixed set."""


def batches(
    dataset: PointSets,
    batch_size: int,
    *,
    seed: int,
    epoch: int,
    augment: Augmentation | None = None,
    size: Callable[[int], int] | None = None,
    mix: CutMix | None = None,
) -> Iterator[Batch]:
    """Yield the batches of a training epoch: every shape once, in random order, as a new random subset of its points.

    Order, subsets and augmentation come from one generator seeded with (seed, epoch), so an epoch can be repeated bit
    for bit. One batch may be smaller than the others. If the sizes of sets differ, a batch has sets of similar size.
    `size(i)` is the number of points per set in batch i, counted from 0. `mix` is applied after `augment`.
    """
    generator = epoch_generator(seed, epoch)
    for index, rows in enumerate(batches_of_rows(torch.from_numpy(dataset.sizes), batch_size, generator)):
        with torch_threads(1):  # for one batch, synchronising threads takes longer than the work
            points, mask = dataset.points_at(dataset.draw_indices(rows, generator, size and size(index)))
            if augment is not None:
                points = augment(points, generator, mask, columns=dataset.columns)
            labels = dataset.labels[rows]
            batch = Batch(points, mask, labels)
            if mix is not None:
                mixed = mix(points, generator, mask)
                batch = Batch(mixed.points, mask, labels, labels[mixed.partners], mixed.shares)
        yield batch


def batches_of_rows(sizes: Tensor, batch_size: int, generator: torch.Generator) -> list[Tensor]:
    """Return the indices of the sets in each batch of an epoch, in random order.

    If the sizes [N] of the sets differ, the random order is divided into windows of `SORTED_TOGETHER` batches. Each
    window is sorted by size and cut into batches, which saves most of the padding. Then the batches are shuffled.
    """
    order = torch.randperm(len(sizes), generator=generator)
    if len(sizes) == 0 or bool((sizes == sizes[0]).all()):
        return list(order.split(batch_size))
    windows = [window[sizes[window].argsort(stable=True)] for window in order.split(SORTED_TOGETHER * batch_size)]
    cut = [rows for window in windows for rows in window.split(batch_size)]
    return [cut[index] for index in torch.randperm(len(cut), generator=generator).tolist()]


def fixed_batches(dataset: PointSets, batch_size: int) -> Iterator[Batch]:
    """Yield the batches of an evaluation: every shape once, in order, as its fixed subset of points."""
    whole, sizes = dataset.mask, dataset.sizes
    for rows in torch.arange(len(dataset)).split(batch_size):
        block = slice(int(rows[0]), int(rows[-1]) + 1)
        longest = int(sizes[block].max())
        points, mask = dataset.points[block, :longest], None if whole is None else whole[block, :longest]
        yield Batch(points, None if mask is None or mask.all() else mask, dataset.labels[block])


def epoch_generator(seed: int, epoch: int) -> torch.Generator:
    """Return the CPU generator of one epoch of a training run."""
    return torch.Generator().manual_seed(mixed_seed(seed, epoch))


def mixed_seed(*key: int) -> int:
    """Return a seed for torch from several integers. Similar integers give unrelated random numbers."""
    return int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> np.uint64(1))
