"""Layouts of mesh folders: found, split by rule, refused."""

from pathlib import Path

import pytest

from pointset.data.folders import list_shapes
from pointset.errors import PointsetError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_class_split_file(tmp_path: Path) -> None:
    touch(tmp_path, "chair/train/chair_2.off", "chair/train/chair_1.OFF", "chair/test/chair_3.off")
    touch(tmp_path, "bed/train/bed_1.obj", "bed/train/bed_1.mtl", "bed/train/.bed_0.off", ".git/train/x.off")
    touch(tmp_path, "README.txt", "__MACOSX/chair/x.off", ".DS_Store", "chair/.DS_Store")
    train, classes = list_shapes(tmp_path, "train")
    assert classes == ["bed", "chair"]
    found = [(shape.name, shape.label, shape.split) for shape in train]
    assert found == [
        ("bed/train/bed_1.obj", 0, "train"),
        ("chair/train/chair_1.OFF", 1, "train"),
        ("chair/train/chair_2.off", 1, "train"),
    ]
    assert train[1].path == tmp_path / "chair" / "train" / "chair_1.OFF"
    test, classes = list_shapes(tmp_path, "test")
    assert [(shape.name, shape.label) for shape in test] == [("chair/test/chair_3.off", 1)]
    assert classes == ["bed", "chair"]


SIZES = {"one": 1, "two": 2, "seven": 7, "twenty": 20, "hundred": 100}


def class_folders(folder: Path) -> Path:
    for name, size in SIZES.items():
        touch(folder, *(f"{name}/{number:03}.off" for number in range(size)))
    return folder


def names(folder: Path, split: str, seed: int = 0) -> set[str]:
    return {shape.name for shape in list_shapes(folder, split, seed=seed)[0]}


def test_class_file_is_split_in_fifths_class_by_class(tmp_path: Path) -> None:
    class_folders(tmp_path)
    train, test = names(tmp_path, "train"), names(tmp_path, "test")
    assert not train & test
    assert len(train | test) == sum(SIZES.values())
    per_class = {name: sum(one.startswith(f"{name}/") for one in test) for name in SIZES}
    assert per_class == {"one": 0, "two": 1, "seven": 1, "twenty": 4, "hundred": 20}


def test_the_rule_depends_on_seed_and_names_only(tmp_path: Path) -> None:
    first, second = class_folders(tmp_path / "here"), class_folders(tmp_path / "there")
    assert names(first, "test") == names(second, "test")
    assert names(first, "test", seed=1) != names(first, "test", seed=0)
    before = names(first, "test")
    touch(first, "hundred/new.off")
    assert len(names(first, "test") ^ before) <= 2


def test_the_rule_is_the_same_on_every_machine(tmp_path: Path) -> None:
    touch(tmp_path, *(f"chair/{number}.off" for number in range(5)), "bed/1.off")
    assert names(tmp_path, "test") == {"chair/1.off"}


@pytest.mark.parametrize(
    ("files", "split", "words"),
    [
        ([], "train", "found no folder"),
        (["a.off", "b.off"], "train", "found 2 mesh files beside 0 folders"),
        (["a.off", "twins/b.off"], "train", "found 1 mesh files beside 1 folders"),
        (["chair/train/a.off", "bed/b.off"], "train", "mixes two layouts: found bed/file beside chair/split/file"),
        (["chair/train/a.off", "chair/b.off"], "train", "chair holds both"),
        (["chair/train/a.off", "bed/readme.txt"], "train", "bed holds no mesh file"),
        (["chair/points.xyz"], "train", "chair holds no mesh file.*.obj"),
        (["train/chair/a.off", "test/chair/b.off"], "train", "looks like split/class/file: expected class/split"),
        (["chair/train/a.off"], "test", "no shape in split 'test': found train"),
        (["chair/train/a.off", "chair/test/b.off"], "val", "no shape in split 'val': found test, train"),
        (["chair/a.off", "chair/b.off"], "validation", "no shape in split 'validation': found test, train"),
    ],
)
def test_other_layouts_are_told_what_was_found_and_expected(
    tmp_path: Path, files: list[str], split: str, words: str
) -> None:
    touch(tmp_path, *files)
    with pytest.raises(PointsetError, match=words) as caught:
        list_shapes(tmp_path, split)
    assert str(tmp_path) in str(caught.value)


def test_the_real_folders(real_data: Path) -> None:
    train, classes = list_shapes(real_data / "modelnet9_obj", "train")
    test, _ = list_shapes(real_data / "modelnet9_obj", "test")
    assert (len(classes), len(train), len(test)) == (9, 144, 36)
    train, classes = list_shapes(real_data / "labeled_db", "train")
    test, _ = list_shapes(real_data / "labeled_db", "test")
    assert (len(classes), len(train), len(test)) == (19, 19 * 16, 19 * 4)
