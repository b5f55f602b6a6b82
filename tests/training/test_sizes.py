"""Training sets of random size: the distribution of sizes, and their dependence on the seed alone."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import pointset
from pointset.data.dataset import PointSets
from pointset.data.options import DataOptions
from pointset.data.pool import Pool
from pointset.errors import PointsetError
from pointset.training.objectives import Classification, drawn_size
from pointset.training.recipe import Recipe


class Seen(nn.Module):
    """A classifier that records the shapes of its inputs, in training and in evaluation."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.trained, self.evaluated, self.masks = [], [], []

    def forward(self, points, mask):
        (self.trained if self.training else self.evaluated).append(points.shape[1])
        self.masks.append(mask)
        return self.layer(points.mean(dim=1))


def sizes_of(train, recipe, epoch, seed=0):
    return [batch.points.shape[1] for batch in Classification(train, recipe, seed).batches(epoch)]


def test_draws_are_log_uniform_between_both_bounds_and_come_from_seed_epoch_and_batch_alone():
    drawn = np.array([drawn_size((2, 15), 0, 0, batch) for batch in range(8000)])
    assert (drawn.min(), drawn.max()) == (2, 15)
    for doubling in (2, 4, 8):  # 2 to 3, 4 to 7, 8 to 15: a third each
        share = np.mean((drawn >= doubling) & (drawn < 2 * doubling))
        assert abs(share - 1 / 3) < 4 * math.sqrt(2 / 9 / 8000)
    assert np.mean(drawn == 15) == pytest.approx(math.log(16 / 15) / math.log(8), abs=0.008)
    assert {drawn_size((7, 7), 0, 0, batch) for batch in range(50)} == {7}
    first = [drawn_size((8, 512), 3, 5, batch) for batch in range(20)]
    for other in ((4, 5), (3, 6)):
        assert first != [drawn_size((8, 512), *other, batch) for batch in range(20)]


def test_a_training_sees_one_size_a_batch_without_padding_and_is_validated_at_that_of_the_sets(train):
    model = Seen()
    pointset.fit(model, train, Recipe(epochs=3, batch_size=10, train_points=(5, 64), validation=0.2), progress=False)
    assert len(model.trained) == 3 * 10
    assert min(model.trained) >= 5 < 32 < max(model.trained) <= 64  # fewer and more than are evaluated
    assert len(set(model.trained)) > 10
    assert set(model.evaluated) == {32}
    assert not any(mask is not None for mask in model.masks)


def test_sizes_change_neither_the_order_of_the_shapes_nor_the_batches_of_other_recipes(train):
    plain, sized = (Classification(train, Recipe(batch_size=50, train_points=points), 0) for points in (None, (32, 32)))
    for one, other in zip(plain.batches(1), sized.batches(1), strict=True):
        assert torch.equal(one.points, other.points)
        assert torch.equal(one.labels, other.labels)


@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_the_bounds_move_by_equal_factors_from_the_first_epoch_to_the_last(epochs, train):
    recipe = Recipe(epochs=epochs, train_points=(2, 4), last_points=(32, 64))
    found = [recipe.sizes(epoch, epochs) for epoch in range(epochs)]
    assert found == {1: [(2, 4)], 2: [(2, 4), (32, 64)], 5: [(2, 4), (4, 8), (8, 16), (16, 32), (32, 64)]}[epochs]


def test_sizes_are_said_and_one_size_once():
    recipe = Recipe(train_points=(64, 256), last_points=(9, 9))
    assert recipe.sizes_in_words == "64 to 256 points, at the end of 9 points"


def test_a_schedule_follows_epochs_and_steps_alike(train):
    for length in ({"epochs": 3}, {"steps": 3 * 12 - 5}):  # 120 shapes in batches of 10: the last epoch is cut short
        recipe = Recipe(batch_size=10, train_points=(3, 3), last_points=(48, 48), **length)
        assert [set(sizes_of(train, recipe, epoch)) for epoch in range(3)] == [{3}, {12}, {48}]


def test_sets_of_several_sizes_give_all_they_have_where_the_draw_is_larger():
    offsets = np.array([0, 4, 10, 22, 30])
    points = np.random.default_rng(0).normal(size=(30, 3)).astype(np.float32)
    pool = Pool(points, list("abcd"), np.array([0, 1, 0, 1]), ["a", "b"], "as released", offsets=offsets)
    sets = PointSets(pool, DataOptions(points=5))
    for batch in Classification(sets, Recipe(batch_size=4, train_points=(8, 8)), 0).batches(0):
        assert sorted(batch.mask.sum(dim=1).tolist()) == [4, 6, 8, 8]
        assert batch.points.shape == (4, 8, 3)
    with pytest.raises(PointsetError, match=r"train_points=\[8, 13\] of the recipe is more than the 12 .*'a', has 4"):
        Classification(sets, Recipe(train_points=(8, 13)), 0)


def test_more_points_than_are_stored_are_refused_before_a_run_or_a_comparison_has_files(train, classifiers, tmp_path):
    recipe = Recipe(train_points=(8, 9), last_points=(8, 99))
    words = r"last_points=\[8, 99\].* 64 .*--last-points \.\.\. 64"
    with pytest.raises(PointsetError, match=words):
        pointset.fit(Seen(), train, recipe, run=tmp_path / "run")
    with pytest.raises(PointsetError, match=words):
        pointset.run_experiment(classifiers(recipe=recipe), tmp_path / "out")
    assert not list(tmp_path.iterdir())
