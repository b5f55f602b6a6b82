"""Batches: each shape once, bitwise repeatable epochs, padding."""

import numpy as np
import torch

from pointset.data.batches import batches, epoch_generator
from pointset.data.mixing import augmentation_from_names
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool


def numbered(shapes: int = 23) -> PointSets:
    """Shape i has label i, and all its points are in the plane x = i."""
    points = np.random.default_rng(0).standard_normal((shapes, 11, 3)).astype(np.float32)
    points[..., 0] = np.arange(shapes)[:, None]
    names = [f"shape{row}" for row in range(shapes)]
    return PointSets(Pool(points, names, np.arange(shapes), names, "uniform"), DataOptions(points=5, normalize="none"))


def test_an_epoch_has_every_shape_once_with_its_label_and_a_short_last_batch() -> None:
    seen = list(batches(numbered(), 5, seed=0, epoch=0))
    assert [len(batch.labels) for batch in seen] == [5, 5, 5, 5, 3]
    labels = torch.cat([batch.labels for batch in seen])
    assert sorted(labels.tolist()) == list(range(23))
    assert labels.tolist() != list(range(23))
    for batch in seen:
        assert batch.points.shape == (len(batch.labels), 5, 3)
        assert batch.mask is None
        torch.testing.assert_close(batch.points[..., 0], batch.labels[:, None].expand(-1, 5).float())


def epoch(seed: int, number: int) -> torch.Tensor:
    augment = augmentation_from_names(("scale", "jitter", "rotate-up"))
    return torch.cat([b.points for b in batches(numbered(), 5, seed=seed, epoch=number, augment=augment)])


def test_the_same_epoch_is_the_same_to_the_last_bit_and_others_are_not() -> None:
    first = epoch(0, 3)
    torch.manual_seed(99)  # global state has no say
    assert torch.equal(first, epoch(0, 3))
    for other in ((0, 4), (1, 3), (3, 0)):
        assert not torch.equal(first, epoch(*other))


def test_epochs_mix_seed_and_number_the_same_way_on_every_machine() -> None:
    draws = torch.randint(2**31, (2,), generator=epoch_generator(1, 2)).tolist()
    assert draws == torch.randint(2**31, (2,), generator=epoch_generator(1, 2)).tolist()
    generators = {epoch_generator(seed, number).initial_seed() for seed in range(20) for number in range(20)}
    assert len(generators) == 400
    assert epoch_generator(1, 2).initial_seed() == 7764949442709860949
