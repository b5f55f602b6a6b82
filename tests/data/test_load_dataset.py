"""Loading sets by the name of a card or from a folder; test shapes that are training shapes are counted."""

import shutil
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from command_line import succeed
from toy import pool, write_pools, write_shapes

from pointset import DataOptions, PointsetError, load_dataset
from pointset.data import downsample, load_card, read_mesh, sample_points
from pointset.data.catalogue import locate
from pointset.data.repeats import repeats_in_words
from pointset.data.shapes10 import build_shapes10


def test_a_folder_of_the_hdf5_layout(tmp_path):
    folder = write_pools(tmp_path / "release")
    data = load_dataset(folder, "test", points=7)
    assert (len(data), data.classes, data.up, data.name) == (6, ["class0", "class1", "class2"], "z", "release")
    assert data.points.shape == (6, 7, 3)
    assert load_dataset(str(folder), points=7, up="y").up == "y"
    np.testing.assert_array_equal(data.source_pool.points, pool(6, 3, seed=6).points)


def test_a_class_that_is_in_one_split_alone_is_named(tmp_path, home, few):
    folder = write_pools(tmp_path / "release", classes=4, train=4, test=3)  # the test set lacks class3
    for split in ("train", "test"):
        with pytest.warns(UserWarning, match=r"release has classes only in train: class3$"):
            load_dataset(folder, split, points=7)
    (few / "class1" / "train").rename(few / "class1" / "test")
    with pytest.warns(UserWarning, match=r"few has classes only in train: class0, only in test: class1$"):
        load_dataset(few, points=5, pool_points=5)


def test_more_points_than_a_pool_are_refused_before_it_is_made(home, few):
    with pytest.raises(PointsetError, match=r"points=6 is more than the 5 .*few.*--points 5.*--pool-points of `train`"):
        load_dataset(few, points=6, pool_points=5)
    assert not home.exists()


ZIP = r"{home}/datasets.*https?://\S+\.zip"


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("release", {"points": 99}, "points=99 is more than the 23 that release holds"),
        ("release", {"split": "validation"}, "validation_files.txt is missing"),
        ("release", {"up": "x"}, "up must be .*'y', 'z'.*'x'"),
        ("release", {"sampler": "poisson"}, "sampled points already.*'poisson'"),
        ("modelnet41", {}, "'modelnet41' is neither a folder nor.*modelnet40"),
        (Path("nowhere"), {}, "neither a folder nor"),
        (Path("modelnet40"), {}, "'modelnet40' is neither"),  # a path is never a card
        *((name, {}, ZIP) for name in ("modelnet10", "modelnet40", "modelnet40-hdf5")),
    ],
)
def test_what_cannot_be_loaded_is_refused(data, options, words, tmp_path, home):
    release = write_pools(tmp_path / "release")
    with pytest.raises(PointsetError, match=words.replace("{home}", str(home))):
        load_dataset(release if data == "release" else data, **{"points": 7, **options})


@pytest.mark.parametrize("name", ["modelnet40_ply_hdf5_2048", "modelnet40-hdf5"])
def test_a_cards_data_is_found_and_compared_with_the_card(home, name):
    folder = write_pools(home / "datasets" / name, classes=40)
    with pytest.raises(PointsetError, match=r"other classes than modelnet40-hdf5 \(.*airplane.*unpack it again"):
        load_dataset("modelnet40-hdf5", points=7)
    (folder / "shape_names.txt").write_text("\n".join(load_card("modelnet40-hdf5").classes))
    with pytest.raises(PointsetError, match="has 12 train shapes where modelnet40-hdf5 has 9840"):
        load_dataset("modelnet40-hdf5", points=7)


def test_the_embedded_data_set_is_built_at_first_use(home, monkeypatch):
    card = msgspec.structs.replace(load_card("shapes10"), splits={"train": 10, "test": 20}, up="y")
    monkeypatch.setattr(locate, "load_card", lambda name: card)
    monkeypatch.setattr(locate, "build_shapes10", partial(build_shapes10, train=1, test=2))
    for split, count in card.splits.items():
        data = load_dataset("shapes10", split, points=7, pool_points=9)
        assert (len(data), data.classes, data.up, data.name) == (count, list(card.classes), "y", "shapes10")
    (home / "datasets" / "shapes10" / "mug" / "train" / "mug_0001.off").unlink()
    with pytest.raises(PointsetError, match=r"has 9 train shapes where shapes10 has 10: delete that folder"):
        load_dataset("shapes10", points=7, pool_points=9)


@pytest.mark.parametrize("sampler", ["uniform", "fps"])
def test_a_file_is_sampled_as_the_sets_were(home, few, sampler):
    """A random part of points that are spread evenly is not spread evenly, and a model knows such parts alone."""
    model = load_dataset(few, points=8, pool_points=40, sampler=sampler).preparation
    path = few / "class0" / "train" / "shape0.off"
    pool = sample_points(read_mesh(path), 40, seed=3, sampler=sampler)
    expected = pool[:8] if sampler == "uniform" else pool[downsample(pool, 8, seed=3)]
    np.testing.assert_array_equal(model.prepare(path, points=8, seed=3).raw, expected)
    assert model.prepare(path, points=50).points.shape == (50, 3)


def test_test_shapes_that_are_training_shapes_are_counted(tmp_path, capsys):
    folder = write_shapes(tmp_path / "data", shapes=4, points=32)
    assert repeats_in_words(str(folder), DataOptions()) == ()
    shutil.copy(folder / "train" / "ball" / "ball_0.npy", folder / "test" / "flat" / "flat_1.npy")
    said = "1 of 8 test shapes are training shapes"
    assert repeats_in_words(folder, DataOptions())[0].startswith(said)
    command = ["train", "features-svm", "--data", folder, "--points", 32, "--run", tmp_path / "run"]
    assert said in succeed(capsys, *command)
    assert said in succeed(capsys, "evaluate", "--model", tmp_path / "run")
