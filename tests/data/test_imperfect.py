"""Imperfect copies: their neighbourhoods are those of the changed cloud, and only training draws from them."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data.augmentations import SURROUNDINGS, Crop, augmentation_from_names
from pointset.data.neighbourhood_pools import COPIES, WHOLE
from pointset.data.neighbourhoods import WIDTHS, stored_numbers
from pointset.data.point_sets import PointSets

N = 60


def sets_of(ragged: bool, count: int = 6) -> PointSets:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(N + (index if ragged else 0), 3)) for index in range(count)]
    return pointset.from_arrays(X, [index % 2 for index in range(count)], points=N, features=[x[:, :1] for x in X])


def copied(sets: PointSets, *names: str, seed: int = 0) -> PointSets:
    return sets.with_imperfect_copies("shifts", augmentation_from_names(names or ("crop", "thin")), seed)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("name", sorted(SURROUNDINGS))
def test_numbers_of_a_copy_are_those_of_its_own_distinct_points(name: str, ragged: bool) -> None:
    sets = sets_of(ragged)
    pool, given = copied(sets, name).source_pool, sets.source_pool
    assert len(pool) == len(given) * (1 + COPIES)
    changed = 0
    for row in range(len(pool)):
        cloud, numbers = pool.cloud(row), pool.cloud(row, "neighbourhoods")
        assert pool.labels[row] == given.labels[row % len(given)]
        changed += not np.array_equal(cloud, given.cloud(row % len(given)))
        distinct, places = np.unique(cloud, axis=0, return_inverse=True)
        assert np.array_equal(numbers, stored_numbers(distinct, "shifts")[places])
        columns = (given.cloud(row % len(given), "features"), pool.cloud(row, "features"))
        assert set(columns[1].ravel()) <= set(columns[0].ravel())  # points that are left have their features
    assert 0 < changed <= len(given) * COPIES


def test_only_the_training_view_draws_from_copies() -> None:
    sets = sets_of(ragged=False)
    copies, plain = copied(sets), sets.with_neighbourhoods("shifts")
    assert torch.allclose(copies.points, plain.points, atol=2e-3)  # the order of a sum
    rows = torch.zeros(4000, dtype=torch.long)
    where, _ = copies.draw_indices(rows, torch.Generator().manual_seed(0), size=1)
    of_shapes = np.bincount(where // N // len(sets), minlength=1 + COPIES) / len(rows)
    assert of_shapes == pytest.approx([WHOLE, *[(1 - WHOLE) / COPIES] * COPIES], abs=0.03)
    assert (where // N % len(sets) == 0).all()  # of the shape that was asked for


def test_copies_depend_on_the_seed_alone() -> None:
    first, again, other = (copied(sets_of(ragged=False), seed=seed).source_pool.points for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_network_is_trained_on_copies_and_a_network_of_coordinates_on_changed_sets() -> None:
    for kind in ("shifts", "none"):
        options: Any = {"neighbourhoods": kind, "inputs": 4}
        model: Any = pointset.create_model("rff-max", classes=2, dim=8, **options)
        widths = list[int]()
        model.encoder.register_forward_pre_hook(lambda _, given, seen=widths: seen.append(given[0].shape[2]))
        recipe = pointset.Recipe(epochs=2, augment=("crop", "thin", "scale"), train_points=(8, 32))
        fitted = pointset.fit(model, sets_of(ragged=True), recipe, progress=False)
        assert set(widths) == {4 + WIDTHS[kind]}
        assert np.isfinite(fitted.history[-1]["loss"])


def test_a_network_that_was_trained_on_thinned_clouds_does_not_warn_of_them(tmp_path: Path) -> None:
    few = np.random.default_rng(1).normal(size=(N // 4, 4))
    for augment, warned in (("thin", False), ("crop", True)):
        model: Any = pointset.create_model("rff-max", classes=2, inputs=4, dim=8, neighbourhoods="shifts")
        recipe = pointset.Recipe(epochs=1, augment=(augment,))
        pointset.fit(model, sets_of(ragged=False), recipe, run=tmp_path / augment, progress=False)
        for one in (model, pointset.load_run(tmp_path / augment)[0]):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                one.predict(few)
            assert [str(each.message)[:23] for each in seen] == ["clouds of fewer than 30"] * warned


def test_a_crop_leaves_as_many_distinct_points_as_it_says() -> None:
    sets = sets_of(ragged=False)
    pool = sets.with_imperfect_copies("shifts", Crop(most=0.5, probability=1.0), 0).source_pool
    left = [len(np.unique(pool.cloud(row), axis=0)) for row in range(len(sets), len(pool))]
    assert N / 2 <= min(left) < N
