"""Views of a point cache: fixed and random subsets, splits, batches, shared files, clouds of several sizes."""

import dataclasses
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy import P, random_cache, save

import pointset
from pointset import DataOptions, PointsetError, PointSets, load_dataset
from pointset.data import PointCache, augmentation_from_names, normalize_points
from pointset.data.batches import batches, batches_of_rows, epoch_generator, fixed_batches
from pointset.data.point_cache import random_subsets
from pointset.data.reload import load_like
from pointset.data.unusable import UnreadableShapesError
from pointset.runs.workers import torch_threads


def sets(**options: Any) -> PointSets:
    where = {name: options.pop(name) for name in ("name", "source") if name in options}
    return PointSets(random_cache(), DataOptions(**{"points": 5, "normalize": "none", **options}), **where)


def labelled(*labels: int) -> PointCache:
    """A shape of 4 points for each label, of two classes."""
    points = np.random.default_rng(0).normal(size=(len(labels), 4, 3)).astype(np.float32)
    return PointCache(points, [f"s{row}" for row in range(len(labels))], np.array(labels), ["a", "b"])


def rows_in_cache(points: torch.Tensor, cache_points: np.ndarray) -> list[int]:
    """The index in the cache of each point; each must be in the cache."""
    equal = (points.numpy()[:, None, :] == cache_points[None]).all(2)
    assert (equal.sum(1) == 1).all()
    return equal.argmax(1).tolist()


def test_items_of_the_evaluation_view_are_different_points_of_the_cache_and_labels():
    data = sets()
    assert (len(data), data.points.shape, data.points.dtype) == (30, (30, 5, 3), torch.float32)
    for row in range(30):
        assert len(set(rows_in_cache(data.points[row], data.point_cache.points[row]))) == 5
    points, label = data[7]
    torch.testing.assert_close(points, data.points[7])
    assert (label, type(label), data.labels.dtype) == (1, int, torch.int64)
    torch.testing.assert_close(data[-1][0], data.points[-1])
    with pytest.raises(IndexError):
        data[30]
    assert sum(1 for _ in data) == 30
    assert len(list(torch.utils.data.DataLoader(data, batch_size=8))) == 4


def test_the_fixed_subset_depends_on_seed_and_name_only():
    data = sets()
    torch.testing.assert_close(data.points, sets().points, rtol=0, atol=0)
    assert not torch.equal(data.points, sets(data_seed=1).points)
    torch.testing.assert_close(data.subset([20, 3]).points, data.points[[20, 3]], rtol=0, atol=0)
    torch.testing.assert_close(sets(points=11).points[:, :5], data.points, rtol=0, atol=0)  # fewer are the first ones
    same_cloud = random_cache(2)
    same_cloud.points[1] = same_cloud.points[0]
    twins = PointSets(same_cloud, DataOptions(points=5, normalize="none"))
    assert not torch.equal(twins.points[0], twins.points[1])


def test_normalisation_sees_the_subset_and_not_the_cache():
    expected = normalize_points(sets().points, "standardize")
    torch.testing.assert_close(sets(normalize="standardize").points, expected)
    drawn = sets(normalize="unit-sphere").draw(range(30), torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn.norm(dim=2).amax(1), torch.ones(30))


def test_points_that_a_prediction_made_can_be_trained_on():
    data = sets()
    with torch.inference_mode():
        assert not data.points.is_inference()


def test_draws_are_fresh_subsets_of_the_right_caches():
    data = sets()
    generator = torch.Generator().manual_seed(0)
    first, second = data.draw([4, 17], generator), data.draw([4, 17], generator)
    assert first.shape == (2, 5, 3)
    assert not torch.equal(first, second)
    for points in (first, second):
        for row, cloud in zip((4, 17), points, strict=True):
            assert len(set(rows_in_cache(cloud, data.point_cache.points[row]))) == 5
    again = data.draw(torch.tensor([4, 17]), torch.Generator().manual_seed(0))
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    whole = sets(points=P).draw([2], torch.Generator().manual_seed(0))[0]
    assert sorted(rows_in_cache(whole, data.point_cache.points[2])) == list(range(P))


