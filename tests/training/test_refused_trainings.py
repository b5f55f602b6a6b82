"""Data that cannot be trained on is an error with a name, before a run has files."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import pointset
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
from pointset.errors import PointsetError
from pointset.training.recipe import Recipe

SHORT = Recipe(epochs=1, batch_size=16)


@pytest.fixture(scope="module")
def train(clouds_folder) -> PointSets:
    return pointset.load_dataset(clouds_folder, "train", 32)


def small(classes: int = 3) -> nn.Module:
    return pointset.create_model("isab4-pma", classes=classes, dim=16)


def with_points(value: float, normalize: str, count: int = 6) -> PointSets:
    """Sets of two classes, with one unusual coordinate."""
    points = torch.randn(count, 8, 3, generator=torch.Generator().manual_seed(0)).numpy()
    points[3, :, 1] = value
    pool = Pool(points, [f"s{row}" for row in range(count)], np.arange(count) % 2, ["a", "b"], "as released")
    return PointSets(pool, DataOptions(points=8, normalize=normalize))


@pytest.mark.parametrize(
    ("value", "normalize", "words"),
    [
        (math.nan, "unit-sphere", "the loss became nan in epoch 1: shape 's3' has a coordinate that is not finite"),
        (math.inf, "none", "shape 's3' has a coordinate that is not finite"),
        (3.3e38, "none", r"shape 's3' has coordinates of 3.3e\+38.* choose normalize"),
    ],
)
def test_a_shape_that_spoils_the_loss_is_named_in_training_and_in_evaluation(value, normalize, words):
    sets, model = with_points(value, normalize), small(2)
    with pytest.raises(PointsetError, match=words.split(": ")[-1]):
        pointset.evaluate(model, sets)
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, sets, Recipe(epochs=1), progress=False)


def test_a_huge_shape_trains_when_it_is_normalised():
    fitted = pointset.fit(small(2), with_points(3.3e38, "unit-sphere"), Recipe(epochs=1), progress=False)
    assert math.isfinite(fitted.history[0]["loss"])


@pytest.mark.parametrize(
    ("model", "sets", "words"),
    [
        (small(), torch.zeros(5, 32, 3), r"train must be sets.* got float32 \[5, 32, 3\]"),
        ("isab4-pma", None, r"model must be a torch module.*'isab4-pma'.*create_model\('isab4-pma'\)"),
        (pointset.create_model("rff-max", classes=2), None, r"gives float32 \[16, 2\].*3 classes: .*classes=3"),
        (pointset.create_model("rff-max", classes=4), None, r"gives float32 \[16, 4\].*3 classes"),
    ],
)
def test_untrainable_data_is_an_error_before_anything_is_written(model, sets, words, train, tmp_path):
    with pytest.raises(PointsetError, match=words):
        pointset.fit(model, train if sets is None else sets, SHORT, run=tmp_path / "run", progress=False)
    assert not (tmp_path / "run" / "history.jsonl").exists()


def test_sets_of_one_class_are_not_trained_on(train, tmp_path):
    alone = train.subset((train.labels == 1).nonzero().flatten())
    with pytest.raises(PointsetError, match=r"the training sets are of 1 class, .*at least 2"):
        pointset.fit(small(), alone, SHORT, run=tmp_path / "run")
    assert not (tmp_path / "run").exists()
