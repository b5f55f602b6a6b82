"""Buckets: every set once, batches of similar sizes, bounds that hold, an epoch again to the last bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pointset.data.batches import collate, epoch_generator
from pointset.data.buckets import SPREAD, BucketSampler, bucketed_batches, buckets
from pointset.data.point_sets import PointSets, Pool
from pointset.errors import PointsetError

SIZES = np.exp2(np.random.default_rng(0).uniform(3, 9, size=150)).astype(np.int64)  # 8 to 511


def shared(sizes=SIZES, seed: int = 0, epoch: int = 0, **bounds) -> list[list[int]]:
    return [batch.tolist() for batch in buckets(sizes, epoch_generator(seed, epoch), **bounds)]


def ragged(sizes=SIZES) -> PointSets:
    """Set i has label i, and all its points on one plane x = i."""
    points = np.random.default_rng(1).standard_normal((sizes.sum(), 3)).astype(np.float32)
    points[:, 0] = np.repeat(np.arange(len(sizes)), sizes)
    names = [f"shape{number}" for number in range(len(sizes))]
    offsets = np.concatenate([[0], sizes.cumsum()])
    pool = Pool(points, names, np.arange(len(sizes)), names, "as released", offsets=offsets)
    return PointSets(pool, 10_000, normalize="none")


@given(
    st.lists(st.integers(0, 100), max_size=30),
    st.one_of(st.none(), st.integers(1, 9)),
    st.one_of(st.none(), st.integers(1, 150)),
)
def test_every_set_is_in_one_batch_and_the_bounds_hold(sizes, batch_size, points):
    if batch_size is None and points is None:
        batch_size = 4
    found = shared(sizes, batch_size=batch_size, points=points)
    assert sorted(number for batch in found for number in batch) == list(range(len(sizes)))
    for batch in found:
        assert 1 <= len(batch) <= (batch_size or len(sizes))
        assert points is None or len(batch) == 1 or sum(sizes[number] for number in batch) <= points


def test_a_bound_on_sets_alone_leaves_one_batch_short():
    assert sorted(len(batch) for batch in shared(batch_size=16)) == [150 % 16] + [16] * (150 // 16)


def test_a_bound_on_points_fills_batches():
    """Every batch but the last of the sorted ones had no room for one set more."""
    found = [SIZES[batch] for batch in shared(points=2000)]
    assert sum(sizes.sum() + sizes.max() * 2**SPREAD <= 2000 for sizes in found) <= 1
    assert min(len(sizes) for sizes in found) <= 4, "few large sets"
    assert max(len(sizes) for sizes in found) >= 40, "many small ones"


def test_batches_hold_similar_sizes():
    for batch in shared(batch_size=10):
        sizes = np.sort(SIZES)
        low, high = np.searchsorted(sizes, [SIZES[batch].min() * 2**SPREAD, SIZES[batch].max() / 2**SPREAD])
        assert high - low <= 10, "sets further apart than the noise, with others between them"
    padded = sum(len(batch) * SIZES[batch].max() for batch in shared(batch_size=10))
    at_random = sum(len(batch) * SIZES[batch].max() for batch in np.split(np.arange(150), 15))
    assert padded < 1.3 * SIZES.sum() < 0.5 * at_random


def test_batches_come_in_no_order_of_size():
    means = np.array([SIZES[batch].mean() for batch in shared(batch_size=4)])
    neighbours = np.corrcoef(means[:-1], means[1:])[0, 1]
    assert abs(neighbours) < 0.5


def test_an_epoch_is_the_same_again_and_the_next_is_made_up_anew():
    first = shared(batch_size=10, epoch=3)
    torch.manual_seed(99)  # global state has no say
    assert shared(batch_size=10, epoch=3) == first
    for other in ((0, 4), (1, 3), (3, 0)):
        found = shared(batch_size=10, seed=other[0], epoch=other[1])
        assert sorted(map(sorted, found)) != sorted(map(sorted, first)), "other batches, not only another order"


def test_sets_of_one_size_are_batched_at_random():
    found = shared([5] * 20, batch_size=4)
    assert [number for batch in found for number in batch] != list(range(20))
    assert sorted(map(sorted, found)) != [list(range(first, first + 4)) for first in range(0, 20, 4)]


def epoch(number: int, **bounds) -> list:
    return list(bucketed_batches(ragged(), seed=0, epoch=number, **bounds))


def test_batches_of_a_data_set_have_its_points_and_labels():
    seen = epoch(0, points=3000)
    assert sorted(torch.cat([batch.labels for batch in seen]).tolist()) == list(range(150))
    for batch in seen:
        mask = torch.ones(batch.points.shape[:2], dtype=torch.bool) if batch.mask is None else batch.mask
        assert mask.sum(1).tolist() == SIZES[batch.labels].tolist()
        assert int(mask.sum()) <= 3000
        torch.testing.assert_close(batch.points[..., 0], batch.labels[:, None] * mask.float())


def test_an_epoch_of_batches_is_the_same_to_the_last_bit():
    first, again, other = (torch.cat([b.points.flatten() for b in epoch(n, batch_size=10)]) for n in (3, 3, 4))
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


def test_a_data_loader_takes_the_sampler():
    data, sampler = ragged(), BucketSampler(SIZES, points=3000, seed=2)
    loader = torch.utils.data.DataLoader(data, batch_sampler=sampler, collate_fn=collate)
    epochs = []
    for number in (0, 0, 1):
        sampler.set_epoch(number)
        epochs.append([batch.labels.tolist() for batch in loader])
        assert len(loader) == len(epochs[-1])
        assert sorted(label for batch in epochs[-1] for label in batch) == list(range(150))
    assert epochs[0] == epochs[1] != epochs[2]
    assert epochs[2] == shared(points=3000, seed=2, epoch=1)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({}, "nothing bounds a batch: give batch_size"),
        ({"batch_size": 0}, "batch_size=0 is too small"),
        ({"points": 0}, "points=0 is too small"),
        ({"batch_size": 4, "points": -3}, "points=-3 is too small"),
    ],
)
def test_wrong_bounds_are_refused(bounds, words):
    with pytest.raises(PointsetError, match=words):
        BucketSampler(SIZES, **bounds)
    with pytest.raises(PointsetError, match=words):
        shared(**bounds)
    with pytest.raises(PointsetError, match=words):
        list(bucketed_batches(ragged(), seed=0, epoch=0, **bounds))
