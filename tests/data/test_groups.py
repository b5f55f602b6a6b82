"""Groups of shapes that belong together: by rules about names, given, or by likeness; and splits that keep them."""

import itertools
from hashlib import md5

import numpy as np
import pytest
import torch
from toy import bumpy, save, turn

import pointset
from pointset import PointsetError
from pointset.data.groups import assign_folds, group_keys, groups_by_rule, number_groups
from pointset.data.likeness.siblings import find_groups, find_siblings, named_groups
from pointset.data.likeness.twins import OVERLAP, Surface, fit_surfaces

OBJECTS, VIEWS = 5, 3
NAMES = {
    "last": "a/shoe_{o}_{v}.pcd",
    "first": "a/view{v}-shoe{o}.pcd",
    "middle": "a/shoe {o} frame {v} left.pcd",
    "zero-padded": "a/{o:04}_{v:03}.pcd",
    "of words": "a/{word}_{v}.pcd",
}
WORDS = ["asics_gel", "nike", "puma_one_low", "boot", "clog"]


@pytest.mark.parametrize("form", NAMES)
def test_a_rule_gives_the_objects_wherever_the_view_stands(form):
    pairs = [(o, v) for o in range(OBJECTS) for v in range(VIEWS)]
    names = [NAMES[form].format(o=o, v=v, word=WORDS[o]) for o, v in pairs]
    found = groups_by_rule(names, [0] * len(names))
    assert any(np.array_equal(groups, [o for o, _ in pairs]) for groups in found.values())


def test_numbers_alone_say_no_group_and_no_group_has_two_classes():
    assert groups_by_rule([f"{label}/{label}_{i:04}.off" for label in "ab" for i in range(9)], [0] * 9 + [1] * 9) == {}
    names = [f"{label}/{o}_{v}.off" for label in "ab" for o in range(2) for v in range(2)]
    assert all(not set(own[:4]) & set(own[4:]) for own in groups_by_rule(names, [0] * 4 + [1] * 4).values())


@pytest.mark.parametrize("given", [r"shoe_(\d+)", "groups.csv", "2", "all but its last 1 part"])
def test_given_groups(given, tmp_path):
    names = [f"a/{o}/shoe_{o}_{v}.pcd" for o in range(3) for v in range(2)]
    (tmp_path / "groups.csv").write_text("file,group\n" + "".join(f"{name},{name[2]}\n" for name in names))
    assert number_groups(group_keys(given, names, tmp_path)).tolist() == [0, 0, 1, 1, 2, 2]


def test_a_missing_table_is_looked_for_here_and_in_the_folder(tmp_path):
    with pytest.raises(PointsetError, match=f"groups=x.csv must .*: it does not exist, neither here nor in {tmp_path}"):
        group_keys("x.csv", ["shoe_1.pcd"], tmp_path)


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


@pytest.mark.parametrize("given", [list("xyxz"), (3, 1, 3, 0), np.array([2, 0, 2, 1]), torch.tensor([5, 1, 5, 7])])
def test_groups_of_sets_in_memory_are_any_sequence_and_are_kept(given):
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(4, 8, 3)), ["a", "b"] * 2).grouped(given)
    assert number_groups(find_groups(sets).groups.tolist()).tolist() == [0, 1, 0, 2]


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
    with pytest.raises(PointsetError, match=r"check.csv' leaves out all 8 test shapes of .*data: delete the rows"):
        pointset.load_dataset(tmp_path / "data", "test", without=str(tmp_path / "check.csv"), **how)


SHAPES, SAMPLINGS = 24, 5
"""Of two classes."""


def clouds(views=SAMPLINGS):
    return [bumpy(shape, 200, sampling) for shape in range(SHAPES) for sampling in range(views)]


