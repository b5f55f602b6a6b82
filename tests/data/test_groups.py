"""Groups of shapes: inferred from file names, or given; and splits and folds that keep them on one side."""

import itertools
import re
from hashlib import md5

import numpy as np
import pytest
import torch
from toy import save

import pointset
from pointset import PointsetError
from pointset.data.catalogue.folders import groups_of
from pointset.data.groups import end_in_numbers, groups_from_names, name_key, number_groups
from pointset.data.splitting import assign_folds

ACTIVITIES = ("boxing", "jack", "jump", "squats", "walk")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("shoe/shoe_wbs_12.pcd", "shoe_wbs"),
        ("pine/Plot_47_Tree_84.laz", "Plot_47_Tree"),
        ("rec20_boxing_2_w02.csv", "rec20_boxing_2_w"),
        ("shoe 3 frame 12 left.pcd", "shoe 3 frame"),
        ("chair_0001.off", "chair"),
        ("12.xyz.npy", ""),
        ("cloud.v2/boot.ply", "boot"),
        ("a1b2c3d4.pcd", "a1b2c3d4"),
        ("3f2a9c1b-1a2b.pcd", "3f2a9c1b-1a2b"),
    ],
)
def test_key_of_a_name(name, key):
    assert name_key(name) == key


def views():
    """Names, labels and true groups of views of shoes."""
    return zip(
        *((f"{c}/shoe_{c}{o}_{v}.pcd", c, (c, o)) for c in "ab" for o in range(5) for v in range(o + 2)), strict=True
    )


def recordings():
    """Windows of radar recordings, of which two sequences of a class differ in their first words alone."""
    rows = itertools.product(ACTIVITIES, ("rec{r}_{c}_2", "rec{c}_{r}_2"), range(4), range(6))
    return zip(*((f"{form.format(r=r, c=c)}_w{w:02}.csv", c, (c, form, r)) for c, form, r, w in rows), strict=True)


def plots():
    """Trees of two classes, which stand on the same plots."""
    rows = [(plot, tree, "pine" if (plot + tree) % 3 else "birch") for plot in range(9) for tree in range(12)]
    return zip(*((f"{c}/Plot_{plot}_Tree_{tree}.laz", c, plot) for plot, tree, c in rows), strict=True)


@pytest.mark.parametrize("make", [views, recordings, plots])
def test_groups_by_names(make):
    names, labels, objects = make()
    grouping = groups_from_names(names, number_groups(labels).tolist())
    assert grouping.origin == "names"
    assert np.array_equal(grouping.groups, number_groups(objects))
    assert re.fullmatch(rf"{len({*objects})} groups by file names without .*, such as '\S+' \(.*\)", str(grouping))


def hexadecimal(digits, count=400):
    return [md5(str(row).encode()).hexdigest()[:digits] + ".off" for row in range(count)]


@pytest.mark.parametrize(
    ("names", "numbered"),
    [
        *((hexadecimal(digits), False) for digits in (4, 6, 8, 32)),
        ([f"{'ab'[row % 2]}_{row:04}.off" for row in range(400)], True),
        ([f"{row}.off" for row in range(400)], True),
        ([f"{'ab'[row % 2]}{row % 4}_{row}.off" for row in range(400)], True),  # two groups in each class
        ([f"{'ab'[row % 2]}{row // 2 % 9 if row < 150 else 0}_{row}.off" for row in range(400)], True),  # a large one
    ],
)
def test_names_without_groups(names, numbered):
    grouping = groups_from_names(names, [row % 2 for row in range(400)])
    assert not grouping
    assert grouping.groups.tolist() == list(range(400))
    assert end_in_numbers(names) == numbered


@pytest.mark.parametrize("given", [r"shoe_(\d+)", "groups.csv", "2", "names"])
def test_given_groups(given, tmp_path):
    names = [f"a/{o}/shoe_{o}_{v}.pcd" for o in range(3) for v in range(2)]
    (tmp_path / "groups.csv").write_text("file,group\n" + "".join(f"{name},{name[2]}\n" for name in names))
    assert number_groups(groups_of(given, names, tmp_path, names).values()).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_missing_table_is_looked_for_here_and_in_the_folder(tmp_path):
    with pytest.raises(PointsetError, match=f"--groups x.csv does not exist, neither here nor in {tmp_path.name}"):
        groups_of("x.csv", ["shoe_1.pcd"], tmp_path, ())


