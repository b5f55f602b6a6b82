"""Views of a pool of points: seeds, splits, and errors for wrong requests."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import P, pool

from pointset.data.dataset import PointSets, load_dataset
from pointset.data.normalize import normalize_points
from pointset.data.options import DataOptions
from pointset.data.point_sets import Pool
from pointset.data.pool import first_fault
from pointset.errors import PointsetError


def sets(**options: Any) -> PointSets:
    where = {name: options.pop(name) for name in ("name", "source") if name in options}
    return PointSets(pool(), DataOptions(**{"points": 5, "normalize": "none", **options}), **where)


def rows_in_pool(points: torch.Tensor, pool_points: np.ndarray) -> list[int]:
    """The index in the pool of each point; each must be in the pool."""
    equal = (points.numpy()[:, None, :] == pool_points[None]).all(2)
    assert (equal.sum(1) == 1).all()
    return equal.argmax(1).tolist()


# The evaluation view


def test_the_evaluation_view_holds_different_points_of_the_pool() -> None:
    data = sets()
    assert data.points.shape == (30, 5, 3)
    assert data.points.dtype == torch.float32
    for row in range(30):
        assert len(set(rows_in_pool(data.points[row], data.source_pool.points[row]))) == 5


def test_items_are_points_and_labels() -> None:
    data = sets()
    assert len(data) == 30
    points, label = data[7]
    torch.testing.assert_close(points, data.points[7])
    assert (label, type(label)) == (1, int)
    assert data.labels.dtype == torch.int64
    assert len(list(torch.utils.data.DataLoader(data, batch_size=8))) == 4


def test_the_fixed_subset_depends_on_seed_and_name_only() -> None:
    data = sets()
    torch.testing.assert_close(data.points, sets().points, rtol=0, atol=0)
    assert not torch.equal(data.points, sets(data_seed=1).points)
    picked = data.subset([20, 3])
    torch.testing.assert_close(picked.points, data.points[[20, 3]], rtol=0, atol=0)
    same_cloud = pool(2)
    same_cloud.points[1] = same_cloud.points[0]
    twins = PointSets(same_cloud, DataOptions(points=5, normalize="none"))
    assert not torch.equal(twins.points[0], twins.points[1])


def test_fewer_points_are_a_subset_of_more() -> None:
    torch.testing.assert_close(sets(points=11).points[:, :5], sets(points=5).points, rtol=0, atol=0)


def test_normalisation_sees_the_subset_and_not_the_pool() -> None:
    expected = normalize_points(sets().points, "standardize")
    torch.testing.assert_close(sets(normalize="standardize").points, expected)
    drawn = sets(normalize="unit-sphere").draw(range(30), torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.norm(dim=2).amax(1), torch.ones(30))


# The training view


def test_draws_are_fresh_subsets_of_the_right_pools() -> None:
    data = sets()
    generator = torch.Generator().manual_seed(0)
    first, second = data.draw([4, 17], generator), data.draw([4, 17], generator)
    assert first.shape == (2, 5, 3)
    assert not torch.equal(first, second)
    for points in (first, second):
        for row, cloud in zip((4, 17), points, strict=True):
            assert len(set(rows_in_pool(cloud, data.source_pool.points[row]))) == 5
    again = data.draw(torch.tensor([4, 17]), torch.Generator().manual_seed(0))
    torch.testing.assert_close(first, again, rtol=0, atol=0)


def test_the_whole_pool_can_be_drawn() -> None:
    data = sets(points=P)
    drawn = data.draw([2], torch.Generator().manual_seed(0))[0]
    assert sorted(rows_in_pool(drawn, data.source_pool.points[2])) == list(range(P))


# Views and splits


def test_a_subset_shares_the_pool_and_keeps_what_belongs_together() -> None:
    data = sets(up="y", name="x", data_seed=3)
    part = data.subset([9, 4, 29]).subset([2, 0])
    assert part.source_pool.points is data.source_pool.points
    assert part.names == ["shape29", "shape9"]
    assert part.labels.tolist() == [2, 0]
    assert (part.up, part.name, part.options, part.size, part.classes) == ("y", "x", data.options, 5, data.classes)
    drawn = part.draw([0], torch.Generator().manual_seed(0))
    rows_in_pool(drawn[0], data.source_pool.points[29])


def test_validation_is_cut_class_by_class_and_shares_nothing_with_training() -> None:
    labels = np.array([0] * 20 + [1] * 10 + [2] * 2 + [3])
    whole = pool(33, 4)
    data = PointSets(Pool(whole.points, whole.names, labels, whole.classes, "uniform"), DataOptions(points=5))
    train, validation = data.split_validation(0.2, seed=0)
    assert torch.bincount(validation.labels, minlength=4).tolist() == [4, 2, 0, 0]
    assert torch.bincount(train.labels, minlength=4).tolist() == [16, 8, 2, 1]
    assert set(train.names) | set(validation.names) == set(data.names)
    assert len(train) + len(validation) == 33
    assert validation.split == "validation"
    assert data.split_validation(0.2, seed=0)[1].names == validation.names
    assert data.split_validation(0.2, seed=1)[1].names != validation.names


def test_even_a_large_validation_share_leaves_a_shape_of_every_class() -> None:
    train, _ = sets().split_validation(0.99, seed=0)
    assert torch.bincount(train.labels, minlength=3).tolist() == [1, 1, 1]


def test_the_description_is_plain_data() -> None:
    described = json.loads(json.dumps(sets(name="x", data_seed=4).describe()))
    expected = {"name": "x", "split": "train", "shapes": 30, "skipped": 0, "points": 5, "pool": P, "seed": 4}
    assert expected.items() <= described.items()
    assert described["classes"] == ["class0", "class1", "class2"]
    assert {"normalize", "sampler", "up", "split_seed"} <= described.keys()


def changed(row: int) -> Pool:
    points = pool().points.copy()
    points[row, 7, 1] = np.nextafter(points[row, 7, 1], np.float32(np.inf))
    return dataclasses.replace(pool(), points=points)


def test_the_fingerprint_tells_any_change_of_the_data_and_nothing_else() -> None:
    data = sets()
    kept = torch.arange(20)
    assert data.fingerprint == sets(name="elsewhere", source="/another/path", points=7, data_seed=9).fingerprint
    others = [
        data.subset(kept),
        data.subset(kept.flip(0)),
        PointSets(changed(29), DataOptions(points=5)),
        PointSets(dataclasses.replace(pool(), classes=["class1", "class0", "class2"]), DataOptions(points=5)),
        PointSets(dataclasses.replace(pool(), names=[f"part{row}" for row in range(30)]), DataOptions(points=5)),
    ]
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 6
    assert PointSets(changed(29), DataOptions(points=5)).subset(kept).fingerprint == others[0].fingerprint, (
        "what is not drawn from"
    )


def test_a_pool_on_disk_has_the_fingerprint_of_its_points(home: Path, few: Path) -> None:
    mapped = load_dataset(few, "train", 5, pool_points=9)
    in_memory = dataclasses.replace(mapped.source_pool, points=np.array(mapped.source_pool.points), checksums=())
    assert mapped.source_pool.checksums
    assert PointSets(in_memory, DataOptions(points=5)).fingerprint == mapped.fingerprint


@pytest.mark.parametrize(
    ("shapes", "fraction", "held_out"), [(7, 0.1, 1), (13, 0.2, 3), (12, 0.2, 2), (4, 0.1, 0), (3, 0.9, 2)]
)
def test_the_share_of_validation_is_rounded_to_the_nearest_in_each_class(
    shapes: int, fraction: float, held_out: int
) -> None:
    """The second class, of 20, keeps the validation set from being empty."""
    data = PointSets(labelled(*[0] * shapes, *[1] * 20), DataOptions(points=2))
    _, validation = data.split_validation(fraction, seed=3)
    assert (validation.labels == 0).sum() == held_out


def labelled(*labels: int) -> Pool:
    """A shape of 4 points for each label, of two classes."""
    points = np.random.default_rng(0).normal(size=(len(labels), 4, 3)).astype(np.float32)
    return Pool(points, [f"s{row}" for row in range(len(labels))], np.array(labels), ["a", "b"], "uniform")


@pytest.mark.parametrize(
    ("points", "normalize", "words"),
    [
        (np.nan, "unit-sphere", "shape 's1' has a coordinate that is not finite"),
        (-np.inf, "none", "shape 's1' has a coordinate that is not finite"),
        (3.3e38, "none", r"shape 's1' has coordinates of 3.3e\+38, and they are not normalised"),
        (3.3e38, "standardize", "^$"),
    ],
)
def test_sets_that_no_model_can_use_are_named(points: float, normalize: str, words: str) -> None:
    pool = labelled(0, 1, 1)
    pool.points[1, 2, 0] = points
    assert re.search(words, first_fault(PointSets(pool, DataOptions(points=2, normalize=normalize))))


@pytest.mark.parametrize(
    ("request_it", "words"),
    [
        (lambda: PointSets(pool(), DataOptions(points=24), name="x"), "points=24 is more than the 23 that x holds"),
        (lambda: DataOptions(points=0), "points must be .*from 1 to .*got 0"),
        (lambda: PointSets(pool(), DataOptions(points=5, normalize="box")), "unit-sphere.*'box'"),
        (lambda: sets().split_validation(1.0, 0), "fraction must be in \\(0, 1\\), got 1.0"),
        (lambda: sets().split_validation(0.0, 0), "fraction must be in \\(0, 1\\), got 0.0"),
        (lambda: sets().split_validation(0.01, 0), "fraction=0.01 of 30 shapes.*larger"),
        (
            lambda: PointSets(labelled(0, 3, 1), DataOptions(points=2)),
            "shape 's1' has label 3, and there are 2 classes",
        ),
        (lambda: PointSets(labelled(0, 1, -1), DataOptions(points=2)), "shape 's2' has label -1"),
    ],
)
def test_wrong_requests_say_what_is_possible(request_it: Any, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        request_it()
