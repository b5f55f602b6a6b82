"""Layouts of mesh folders: recognised, split by rule, rejected."""

import os
from pathlib import Path

import pytest

from pointset.data.catalogue.folders import ShapeFile, list_folder, list_shapes
from pointset.errors import PointsetError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def shapes_and_classes(folder: Path, split: str) -> tuple[list[ShapeFile], list[str]]:
    listing = list_folder(folder, split)
    return listing.shapes, listing.classes


def test_class_split_file(tmp_path: Path) -> None:
    touch(tmp_path, "chair/train/chair_2.off", "chair/train/chair_1.OFF", "chair/test/chair_3.off")
    touch(tmp_path, "bed/train/bed_1.obj", "bed/train/bed_1.mtl", "bed/train/.bed_0.off", ".git/train/x.off")
    touch(tmp_path, "README.txt", "__MACOSX/chair/x.off", ".DS_Store", "chair/.DS_Store")
    train, classes = shapes_and_classes(tmp_path, "train")
    assert classes == ["bed", "chair"]
    found = [(shape.name, shape.label, shape.split) for shape in train]
    assert found == [
        ("bed/train/bed_1.obj", 0, "train"),
        ("chair/train/chair_1.OFF", 1, "train"),
        ("chair/train/chair_2.off", 1, "train"),
    ]
    assert train[1].path == tmp_path / "chair" / "train" / "chair_1.OFF"
    test, classes = shapes_and_classes(tmp_path, "test")
    assert [(shape.name, shape.label) for shape in test] == [("chair/test/chair_3.off", 1)]
    assert classes == ["bed", "chair"]


SIZES = {"one": 1, "two": 2, "seven": 7, "twenty": 20, "hundred": 100}


def class_folders(folder: Path) -> Path:
    for name, size in SIZES.items():
        touch(folder, *(f"{name}/{number:03}.off" for number in range(size)))
    return folder


def names(folder: Path, split: str, seed: int = 0) -> set[str]:
    return {shape.name for shape in list_folder(folder, split, seed=seed).shapes}


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
        (["a.off", "b.off"], "train", "found 2 mesh or cloud files beside 0 folders"),
        (["a.off", "twins/b.off"], "train", "found 1 mesh or cloud files beside 1 folders"),
        (["chair/train/a.off", "bed/b.off"], "train", "mixes two layouts: found bed/file beside chair/split/file"),
        (["chair/train/a.off", "chair/b.off"], "train", "chair holds both"),
        (["chair/train/a.off", "bed/readme.txt"], "train", "bed holds no mesh and no point cloud"),
        (["chair/train/a.off", "bed/train/b.txt"], "train", "bed holds no mesh and no point cloud"),
        (["chair/points.step"], "train", "chair holds no mesh.*.obj.*.xyz"),
        (["train/chair/a.off", "test/b.off"], "train", "looks like split/class/file, but has test/file"),
        (["train/a.off", "test/b.off"], "train", "looks like split/class/file, but has test/file"),
        (["train/chair/a.off", "test/bed/readme.txt"], "train", "class 'bed' of .* holds no mesh"),
        (
            ["chair/a.off", "chair/b.xyz"],
            "train",
            "mixes meshes and point clouds: found chair/a.off beside chair/b.xyz",
        ),
        (["chair/a.off", "bed/b.npy"], "train", "mixes meshes and point clouds.*two folders"),
        (["cafe\u0301/a.off", "caf\u00e9/b.off"], "train", "two entries called 'caf\u00e9', in two forms"),
        (["bed/e\u0301.off", "bed/\u00e9.off"], "train", "bed holds two entries called '\u00e9.off'"),
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
        list_folder(tmp_path, split)
    assert str(tmp_path) in str(caught.value)


def test_split_class_file_is_what_class_split_file_is(tmp_path: Path) -> None:
    files = ("chair/train/a.off", "chair/test/b.off", "bed/train/c.off", "lamp/test/d.off")
    touch(tmp_path / "first", *files)
    touch(tmp_path / "second", *(f"{split}/{name}/{file}" for name, split, file in (f.split("/") for f in files)))
    for split in ("train", "test"):
        first, classes = shapes_and_classes(tmp_path / "first", split)
        second, same = shapes_and_classes(tmp_path / "second", split)
        assert classes == same == ["bed", "chair", "lamp"]
        assert [(s.path.name, s.label, s.split) for s in first] == [(s.path.name, s.label, s.split) for s in second]
    assert second[0].name == "test/chair/b.off"


