"""Batches for training and evaluation, and padding for sets of several sizes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pointset.data.augment import Augmentation
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError


class Batch(NamedTuple):
    """Some sets and their classes."""

    points: Tensor
    """[B, n, 3] float32."""
    mask: Tensor | None
    """bool [B, n], True at real points; None when all sets have one size."""
    labels: Tensor
    """int64 [B]."""


def batches(
    dataset: PointSets, batch_size: int, *, seed: int, epoch: int, augment: Augmentation | None = None
) -> Iterator[Batch]:
    """One epoch of training: every shape once, in random order, each a fresh random subset of its pool.

    Order, subsets and augmentation all come from one generator made from (seed, epoch): an epoch that is run
    again is the same to the last bit, whatever ran before it. The last batch is short when the sizes do not
    divide.
    """
    _check(batch_size)
    generator = epoch_generator(seed, epoch)
    order = torch.randperm(len(dataset), generator=generator)
    for rows in order.split(batch_size):
        points = dataset.draw(rows, generator)
        if augment is not None:
            points = augment(points, generator)
        yield Batch(points, None, dataset.labels[rows])


def fixed_batches(dataset: PointSets, batch_size: int) -> Iterator[Batch]:
    """The evaluation view: every shape once, in order, each as its fixed seeded subset."""
    _check(batch_size)
    for points, labels in zip(dataset.points.split(batch_size), dataset.labels.split(batch_size), strict=True):
        yield Batch(points, None, labels)


def epoch_generator(seed: int, epoch: int) -> torch.Generator:
    """A generator on the CPU for one epoch of one run; neighbouring pairs give unrelated streams."""
    mixed = np.random.SeedSequence((seed, epoch)).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(mixed >> 1))


def pad_sets(sets: Sequence[Tensor]) -> tuple[Tensor, Tensor | None]:
    """Lay sets of several sizes side by side.

    Args:
        sets: B tensors [n_i, 3] of one type; n_i = 0 is allowed.

    Returns:
        points [B, n, 3] with n the largest n_i and zeros in the padded rows, and mask bool [B, n], True at
        real points, or None when all sets have one size.

    Raises:
        PointsetError: there is no set, or one is not [n_i, 3].
    """
    if not sets:
        raise PointsetError("there is no set to pad: give at least one")
    for index, points in enumerate(sets):
        if points.dim() != 2 or points.shape[1] != 3:
            raise PointsetError(f"set {index} must be [n, 3], got {list(points.shape)}")
    padded = torch.nn.utils.rnn.pad_sequence(list(sets), batch_first=True)
    sizes = torch.tensor([len(points) for points in sets], device=padded.device)
    if int(sizes.min()) == int(sizes.max()):
        return padded, None
    return padded, torch.arange(padded.shape[1], device=padded.device) < sizes[:, None]


def _check(batch_size: int) -> None:
    if batch_size < 1:
        raise PointsetError(f"batch_size={batch_size} is too small: give at least 1")
