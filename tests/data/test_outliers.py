"""Repeated points count once, outliers stay unless the option removes them, and points at the origin are reported."""

import re
import warnings

import numpy as np
import pytest
import torch

import pointset
from pointset.data.options import Preparation
from pointset.data.outliers import OutlierOptions, find_outliers, merge_duplicates, prepare_cloud
from pointset.data.preparation import prepare
from pointset.data.readers.clouds import Cloud
from pointset.errors import PointsetError

RNG = np.random.default_rng(0)
SPHERE = (lambda v: v / np.linalg.norm(v, axis=1, keepdims=True))(RNG.normal(size=(700, 3))).astype(np.float32) + 2
REMOVE = OutlierOptions(remove_outliers=True)


def padded(points: np.ndarray, value: np.ndarray, size: int) -> np.ndarray:
    return np.concatenate([points, np.tile(value, (size - len(points), 1))]).astype(np.float32)


def test_outliers_are_those_of_the_formula():
    points = np.concatenate([SPHERE, [[9.0, 0, 0]]])
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    mean = np.sqrt(np.sort(squares, axis=1)[:, 1:9]).mean(axis=1)
    expected = mean > mean.mean() + 3 * mean.std()
    assert expected[-1]
    np.testing.assert_array_equal(find_outliers(points, 8, 3.0), expected)
    assert not find_outliers(points[:1], 8, 3.0).any()


def test_each_place_counts_once_in_the_order_of_the_file():
    points = np.array([[1, 0, 0], [0, 0, 0], [1, 0, 0], [-0.0, 0, 0], [0, 1, 0]], np.float32)
    cloud = merge_duplicates(Cloud(points, features=np.arange(5, dtype=np.float32)[:, None]))
    assert cloud.points.tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert cloud.features.ravel().tolist() == [0, 1, 4]


@pytest.mark.parametrize("local_features", ["none", "upright"])
@pytest.mark.parametrize("value", [SPHERE[-1], SPHERE[3]])
def test_padding_by_repeated_points_changes_nothing(value, local_features, tmp_path):
    preparation = Preparation(points=2000, normalize="center-standardize", local_features=local_features, least=0.1)
    expected = prepare(SPHERE, preparation).points
    np.save(tmp_path / "a.npy", padded(SPHERE, value, 1500))
    for shape in (np.load(tmp_path / "a.npy"), tmp_path / "a.npy"):
        torch.testing.assert_close(prepare(shape, preparation).points, expected)
    sets = pointset.from_arrays([SPHERE, padded(SPHERE, value, 1500)], [0, 1]).with_local_features(local_features)
    torch.testing.assert_close(*(points.sort(dim=0).values for points in sets.points))


def test_points_at_the_origin_are_reported_and_removed_by_the_option_alone():
    cloud = Cloud(padded(SPHERE, np.zeros(3), 1500))
    with pytest.warns(UserWarning, match=r"a: 800 of 1,500 points are exactly at the origin .* --remove-outliers"):
        assert len(prepare_cloud(cloud, "a", OutlierOptions()).points) == 701
    with pytest.warns(UserWarning, match=r"outliers? and 800 at the origin of 1,500 points removed"):
        kept = prepare_cloud(cloud, "a", REMOVE).points
    assert (kept != 0).any(axis=1).all()
    assert len(kept) >= 0.9 * len(SPHERE)
    with warnings.catch_warnings(action="error"):  # a model may have a corner there
        assert len(prepare_cloud(Cloud(padded(SPHERE, np.zeros(3), 702)), "a", OutlierOptions()).points) == 701


def test_a_part_of_another_density_is_kept_and_too_many_outliers_are_refused():
    sparse = RNG.uniform(-30, 30, (90, 3)).astype(np.float32)
    cloud = Cloud(np.concatenate([SPHERE, sparse]))
    assert len(prepare_cloud(cloud, "a", OutlierOptions()).points) == 790
    with pytest.raises(PointsetError, match=r"a: .*would remove .* of 790 .*\(1\d%, but at most 10% are allowed\)"):
        prepare_cloud(cloud, "a", OutlierOptions(remove_outliers=True, outlier_ratio=0.5))


def test_a_folder_loses_outliers_as_its_files_do_and_reports_them_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "train" / name).mkdir(parents=True)
        np.save(tmp_path / "train" / name / "one.npy", np.concatenate([SPHERE[:300], [[99, 99, 99]]]).astype("f4"))
    whole = pointset.load_dataset(tmp_path, points=301)
    assert (whole.sizes.tolist(), whole.preparation.remove_outliers) == ([301, 301], False)
    for _ in range(2):
        with pytest.warns(UserWarning, match="1 outlier of 301 points removed") as warned:
            sets = pointset.load_dataset(tmp_path, points=300, remove_outliers=True, outlier_ratio=9.0)
        assert len(warned) == 1
    assert sets.sizes.tolist() == [300, 300]
    assert sets.preparation.outlier_ratio == 9.0
    with pytest.warns(UserWarning, match=re.escape("one.npy: 1 outlier of 301 points removed (--remove-outliers)")):
        points = prepare(tmp_path / "train" / "a" / "one.npy", sets.preparation).points
    torch.testing.assert_close(points.sort(dim=0).values, sets.points[0].sort(dim=0).values)
    array = np.load(tmp_path / "train" / "a" / "one.npy")
    assert len(prepare(array, sets.preparation, points=400).points) == 301, "clouds in memory keep all points"