def test_a_single_split_and_classes_called_like_one(tmp_path: Path) -> None:
    touch(tmp_path / "one", "Train/chair/a.off", "Train/bed/b.off")
    assert list_folder(tmp_path / "one", "Train").classes == ["bed", "chair"]
    touch(tmp_path / "toys", "train/a.off", "plane/b.off", "train/c.off")  # a class of railway toys
    assert list_folder(tmp_path / "toys", "train").classes == ["plane", "train"]
    touch(tmp_path / "deep", "train/train/a.off", "train/test/b.off")  # one class, two splits
    assert list_folder(tmp_path / "deep", "test").classes == ["train"]


def test_names_in_any_script_are_composed_and_sorted(tmp_path: Path) -> None:
    decomposed = "cafe\u0301 table"
    touch(tmp_path, f"train/{decomposed}/1.off", "test/caf\u00e9 table/2.off", "train/\u6905\u5b50/3 (copy).stl")
    touch(tmp_path, "train/\u0441\u0442\u0443\u043b/o\u0308.ply", "test/lamp post/5.glb")
    train, classes = shapes_and_classes(tmp_path, "train")
    assert classes == sorted(classes)
    assert classes == ["caf\u00e9 table", "lamp post", "\u0441\u0442\u0443\u043b", "\u6905\u5b50"]
    assert [shape.label for shape in train] == [0, 2, 3]
    assert train[0].name == "train/caf\u00e9 table/1.off"
    assert train[0].path == tmp_path / "train" / decomposed / "1.off"
    assert all(shape.path.is_file() for shape in train)
    assert list_folder(tmp_path, "test").shapes[0].label == 0


def test_links_are_followed_and_loops_survived(tmp_path: Path) -> None:
    touch(tmp_path / "store", "a.off", "b.off")
    touch(tmp_path / "parts", "bed/train/1.off", "bed/test/2.off")
    (tmp_path / "parts" / "chair").mkdir()
    (tmp_path / "parts" / "chair" / "train").symlink_to(tmp_path / "store")
    (tmp_path / "parts" / "chair" / "up").symlink_to(tmp_path / "parts")
    (tmp_path / "parts" / "chair" / "self").symlink_to(tmp_path / "parts" / "chair")
    (tmp_path / "parts" / "round").symlink_to(tmp_path / "parts" / "round")
    (tmp_path / "parts" / "bed" / "train" / "gone.off").symlink_to(tmp_path / "nowhere.off")
    (tmp_path / "parts" / "bed" / "train" / "ring.off").symlink_to(tmp_path / "parts" / "bed" / "train" / "ring.off")
    (tmp_path / "parts" / "bed" / "train" / "linked.off").symlink_to(tmp_path / "store" / "a.off")
    shapes, classes = shapes_and_classes(tmp_path / "parts", "train")
    assert classes == ["bed", "chair"]
    # Links that lead nowhere are files that cannot be read, which is said: they are not left out in silence.
    gone = ["bed/train/gone.off", "bed/train/ring.off"]
    expected = ["bed/train/1.off", gone[0], "bed/train/linked.off", gone[1], "chair/train/a.off", "chair/train/b.off"]
    assert [shape.name for shape in shapes] == expected


PLY = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\n{}end_header\n"


def test_clouds_are_told_from_meshes(tmp_path: Path) -> None:
    touch(tmp_path / "clouds", "chair/a.xyz", "chair/b.TXT", "bed/c.npz", "bed/README.txt", "splits.txt", "labels.npy")
    clouds = list_folder(tmp_path / "clouds", "train")
    assert clouds.kind == "clouds"
    assert {shape.name for shape in clouds.shapes} <= {"chair/a.xyz", "chair/b.TXT", "bed/c.npz"}
    touch(tmp_path / "meshes", "chair/a.off", "chair/a.txt", "bed/b.off", "bed/b.ply")
    meshes = list_folder(tmp_path / "meshes", "train")
    assert (meshes.kind, [shape.name for shape in meshes.shapes]) == ("meshes", ["bed/b.off", "chair/a.off"])
    for kind, faces in (("clouds", ""), ("clouds", "element face 0\n"), ("meshes", "element face 1\n")):
        touch(tmp_path / "ply", "chair/a.ply")
        (tmp_path / "ply" / "chair" / "a.ply").write_text(PLY.format(faces))
        assert list_folder(tmp_path / "ply", "train").kind == kind


def test_the_real_folders(real_data: Path) -> None:
    train, classes = shapes_and_classes(real_data / "modelnet9_obj", "train")
    test, _ = shapes_and_classes(real_data / "modelnet9_obj", "test")
    assert (len(classes), len(train), len(test)) == (9, 144, 36)
    train, classes = shapes_and_classes(real_data / "labeled_db", "train")
    test, _ = shapes_and_classes(real_data / "labeled_db", "test")
    assert (len(classes), len(train), len(test)) == (19, 19 * 16, 19 * 4)


