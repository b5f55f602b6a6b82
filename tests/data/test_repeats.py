"""Test shapes that are training shapes, too, are counted before anybody believes an accuracy."""

import shutil

import numpy as np
import pytest
from command_line import succeed

import pointset
from pointset.data.repeats import repeats_in_words


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 3)):
        for name in "ab":
            (tmp_path / "data" / split / name).mkdir(parents=True)
            for number in range(count):
                np.save(tmp_path / "data" / split / name / f"{number}.npy", generator.normal(size=(32, 3)))
    return tmp_path / "data"


def test_the_same_bytes_are_counted(folder):
    assert repeats_in_words(str(folder), pointset.DataOptions()) == ()
    shutil.copy(folder / "train" / "a" / "0.npy", folder / "test" / "b" / "0.npy")
    assert repeats_in_words(folder, pointset.DataOptions())[0].startswith("1 of 6 test shapes are training shapes")


def test_evaluate_says_so(folder, tmp_path, capsys):
    shutil.copy(folder / "train" / "a" / "0.npy", folder / "test" / "a" / "1.npy")
    command = ["train", "features-svm", "--data", folder, "--points", 32, "--run", tmp_path / "run"]
    assert "1 of 6 test shapes are training shapes" in succeed(capsys, *command)
    assert "1 of 6 test shapes are training shapes" in succeed(capsys, "evaluate", "--model", tmp_path / "run")