@pytest.mark.parametrize(("available", "count"), [(6, 1), (6, 2), (6, 3), (6, 4), (7, 6), (5, 2)])
def test_every_subset_is_equally_likely(available, count):
    subsets = random_subsets(available, count, 20_000, torch.Generator().manual_seed(0))
    counts = dict.fromkeys(itertools.combinations(range(available), count), 0)
    for row in subsets.tolist():
        counts[tuple(sorted(row))] += 1
    expected = 20_000 / len(counts)
    chi_squared = sum((seen - expected) ** 2 / expected for seen in counts.values())
    freedom = len(counts) - 1
    assert chi_squared < freedom + 4 * np.sqrt(2 * freedom) + 8, counts  # beyond the 0.1 % level for each of these


@pytest.mark.parametrize(("available", "count"), [(1, 1), (9, 0), (9, 9), (10_000, 5000), (10_000, 9999), (3, 2)])
def test_subsets_of_any_size_have_different_members(available, count):
    subsets = random_subsets(available, count, 3, torch.Generator().manual_seed(0))
    assert (subsets.shape, subsets.dtype) == ((3, count), np.int64)
    assert all(len(set(row)) == count and set(row) <= set(range(available)) for row in subsets.tolist())
    assert random_subsets(available, count, 0, torch.Generator()).shape == (0, count)


def test_a_subset_shares_the_cache_and_keeps_what_belongs_together():
    data = sets(up="y", name="x", data_seed=3)
    part = data.subset([9, 4, 29]).subset([2, 0])
    assert part.point_cache.points is data.point_cache.points
    assert (part.names, part.labels.tolist()) == (["shape29", "shape9"], [2, 0])
    assert (part.up, part.name, part.options, part.size, part.classes) == ("y", "x", data.options, 5, data.classes)
    rows_in_cache(part.draw([0], torch.Generator().manual_seed(0))[0], data.point_cache.points[29])


@pytest.mark.parametrize(
    ("labels", "fraction", "held_out"),
    [
        ([0] * 20 + [1] * 10, 0.2, [4, 2]),
        ([0] * 7 + [1] * 20, 0.1, [1, 2]),
        ([0] * 13 + [1] * 20, 0.2, [3, 4]),
        ([0] * 4 + [1] * 20, 0.1, [0, 2]),
        ([0] * 3 + [1] * 20, 0.9, [2, 18]),
        ([0, 0] + [1] * 20, 0.99, [1, 19]),
    ],
)
def test_validation_is_a_rounded_share_of_each_class_and_leaves_one_shape(labels, fraction, held_out):
    data = PointSets(labelled(*labels), DataOptions(points=2))
    train, validation = data.split_validation(fraction, seed=3)
    assert torch.bincount(validation.labels, minlength=2).tolist() == held_out
    assert sorted([*train.names, *validation.names]) == sorted(data.names)
    assert validation.split == "validation"
    assert data.split_validation(fraction, seed=3)[1].names == validation.names
    assert any(data.split_validation(fraction, seed=seed)[1].names != validation.names for seed in range(9))


def changed(row: int) -> PointCache:
    points = random_cache().points.copy()
    points[row, 7, 1] = np.nextafter(points[row, 7, 1], np.float32(np.inf))
    return dataclasses.replace(random_cache(), points=points)


def test_the_fingerprint_tells_any_change_of_the_data_and_nothing_else(home, few):
    data, kept = sets(), torch.arange(20)
    assert data.fingerprint == sets(name="elsewhere", source="/another/path", points=7, data_seed=9).fingerprint
    others = [
        data.subset(kept),
        data.subset(kept.flip(0)),
        PointSets(changed(29), DataOptions(points=5)),
        PointSets(dataclasses.replace(random_cache(), classes=["class1", "class0", "class2"]), DataOptions(points=5)),
        PointSets(
            dataclasses.replace(random_cache(), names=[f"part{row}" for row in range(30)]), DataOptions(points=5)
        ),
    ]
    assert len({data.fingerprint, *(other.fingerprint for other in others)}) == 6
    assert PointSets(changed(29), DataOptions(points=5)).subset(kept).fingerprint == others[0].fingerprint
    mapped = load_dataset(few, "train", 5, cache_points=9)
    assert mapped.point_cache.checksums
    in_memory = dataclasses.replace(mapped.point_cache, points=np.array(mapped.point_cache.points), checksums=())
    assert PointSets(in_memory, DataOptions(points=5)).fingerprint == mapped.fingerprint