def make_sets(name, views=SAMPLINGS, rename=lambda row, name: name):
    names = [name.format(o=o, v=v, r=hash((o, v)) % 10**9) for o in range(SHAPES) for v in range(views)]
    names = [rename(row, name) for row, name in enumerate(names)]
    labels = ["a" if o < SHAPES // 2 else "b" for o in range(SHAPES) for _ in range(views)]
    return pointset.from_arrays(clouds(views), labels, names=names, normalize="none")


@pytest.mark.parametrize("name", ["shape_{o}_{v}", "{v:02}.{o:03}", "x_{o}_{v}_left"])
def test_names_that_likeness_confirms(name):
    found = named_groups(make_sets(name))
    assert found.groups.tolist() == [o for o in range(SHAPES) for _ in range(SAMPLINGS)]


def test_likeness_without_telling_names():
    found = find_groups(make_sets("{r}-{o}{v}"))
    assert (found.groups.reshape(-1, SAMPLINGS) == found.groups[::SAMPLINGS, None]).all()
    assert found.count >= SHAPES - 2  # some of the objects are as near as two samplings


GUESSED = np.random.default_rng(0).integers(6, size=SHAPES).tolist()


@pytest.mark.parametrize(
    ("name", "rename"),
    [
        ("shape_{o}", lambda _, name: name),
        ("{r}_{o}", lambda _, name: name),
        ("{o}", lambda row, _: f"{GUESSED[row]}_{row}"),  # groups that likeness does not confirm
        ("{o}", lambda row, name: f"other_{name}" if row % (SHAPES // 2) < 2 else name),  # a few are no large group
    ],
)
def test_no_group_is_invented(name, rename):
    assert find_groups(make_sets(name, views=1, rename=rename)).rule == ""


@pytest.mark.parametrize(
    ("change", "kind"),
    [(np.eye(3), "re-sampled"), (3 * np.eye(3), "rescaled"), (turn(0), "turned"), (-turn(1), "mirrored")],
)
def test_twins_of_every_kind(change, kind):
    fit = fit_surfaces(Surface(bumpy(3, 600)), Surface(bumpy(3, 600, 1) @ change + 5))
    assert fit.is_same
    assert fit.kind == kind


@pytest.mark.parametrize("count", [40, 600])
def test_copies_are_twins_and_other_shapes_are_none_also_of_few_points(count):
    surfaces = [Surface(bumpy(seed, count)) for seed in range(6)]
    assert not any(fit_surfaces(surfaces[i], surfaces[j]).is_same for i in range(6) for j in range(i))
    assert fit_surfaces(surfaces[0], Surface(bumpy(0, count) @ turn(0) * 2)).is_same


def test_a_dense_cloud_does_not_overlap_every_sparse_one():
    dense, sparse = (Surface(bumpy(seed, count, scales=(1, 1, 0.6))) for seed, count in ((0, 1000), (1, 200)))
    assert min(dense.overlap(sparse), sparse.overlap(dense)) > OVERLAP


def test_names_that_join_a_few_leave_the_rest_to_likeness():
    few = 4 * SAMPLINGS  # those of four objects
    sets = make_sets("", rename=lambda row, _: f"{row}_{'abcd'[row // SAMPLINGS]}" if row < few else f"{row}_x{row}")
    named = named_groups(sets)
    assert named.rule
    assert named.count > len(sets) / 2
    assert find_groups(sets).rule == "likeness"


@pytest.mark.parametrize("seed", [492, 556])
def test_names_without_meaning_give_no_rule(seed):
    """Of 600 seeds, those at which a few names share parts by chance, and nearest shapes do, too."""
    generator, objects = np.random.default_rng(seed), np.repeat(np.arange(54), 5)
    rows = generator.normal(size=(54, 8))[objects] + 0.1 * generator.normal(size=(270, 8))
    codes = [md5(str(generator.integers(1 << 32)).encode()).hexdigest()[:8] for _ in objects]
    names = [f"c{o // 6}/{code}.pcd" for o, code in zip(objects.tolist(), codes, strict=True)]
    assert find_siblings(names, (objects // 6).tolist(), rows.astype(np.float32)).rule == ""


@pytest.mark.parametrize("name", ["chair_{}_{}", "v{1}-chair-{0}"])
def test_views_from_the_same_sides_are_grouped_by_object(name):
    draw, objects, sides = np.random.default_rng(0).normal, np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    rows = [draw(size=(20, 8))[objects] + draw(size=(3, 8))[sides] + 0.6 * draw(size=(60, 8)) for _ in range(4)]
    names = [f"c{label}/{name.format(*pair)}.npy" for label in range(4) for pair in zip(objects, sides, strict=True)]
    found = find_siblings(names, np.repeat(np.arange(4), 60).tolist(), np.concatenate(rows).astype(np.float32))
    assert found.count == 80