def test_folds_keep_groups_and_balance_classes():
    groups = number_groups([o for o in range(20) for _ in range(o % 4 + 1)])
    labels = (groups >= 10).astype(int)
    folds = assign_folds(groups, labels.tolist(), seed=0, folds=5)
    assert len({*zip(groups.tolist(), folds.tolist(), strict=True)}) == 20
    for label in (0, 1):
        counts = np.bincount(folds[labels == label], minlength=5)
        assert counts.min() >= 3
        assert counts.max() - counts.min() <= 4


def test_a_class_of_one_group_is_never_held_out():
    folds = assign_folds(np.array([0, 0, 0, 1, 2, 3]), [0, 0, 0, 1, 1, 1], seed=0, folds=5)
    assert folds[:3].tolist() == [-1] * 3
    assert (folds[3:] >= 0).all()


def test_validation_keeps_groups():
    X = np.random.default_rng(0).normal(size=(24, 8, 3)).astype(np.float32)
    sets = pointset.from_arrays(X, ["a", "b"] * 12).grouped(np.arange(24) // 4 * 2 + np.arange(24) % 2)
    train, validation = sets.split_validation(0.3, seed=0)
    assert not {*train.groups} & {*validation.groups}
    assert validation.labels.bincount().tolist() == [4, 4]
    assert len(train) + len(validation) == 24


def test_every_class_keeps_a_group_where_groups_have_several_classes():
    X = np.random.default_rng(0).normal(size=(24, 8, 3)).astype(np.float32)
    sets = pointset.from_arrays(X, ["a", "b"] * 12)
    for count in (2, 3, 6):
        for seed in range(5):
            train, validation = sets.grouped(np.arange(24) // 2 % count).split_validation(0.5, seed)
            assert not {*train.groups} & {*validation.groups}
            assert len(validation) == 24 // count * (count // 2)
    with pytest.raises(PointsetError, match=r"fraction=0.5 of 24 shapes holds out no shape: .* one group: give more"):
        sets.grouped([0] * 24).split_validation(0.5, 0)


@pytest.mark.parametrize("given", [list("xyxz"), (3, 1, 3, 0), np.array([2, 0, 2, 1]), torch.tensor([5, 1, 5, 7])])
def test_groups_of_sets_in_memory_are_any_sequence_and_are_kept(given):
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(4, 8, 3)), ["a", "b"] * 2).grouped(given)
    assert sets.grouping.groups.tolist() == [0, 1, 0, 2]
    assert str(sets.grouping) == "3 groups that were given"


def test_validation_keeps_groups_of_names_unless_they_are_switched_off(tmp_path):
    for name in [name for name, *_ in zip(*views(), strict=True)]:
        save(tmp_path / name.replace(".pcd", ".npy"), np.random.default_rng(0).normal(size=(8, 3)))
    divided = []
    for groups in (None, "none"):
        sets = pointset.load_dataset(tmp_path, points=8, groups=groups)
        sides = sets.split_validation(0.4, seed=0)
        first, second = ({name_key(name) for name in side.names} for side in sides)
        divided.append(len(first & second))
    assert divided[0] == 0 < divided[1]
    assert len(sets) == 32  # of 40: the split by files is the same


def test_a_folder_is_split_by_groups_and_without_the_files_of_a_table(tmp_path):
    generator = np.random.default_rng(0)
    for label, o, v in itertools.product("ab", range(5), range(4)):
        save(tmp_path / "data" / label / f"shoe_{o}_{v}.npy", generator.normal(size=(16, 3)))
    how = {"points": 16, "groups": r"shoe_(\d)"}
    splits = [pointset.load_dataset(tmp_path / "data", split=split, **how) for split in ("train", "test")]
    objects = [{name[:8] for name in sets.names} for sets in splits]
    assert not objects[0] & objects[1]
    assert [len(sets) for sets in splits] == [32, 8]
    (tmp_path / "check.csv").write_text("file,note\n" + "".join(f"{name},twin\n" for name in splits[0].names[:5]))
    left = pointset.load_dataset(tmp_path / "data", without=str(tmp_path / "check.csv"), **how)
    assert left.names == splits[0].names[5:]
    assert left.describe()["without"] == str(tmp_path / "check.csv")
    (tmp_path / "check.csv").write_text("file,note\n" + "".join(f"{name},twin\n" for name in splits[1].names))
    with pytest.raises(PointsetError, match=r"check.csv' leaves out all 8 test shapes of .*data: delete .* rows"):
        pointset.load_dataset(tmp_path / "data", "test", without=str(tmp_path / "check.csv"), **how)