def numbered(shapes: int = 23) -> PointSets:
    """Shape i has label i, and all its points are in the plane x = i."""
    whole = random_cache(shapes, classes=shapes, points=11)
    whole.points[..., 0] = np.arange(shapes)[:, None]
    return PointSets(whole, DataOptions(points=5, normalize="none"))


def test_an_epoch_has_every_shape_once_with_its_label_and_a_short_last_batch():
    seen = list(batches(numbered(), 5, seed=0, epoch=0))
    assert [batch.points.shape for batch in seen] == [(5, 5, 3)] * 4 + [(3, 5, 3)]
    points, labels = (torch.cat([batch[part] for batch in seen]) for part in (0, 2))
    assert sorted(labels.tolist()) == list(range(23))
    assert labels.tolist() != list(range(23))
    assert all(batch.mask is None for batch in seen)
    torch.testing.assert_close(points[..., 0], labels[:, None].expand(-1, 5).float())


def epoch(seed: int, number: int) -> torch.Tensor:
    augment = augmentation_from_names(("scale", "jitter", "rotate-up"))
    return torch.cat([b.points for b in batches(numbered(), 5, seed=seed, epoch=number, augment=augment)])


def test_the_same_epoch_is_the_same_to_the_last_bit_and_others_are_not():
    first = epoch(0, 3)
    torch.manual_seed(99)  # neither global state nor the number of threads has a say
    with torch_threads(4):
        assert torch.equal(first, epoch(0, 3))
    for other in ((0, 4), (1, 3), (3, 0)):
        assert not torch.equal(first, epoch(*other))


def test_epochs_mix_seed_and_number_the_same_way_on_every_machine():
    generators = {epoch_generator(seed, number).initial_seed() for seed in range(20) for number in range(20)}
    assert len(generators) == 400
    assert epoch_generator(1, 2).initial_seed() == 7764949442709860949


@pytest.fixture
def mapped(tmp_path):
    """Sets from a cache of 60 shapes, 3.6 MB on disk."""
    whole = random_cache(60, 4, points=5000)
    np.save(tmp_path / "points.npy", whole.points)
    points = np.load(tmp_path / "points.npy", mmap_mode="r")
    return PointSets(dataclasses.replace(whole, points=points), DataOptions(points=100))


def test_a_mapped_cache_is_pickled_as_its_path(mapped):
    assert mapped.points.shape == (60, 100, 3)
    pickled = pickle.dumps(mapped)
    assert len(pickled) < 20_000
    back = pickle.loads(pickled)
    assert isinstance(back.point_cache.points, np.memmap)
    assert torch.equal(back.points, mapped.points)
    assert back.fingerprint == mapped.fingerprint
    first, again = (data.draw([3, 5], torch.Generator().manual_seed(0)) for data in (back, mapped))
    assert torch.equal(first, again)


def test_parts_of_arrays_and_files_are_caches_of_their_own(mapped):
    whole = np.random.default_rng(0).standard_normal((4, 18, 3)).astype(np.float32)
    gaps = PointCache(whole[:, ::2], list("abcd"), np.arange(4), list("abcd"))
    assert gaps.points.flags.c_contiguous
    drawn = PointSets(gaps, DataOptions(points=9, normalize="none")).draw([2], torch.Generator().manual_seed(0))[0]
    assert sorted(drawn.tolist()) == sorted(whole[2, ::2].tolist())
    part = PointCache(mapped.point_cache.points[10:12], ["a", "b"], np.array([0, 1]), ["x", "y"])
    data = PointSets(part, DataOptions(points=5, normalize="none"))
    assert torch.equal(pickle.loads(pickle.dumps(data)).points, data.points)


