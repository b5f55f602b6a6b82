"""Errors of models on corrupted clouds and on fewer points."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from toy import Recorder, random_cache

import pointset
from pointset import DataOptions, PointsetError, PointSets
from pointset.data.normalize import normalize_points
from pointset.evaluation import Robustness, accuracy_by_size, corrupted_sets, robustness


def sets(shapes: int = 11, points: int = 96, size: int = 48, **options: Any) -> PointSets:
    """Shapes far from the origin and of all sizes, in two classes."""
    source, rng = random_cache(shapes, classes=2, points=points), np.random.default_rng(3)
    moved = source.points * rng.uniform(1, 9, (shapes, 1, 3)) + rng.uniform(-50, 50, (shapes, 1, 3))
    source = dataclasses.replace(source, points=moved.astype(np.float32))
    usual = {"points": size, "normalize": "unit-sphere", "up": "y"}
    return PointSets(source, DataOptions(**usual | options), name="toys", split="test")


class Counter(nn.Module):
    """Classifies clouds by whether they have an odd number of points, so that logits show the size of the input."""

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        count = torch.full((len(points),), points.shape[1]) if mask is None else mask.sum(1)
        return torch.stack([1 - count % 2, count % 2], dim=1).float()


class Sharp(nn.Module):
    """A classifier so sensitive to its points that every corruption changes its predictions."""

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        waves = (points * 40).sin().sum((1, 2))
        return torch.stack([waves, -waves], dim=1)


@pytest.mark.parametrize("normalize", ["unit-sphere", "standardize", "none"])
def test_clouds_are_corrupted_in_the_unit_sphere_and_then_normalised(normalize):
    data = sets(normalize=normalize)
    noisy = corrupted_sets(data, "uniform", 5, seed=2)
    assert torch.equal(noisy.labels, data.labels)
    assert (noisy.names, noisy.classes, noisy.split, noisy.up) == (data.names, data.classes, data.split, data.up)
    limits = []
    for before, after in zip(data.points, noisy.points, strict=True):
        radius = (before - before.mean(0)).norm(dim=1).max()
        if normalize == "none":
            limits.append(float(torch.cdist(before, after).amin(1).max() / radius))
        else:
            assert torch.allclose(normalize_points(after[None], normalize)[0], after, atol=1e-5)
            assert 0 < torch.cdist(before, after).amin(1).max() / radius < 0.2
    assert all(0.03 < limit < 0.05 * 3**0.5 for limit in limits), "5 % of the radius along each axis"


@pytest.mark.parametrize(("up", "axis"), [("y", 1), ("z", 2)])
def test_shear_leaves_heights_alone_whatever_axis_is_up(up, axis):
    data = sets(normalize="none", up=up)
    for after, before in zip(corrupted_sets(data, "shear", 5).points, data.points, strict=True):
        moved = (after.sort(dim=0).values - before.sort(dim=0).values).abs().amax(dim=0)
        assert moved[axis] < 1e-3
        assert sorted(moved)[1] > 0.05


def test_local_density_needs_twice_the_points_and_takes_them_from_the_cache():
    wide, narrow = sets(points=96), sets(points=95)
    given = [corrupted_sets(data, "density_inc", 3) for data in (wide, narrow)]
    assert [found.size for found in given] == [48, 24]
    assert wide.size == 48  # left as it was
    assert wide.points.shape == (11, 48, 3)


def test_sets_of_several_sizes_are_corrupted_each_at_its_own():
    sizes = np.array([30, 48, 7, 48, 30, 100])
    offsets, flat = np.concatenate([[0], sizes.cumsum()]), random_cache(1, points=sizes.sum()).points[0]
    data = PointSets(dataclasses.replace(random_cache(6, 2), points=flat, offsets=offsets), DataOptions(points=48))
    changed = corrupted_sets(data, "drop_global", 3)  # half of each
    assert changed.sizes.tolist() == [15, 24, 3, 24, 15, 24]
    assert corrupted_sets(data, "upsampling", 5).sizes.tolist() == [60, 96, 14, 96, 60, 96]
    assert pointset.evaluate(Counter(), changed).predictions.tolist() == [1, 0, 1, 0, 1, 0]


def test_errors_are_those_of_the_corrupted_clouds_and_batches_do_not_matter():
    data = sets(shapes=21)
    found = robustness(Sharp(), data, ["gaussian", "cutout"], [1, 4], seed=5)
    assert list(found.errors) == ["gaussian", "cutout"]
    assert [list(by) for by in found.errors.values()] == [[1, 4], [1, 4]]
    assert found.clean_error == 1 - pointset.evaluate(Sharp(), data).accuracy
    for name, by in found.errors.items():
        for severity, error in by.items():
            changed = corrupted_sets(data, name, severity, seed=5)
            logits = Sharp()(changed.points, changed.mask)
            assert error == pytest.approx(float((logits.argmax(1) != data.labels).float().mean()))
    assert robustness(Sharp(), data, ["gaussian", "cutout"], [1, 4], seed=5, batch_size=4) == found
    assert robustness(Sharp(), data, ["gaussian", "cutout"], [1, 4], seed=6) != found


def table(rows: dict[str, list[float]], seed: int = 0) -> Robustness:
    return Robustness(0.1, {name: dict(enumerate(errors, 1)) for name, errors in rows.items()}, seed)


def test_mean_corruption_error_by_hand():
    own = table({"shear": [0.1, 0.2, 0.3], "scale": [0.2, 0.2, 0.2]})
    baseline = table({"scale": [0.1, 0.1, 0.2], "shear": [0.1, 0.3, 0.4]})  # the order does not matter
    # (0.6 / 0.8 + 0.6 / 0.4) / 2, and neither the ratio of means nor the mean of the six ratios.
    assert own.mean_corruption_error(baseline) == pytest.approx((0.75 + 1.5) / 2)
    assert own.mean_corruption_error(own) == pytest.approx(1.0)
    assert own.corruption_errors == pytest.approx({"shear": 0.2, "scale": 0.2})
    assert own.mean_error == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("shear", "scale", "seed", "words"),
    [
        ([0.1], [0.1], 0, "other corruptions, severities"),
        ([0.1, 0.2], [0.2, 0.2], 1, "severities or seed"),
        ([0.1, 0.2], [0.0, 0.0], 0, "no error under some corruption"),
    ],
)
def test_a_baseline_that_cannot_be_compared_with_is_refused(shear, scale, seed, words):
    own = table({"shear": [0.1, 0.2], "scale": [0.2, 0.2]})
    with pytest.raises(PointsetError, match=words):
        own.mean_corruption_error(table({"shear": shear, "scale": scale}, seed))


def test_accuracy_by_size_gives_the_model_sets_of_each_size():
    data = sets(shapes=10)  # five even, five odd
    found = accuracy_by_size(Counter(), data, (1, 16, 47, 48, 49, 1000))
    assert found == {1: 0.5, 16: 0.5, 47: 0.5, 48: 0.5}


@pytest.mark.parametrize("normalize", ["unit-sphere", "standardize", "none"])
def test_smaller_sets_are_subsets_of_the_fixed_ones_normalised_anew(normalize):
    data = sets(normalize=normalize)
    recorder = Recorder(classes=2)
    accuracy_by_size(recorder, data, (9, 20, 48))
    small, larger, whole = (points for points, _ in recorder.evaluated)
    assert [given.shape[1] for given in (small, larger, whole)] == [9, 20, 48]
    for own, given in zip(data.points, whole, strict=True):  # sets have no order: sorted by their first coordinate
        torch.testing.assert_close(given[given[:, 0].argsort()], own[own[:, 0].argsort()], rtol=1e-4, atol=1e-4)
    # The smaller set is the beginning of the larger one, but for the frame.
    torch.testing.assert_close(normalize_points(larger[:, :9], normalize), small, rtol=1e-3, atol=1e-3)
    again, other = Recorder(classes=2), Recorder(classes=2)
    accuracy_by_size(again, data, (9,))
    accuracy_by_size(other, data, (9,), seed=1)
    assert torch.equal(again.evaluated[0][0], small)
    assert not torch.equal(other.evaluated[0][0], small)