def test_pipes_and_devices_are_not_shapes(tmp_path: Path) -> None:
    """Opening a pipe would wait forever."""
    touch(tmp_path, "bed/train/1.npy", "bed/test/2.npy", "sofa/train/1.npy")
    os.mkfifo(tmp_path / "bed" / "train" / "pipe.npy")
    os.mkfifo(tmp_path / "bed" / "train" / "pipe.ply")
    (tmp_path / "sofa" / "train" / "zero.xyz").symlink_to("/dev/zero")
    shapes, _ = shapes_and_classes(tmp_path, "train")
    assert [shape.name for shape in shapes] == ["bed/train/1.npy", "sofa/train/1.npy"]


@pytest.mark.parametrize("place", [b"b\xe9d/train/1.off", b"bed/tr\xe9in/1.off", b"bed/train/\xff.off"])
def test_a_name_that_is_not_utf8_is_refused(tmp_path: Path, place: bytes) -> None:
    touch(tmp_path, "sofa/train/1.off")
    touch(tmp_path, os.fsdecode(place))
    with pytest.raises(PointsetError, match=r"holds b'.*\\x(e9|ff).*, a name that is not UTF-8: rename it") as caught:
        list_folder(tmp_path, "train")
    str(caught.value).encode()


@pytest.mark.parametrize("other", ["Train", "TRAIN", "Training"])
def test_a_split_under_two_names_is_refused(other: str, tmp_path: Path) -> None:
    touch(tmp_path, "bed/train/1.off", f"bed/{other}/2.off", "bed/test/3.off")
    for split in ("train", "test"):
        with pytest.raises(PointsetError, match=f"{tmp_path} has the splits 'train' and '{other}': give both one name"):
            list_folder(tmp_path, split)


@pytest.mark.parametrize(("train", "test"), [("Train", "Test"), ("TRAIN", "TEST"), ("training", "Testing")])
@pytest.mark.parametrize("layout", ["{split}/chair/{file}", "chair/{split}/{file}"])
def test_splits_may_be_called_train_and_test_in_other_ways(layout: str, train: str, test: str, tmp_path: Path) -> None:
    touch(tmp_path, layout.format(split=train, file="1.off"), layout.format(split=test, file="2.off"))
    for asked, other, file in (("train", train, "1.off"), ("test", test, "2.off")):
        for split in (asked, other):
            (shape,) = list_folder(tmp_path, split).shapes
            assert (shape.path.name, shape.split) == (file, asked)
    assert set(list_folder(tmp_path, "train").present) == {"train", "test"}


def test_any_folder_gives_its_shapes_with_the_classes_that_it_says(tmp_path: Path) -> None:
    touch(tmp_path / "a", "Train/chair/1.off", "Train/chair/notes.txt", "Test/bed/2.npy", "names.txt", "labels.npy")
    touch(tmp_path / "b", "2.npy", "1.ply", ".3.npy", "readme.txt")
    touch(tmp_path / "c", "clouds/1.txt")
    found = {folder: [(one.name, one.true_class) for one in list_shapes(tmp_path / folder)] for folder in "abc"}
    assert found["a"] == [("Test/bed/2.npy", "bed"), ("Train/chair/1.off", "chair")]
    assert found["b"] == [("1.ply", ""), ("2.npy", "")]
    assert found["c"] == [("clouds/1.txt", "clouds")]
    touch(tmp_path / "d", "x.doc")
    with pytest.raises(PointsetError, match="d holds no mesh and no point cloud"):
        list_shapes(tmp_path / "d")


@pytest.mark.parametrize(("faces", "expected"), [("", ["a.ply", "b.txt"]), ("element face 1\n", ["a.ply"])])
def test_text_is_a_note_beside_a_mesh_and_a_cloud_beside_a_cloud(
    tmp_path: Path, faces: str, expected: list[str]
) -> None:
    (tmp_path / "a.ply").write_text(PLY.format(faces))
    (tmp_path / "b.txt").write_text("0 0 0\n1 0 0\n")
    assert [shape.name for shape in list_shapes(tmp_path)] == expected


@pytest.mark.parametrize(
    ("names", "faces", "kind", "shapes"),
    [
        (["a.off", "b.txt", "C.TXT"], 0, "meshes", ["a.off"]),
        (["a.txt", "b.npy"], 0, "clouds", ["a.txt", "b.npy"]),
        (["A.PLY", "b.txt"], 1, "meshes", ["A.PLY"]),
        (["a.ply", "b.txt"], 0, "clouds", ["a.ply", "b.txt"]),
        (["a.ply", "b.off"], 0, "meshes", ["a.ply", "b.off"]),
    ],
)
def test_files_are_all_meshes_or_all_clouds(
    names: list[str], faces: int, kind: str, shapes: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "chair" / "train"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"ply\nelement vertex 3\nelement face {faces}\nend_header\n")
    listing = list_folder(tmp_path, "train")
    assert listing.kind == kind
    assert [shape.path.name for shape in listing.shapes] == shapes