@pytest.mark.slow
@pytest.mark.parametrize(("context", "workers"), [("fork", 2), ("spawn", 1)])
def test_worker_processes_give_the_same_sets(mapped, context, workers):
    loader = torch.utils.data.DataLoader(mapped, 16, num_workers=workers, multiprocessing_context=context)
    for (points, labels), expected in zip(loader, fixed_batches(mapped, 16), strict=True):
        torch.testing.assert_close(points, expected.points)
        assert torch.equal(labels, expected.labels)


SIZES = (3, 9, 5, 20, 1, 12, 7, 9, 9, 4)


@pytest.fixture
def folder(home, tmp_path):
    """Two classes of clouds in two formats; every cloud is far from zero, where padding would show."""
    rng = np.random.default_rng(0)
    for number, size in enumerate(SIZES):
        cloud = rng.normal([50, 60, 70, 0, 0, 0], size=(size, 6))
        cloud[:, 3:] /= np.linalg.norm(cloud[:, 3:], axis=1, keepdims=True)
        path = tmp_path / "scans" / f"class {number % 2}" / ("test" if number > 6 else "train") / f"{number}.npy"
        save(path, cloud)
        if number % 3:
            np.savetxt(path.with_suffix(".xyz"), cloud, delimiter=",", fmt="%.9g")
            path.unlink()
    return tmp_path / "scans"


def test_a_set_has_at_most_n_points_and_keeps_all_if_it_has_fewer(folder):
    data = load_dataset(folder, points=8, normalize="none")
    by_name = dict(zip((int(Path(name).stem) for name in data.names), range(len(data)), strict=True))
    assert by_name.keys() == set(range(7))
    for number, row in by_name.items():
        points, label = data[row]
        assert (len(points), label) == (min(8, SIZES[number]), number % 2)
        whole = {tuple(point) for point in data.point_cache.cloud(row).tolist()}
        assert {tuple(point) for point in points.tolist()} <= whole
        assert len(set(map(tuple, points.tolist()))) == len(points)
    assert data.points.shape == (7, 8, 3)
    assert data.mask is not None
    assert data.mask.sum(1).tolist() == data.sizes.tolist()
    assert data.preparation.cache_points == 20


def test_clouds_without_points_do_not_decide_whether_a_cache_is_centred():
    points = np.array([[1, 0, 0], [-1, 0, 0], [5, 0, 0]], np.float32)
    cache = PointCache(
        points, ["empty", "centred", "off"], np.zeros(3, np.int64), ["a"], offsets=np.array([0, 0, 2, 3])
    )
    assert [cache.is_centred(np.array(rows)) for rows in ([0, 1], [0, 2], [1, 2])] == [True, False, False]


def test_a_set_of_several_sizes_is_indexed_without_its_padding_and_slices_are_sets():
    clouds = [np.random.default_rng(row).normal(size=(size, 3)) for row, size in enumerate((5, 3, 4))]
    data = pointset.from_arrays(clouds, ["a", "b", "a"])
    assert data.points.shape == (3, 5, 3)
    for row, size in ((0, 5), (1, 3), (-1, 4)):
        assert (
            data.points[row].shape
            == data.points[np.int64(row)].shape
            == data.points[torch.tensor(row)].shape
            == (size, 3)
        )
        torch.testing.assert_close(data[row][0], data.points[row])
    assert type(data.points * 2) is type(data.points[:2]) is torch.Tensor
    model = pointset.create_model("isab4-pma", classes=2, dim=8, heads=2).eval()
    with torch.no_grad():
        alone = model(data.points[1][None])
        torch.testing.assert_close(model(data.points, data.mask)[1:2], alone)
    assert pointset.attention_maps(model, data.points[1])[0].weights.shape[-1] == 3
    part = data[1:]
    assert isinstance(part, PointSets)
    assert (part.names, part.labels.tolist()) == (data.names[1:], [1, 0])
    assert data[0:2:2].names == data.names[:1]


