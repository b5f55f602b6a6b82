"""Properties of all corruptions."""

import numpy as np
import pytest
import torch
from corruption_cases import clouds, corrupt_sphere, seeded

from pointset.data.catalogue.cards import load_card
from pointset.evaluation.corruptions import (
    CORRUPTIONS,
    MODELNET40_C,
    SEVERITIES,
    corrupt,
    list_corruptions,
)

pytestmark = pytest.mark.usefixtures("single_thread")

EVERY = sorted(CORRUPTIONS)


def test_the_benchmarks_corruptions_are_all_there():
    without = {"occlusion", "lidar", "original"}
    assert set(MODELNET40_C) == set(load_card("modelnet40-c").variants) - without
    assert set(list_corruptions()) == {*MODELNET40_C, "drop_global", "drop_local"}
    assert all(len(CORRUPTIONS[name].levels) == 5 and CORRUPTIONS[name].name == name for name in EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_the_generator_decides_everything_and_the_input_is_left_alone(name):
    points = clouds(3, 50)
    before, state = points.clone(), torch.get_rng_state()
    first, again, other = (corrupt_sphere(points, name, 3, seeded(seed)) for seed in (4, 4, 5))
    assert torch.equal(first, again)
    assert first.shape == other.shape
    assert not torch.equal(first, other)
    assert torch.equal(points, before)
    assert torch.equal(torch.get_rng_state(), state)
    assert first.dtype == points.dtype
    assert corrupt_sphere(points.double(), name, 3, seeded()).dtype == torch.float64


@pytest.mark.parametrize("name", EVERY)
def test_clouds_of_a_batch_are_corrupted_differently(name):
    same = clouds(1, 60).expand(4, -1, -1)
    changed = corrupt_sphere(same, name, 5, seeded())
    assert (changed != changed[:1]).any()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 100])
def test_small_clouds_keep_at_least_a_point(name, n):
    for severity in SEVERITIES:
        changed = corrupt_sphere(clouds(2, 100)[:, :n], name, severity, seeded())
        assert changed.shape[0] == 2
        assert 1 <= changed.shape[1] <= 2 * n + 1
        assert changed.isfinite().all()


@pytest.mark.parametrize("name", EVERY)
def test_no_clouds_and_points_on_one_spot_are_fine(name):
    assert (
        corrupt_sphere(torch.zeros(0, 64, 3), name, 2, seeded()).shape
        == corrupt_sphere(clouds(1, 64), name, 2, seeded())[:0].shape
    )
    assert corrupt_sphere(torch.zeros(2, 64, 3), name, 2, seeded()).isfinite().all()


@pytest.mark.parametrize("name", EVERY)
def test_clouds_of_any_place_and_size_are_corrupted_in_the_frame_of_the_benchmarks(name):
    unit = clouds(2, 64).double()
    unit = unit - unit.mean(dim=1, keepdim=True)
    unit = unit / unit.norm(dim=2).amax(dim=1)[:, None, None]
    expected = corrupt_sphere(unit, name, 4, seeded(7))
    found = corrupt((10 * unit + 3).numpy(), name, 4, 7, up="y")
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose((found - 3) / 10, expected.numpy(), atol=1e-9)