def test_batches_are_padded_with_zeros_and_masked(folder):
    data = load_dataset(folder, points=8, normalize="none")
    for batch in [*batches(data, 4, seed=0, epoch=0), *fixed_batches(data, 4)]:
        if batch.mask is None:
            assert (batch.points.abs() > 10).all(), "no padding without a mask"
            continue
        assert batch.points.shape[:2] == batch.mask.shape
        assert batch.points.shape[1] == batch.mask.sum(1).max() <= 8
        assert (batch.points[~batch.mask] == 0).all()
        assert (batch.points[batch.mask].abs() > 10).all()
        assert (batch.mask.int().diff(dim=1) <= 0).all(), "real points come first"
    assert next(fixed_batches(data, 4)).mask is not None
    seen = torch.cat([batch.labels for batch in batches(data, 4, seed=0, epoch=0)])
    assert sorted(seen.tolist()) == sorted(data.labels.tolist())


@pytest.fixture
def bad(folder):
    """The folder with three more training files that cannot be used, of several kinds."""
    (folder / "class 1" / "train" / "bad.xyz").write_text("0 0 0\n1 2\n")
    (folder / "class 0" / "train" / "empty.npy").write_bytes(b"")
    (folder / "class 0" / "train" / "gone.npz").symlink_to(folder / "nowhere.npz")
    return folder


BAD = {"class 0/train/empty.npy", "class 0/train/gone.npz", "class 1/train/bad.xyz"}


def test_bad_clouds_are_left_out_and_that_is_kept(bad, tmp_path):
    with pytest.warns(UserWarning, match="scans-train lacks 3 of 10 shapes"):
        data = load_dataset(bad, points=8, on_error="skip")
    assert (len(data), data.describe()["skipped"]) == (7, 3)
    assert set(data.describe()["left_out"]) == BAD
    with pytest.raises(UnreadableShapesError, match=r"^3 of 10 "):
        load_dataset(bad, points=8)  # who does not accept it is told, also later
    # A run on these sets does without them too, and says so.
    with pytest.warns(UserWarning, match="lacks 3 of 10 shapes"):
        assert load_like(data.describe(), "train").fingerprint == data.fingerprint
    for name in BAD:
        (bad / name).unlink()
    sound = load_dataset(bad, points=8)
    assert "left_out" not in sound.describe()
    assert sound.fingerprint == data.fingerprint


def test_sets_larger_than_every_cloud_are_refused(folder):
    with pytest.raises(PointsetError, match=r"points=21 is more than the 20 that scans holds.*points 20"):
        load_dataset(folder, points=21)
    assert load_dataset(folder, points=20).points.shape[1] == 20
    assert load_dataset(folder, "test", points=20).points.shape[1] == 9, "clouds to test on may all be smaller"


def test_batches_are_of_neighbours_in_size_in_random_order_and_have_every_set_once():
    sizes = torch.randint(1, 5000, (1000,), generator=torch.Generator().manual_seed(0))

    def rows(seed: int) -> list[torch.Tensor]:
        return batches_of_rows(sizes, 32, torch.Generator().manual_seed(seed))

    def padded(batches: list[torch.Tensor]) -> int:
        return sum(len(batch) * int(sizes[batch].max()) for batch in batches)

    assert torch.cat(rows(1)).sort().values.equal(torch.arange(1000))
    assert padded(rows(1)) < 1.1 * sizes.sum()
    assert padded(list(torch.randperm(1000).split(32))) > 1.8 * sizes.sum()
    assert all(map(torch.equal, rows(1), rows(1)))
    assert not torch.equal(rows(1)[0], rows(2)[0])
    of_one_size = batches_of_rows(torch.full((70,), 5), 32, torch.Generator().manual_seed(3))
    assert torch.cat(of_one_size).equal(torch.randperm(70, generator=torch.Generator().manual_seed(3)))
