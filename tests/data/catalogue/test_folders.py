"""Layouts of folders of shapes: recognised, split by rule, rejected; and files in them that are skipped."""

import os
import sys
from pathlib import Path

import pytest

from pointset import PointsetError
from pointset.data.catalogue.folders import list_folder, list_shapes
from pointset.data.readers.formats import content_by_name

PLY = (
    "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    "element face {}\nproperty list uchar int vertex_index\nend_header\n0 0 0\n1 0 0\n0 1 0\n"
)


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def names(folder: Path, split: str, seed: int = 0, groups: str | None = None) -> set[str]:
    return {shape.name for shape in list_folder(folder, seed=seed, groups=groups).of(split)}


@pytest.mark.parametrize(
    ("names", "content"),
    [
        (["a.off", "A.OBJ", "a.pcd", "a.xyz", "readme.off"], "shape"),
        (["a.npy", "a.TXT", "license_plate_0.txt", "licence2.txt", "copying_machine.txt"], "shape or list"),
        (["README.txt", "readme_first.txt", "License.TXT", "copying.txt", "a.png", "LICENSE", "a.gz"], ""),
        (["a.step", "a.off.gz", "A.TXT.ZIP", "shapes.zip", "a.bin", "chair_0001"], "unread"),
    ],
)
def test_files_of_shapes_by_name(names, content):
    assert {content_by_name(name) for name in names} == {content}


@pytest.mark.parametrize("layout", ["{kind}/{split}/{file}", "{split}/{kind}/{file}"])
def test_layouts_with_splits(layout, tmp_path):
    places = {"2.off": ("chair", "train"), "1.OFF": ("chair", "train"), "3.off": ("chair", "test")}
    places |= {"4.obj": ("bed", "train"), "5.off": ("lamp", "test")}
    named = {file: layout.format(kind=kind, split=split, file=file) for file, (kind, split) in places.items()}
    touch(tmp_path, *named.values(), named["4.obj"].replace("obj", "mtl"))
    touch(tmp_path, "README.txt", ".git/x", ".DS_Store")
    touch(tmp_path, named["2.off"].replace("2.off", ".DS_Store"))
    listing = list_folder(tmp_path)
    train, test = listing.of("train"), listing.of("test")
    assert listing.classes == ["bed", "chair", "lamp"]
    listed = [(shape.name, shape.label, shape.split) for shape in train]
    assert listed == [(named["4.obj"], 0, "train"), (named["1.OFF"], 1, "train"), (named["2.off"], 1, "train")]
    assert train[1].path == tmp_path / named["1.OFF"]
    assert [(shape.name, shape.label) for shape in test] == [(named["3.off"], 1), (named["5.off"], 2)]


SIZES = {"one": 1, "two": 2, "seven": 7, "twenty": 20, "hundred": 100}


def test_class_file_is_split_in_fifths_by_names_and_seed(tmp_path):
    for folder in ("here", "there"):
        touch(tmp_path / folder, *(f"{name}/{number:03}.off" for name, size in SIZES.items() for number in range(size)))
    train, test = names(tmp_path / "here", "train"), names(tmp_path / "here", "test")
    assert not train & test
    assert len(train | test) == sum(SIZES.values())
    per_class = {name: sum(file.startswith(f"{name}/") for file in test) for name in SIZES}
    assert per_class == {"one": 0, "two": 1, "seven": 1, "twenty": 4, "hundred": 20}
    assert names(tmp_path / "there", "test") == test
    assert names(tmp_path / "there", "test", seed=1) != test
    touch(tmp_path / "here", "hundred/new.off")
    assert len(names(tmp_path / "here", "test") ^ test) <= 2
    touch(tmp_path / "five", *(f"chair/{number}.off" for number in range(5)), "bed/1.off")
    assert names(tmp_path / "five", "test") == {"chair/1.off"}  # on every machine


@pytest.mark.parametrize(
    ("files", "split", "words"),
    [
        ([], "train", "found no folder"),
        (["a.npy", "b.npy", "list.txt"], "train", "found 3 mesh or cloud files in no folder"),
        (["a.off", "twins/b.off"], "train", "found 1 mesh or cloud file beside 1 folder"),
        (["chair/train/a.off", "bed/b.off"], "train", "found bed/b.off beside chair/train/a.off"),
        (["train/a.off", "test/b.off"], "train", "found test/b.off; expected class/split/file"),
        (
            ["bed.zip", "chair.zip"],
            "train",
            r"found no folder in it; 2 files of the format .zip, which is not read .*'bed.zip'",
        ),
        (["chair/points.step"], "train", "'chair' of .* holds no mesh.*.obj.*.xyz"),
        (
            ["chair/a/1.ply", "bed/a/b/2.ply"],
            "train",
            r"'bed' of .* holds no mesh.*1 file more than two folders deep \(move them up\), .*'bed/a/b/2.ply'",
        ),
        (
            ["chair/a.off", "chair/b.xyz"],
            "train",
            r"meshes \(such as chair/a.off\) and point clouds \(such as .*two folders",
        ),
        (["train/bed/1.off", "eval/bed/2.off", "test/bed/3.off"], "train", "the splits 'test' and 'eval'"),
        (["cafe\u0301/a.off", "caf\u00e9/b.off"], "train", "two entries called 'caf\u00e9', in two Unicode forms"),
        (["bed/train/1.off", "bed/Train/2.off"], "train", "the splits 'train' and 'Train': give both one name"),
        (["chair/train/a.off"], "test", "no shape in split 'test': found train"),
        (["chair/1/a.off", "chair/1/b.off"], "test", r"found train \(.*, whole groups by folders\)"),
        (["chair/a.off", "chair/b.off"], "validation", "no shape in split 'validation': found test, train"),
        ([os.fsdecode(b"b\xe9d/train/1.off")], "train", r"holds b'b\\xe9d', a name that is not UTF-8: rename it"),
    ],
)
def test_other_layouts_are_refused_with_what_was_found(tmp_path, files, split, words):
    touch(tmp_path, *files)
    with pytest.raises(PointsetError, match=words) as caught:
        list_folder(tmp_path).of(split)
    assert str(tmp_path) in str(caught.value)
    str(caught.value).encode()


def test_a_single_split_and_classes_called_like_one(tmp_path):
    touch(tmp_path / "one", "Train/chair/a.off", "Train/bed/b.off")
    assert list_folder(tmp_path / "one").classes == ["bed", "chair"]
    touch(tmp_path / "toys", "train/a.off", "plane/b.off", "train/c.off")  # a class of railway toys
    assert list_folder(tmp_path / "toys").classes == ["plane", "train"]
    touch(tmp_path / "deep", "train/train/a.off", "train/test/b.off")  # one class, two splits
    assert list_folder(tmp_path / "deep").classes == ["train"]


@pytest.mark.parametrize(
    ("train", "test"),
    [("Train", "Test"), ("TRAIN", "TEST"), ("training", "Testing"), ("train_set", "test_set"), ("1_train", "2_eval")],
)
@pytest.mark.parametrize("layout", ["{split}/chair/{file}", "chair/{split}/{file}"])
def test_splits_may_be_called_train_and_test_in_other_ways(layout, train, test, tmp_path):
    touch(tmp_path, layout.format(split=train, file="1.off"), layout.format(split=test, file="2.off"))
    for usual, other, file in (("train", train, "1.off"), ("test", test, "2.off")):
        for split in (usual, other):
            (shape,) = list_folder(tmp_path).of(split)
            assert (shape.path.name, shape.split) == (file, usual)
    assert set(list_folder(tmp_path).splits) == {"train", "test"}


def test_one_of_several_files_of_a_shape_counts_with_a_warning(tmp_path):
    touch(tmp_path, *(f"bed/{number}{suffix}" for number in range(5) for suffix in (".stl", ".off", ".txt")))
    with pytest.warns(
        UserWarning, match="5 files of shapes that are there in another format .*, the first 'bed/0.stl'"
    ):
        train, test = names(tmp_path, "train"), names(tmp_path, "test")
    assert sorted(train | test) == [f"bed/{number}.off" for number in range(5)]


def test_other_folders_beside_classes_are_left_out_with_a_warning(tmp_path):
    touch(
        tmp_path, "bed/1.off", "bed/thumbs/1.png", "maps/a.shp", ".trash/2.off", "__MACOSX/bed/._1.off", "bed/._1.off"
    )
    hidden = "3 files with a hidden name .*, the first '.trash/2.off'; 1 folder without a mesh .*, the first 'maps'"
    with pytest.warns(UserWarning, match=hidden):
        assert names(tmp_path, "train") == {"bed/1.off"}


def test_names_that_begin_with_underscores_or_at_signs_are_read(tmp_path):
    touch(tmp_path, "__a/__1.off", "@b/@1.off", "@b/~$2.off")
    assert names(tmp_path, "train") | names(tmp_path, "test") == {"__a/__1.off", "@b/@1.off", "@b/~$2.off"}


def test_folders_of_one_shape_each_are_shapes_and_of_several_are_groups(tmp_path):
    touch(tmp_path, *(f"{name}/model{number}/mesh.off" for name in ("bed", "chair") for number in range(5)))
    assert len(names(tmp_path, "train")) == 8
    assert len(names(tmp_path, "test")) == 2
    touch(tmp_path, *(f"{name}/model{number}/copy.off" for name in ("bed", "chair") for number in range(5)))
    train, test = ({*map(Path, names(tmp_path, split))} for split in ("train", "test"))
    assert (len(train), len(test)) == (16, 4)
    assert not {path.parent for path in train} & {path.parent for path in test}
    with pytest.raises(PointsetError, match=r"no shape in split 'test': found train .*, whole groups by 1"):
        names(tmp_path, "test", groups="1")


@pytest.mark.parametrize("table", ["index.csv", "predictions.csv"])
def test_a_table_that_lists_shapes_is_no_shape_and_not_read(table, tmp_path):
    touch(tmp_path, "flat/0.npy", "flat/1.npy", f"flat/{table}", "classes/meshes/0.off", f"classes/{table}")
    with pytest.warns(UserWarning, match=f"1 file of text beside shapes of other formats .*'{table}'"):
        assert [shape.name for shape in list_shapes(tmp_path / "flat")] == ["0.npy", "1.npy"]
    with pytest.raises(PointsetError, match="found 3 mesh or cloud files in no folder"):
        list_folder(tmp_path / "flat")
    with pytest.warns(UserWarning, match=f"1 file beside folders of shapes .*--labels takes a table.*'{table}'"):
        assert list_folder(tmp_path / "classes").classes == ["meshes"]


def test_a_missing_library_is_said_once_for_all_files(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "laspy", None)
    touch(tmp_path, "1.off", *(f"{number}.laz" for number in range(9)))
    with pytest.warns(UserWarning, match="9 files .*laspy.*pip install") as warned:
        assert [shape.name for shape in list_shapes(tmp_path)] == ["1.off"]
    assert len(warned) == 1


@pytest.mark.parametrize("line", ["{name}", "{name}.off", "{kind}/{name}", "./{kind}\\\\{name}.off"])
def test_official_lists_beside_the_folders_are_the_split(line, tmp_path):
    shapes = [(kind, f"{kind}_{number:04}") for kind in ("bed", "chair") for number in range(6)]
    touch(tmp_path, *(f"{kind}/{name}.off" for kind, name in shapes))
    lines = [line.format(kind=kind, name=name) for kind, name in shapes]
    (tmp_path / "modelnet40_train.txt").write_text("\n".join(lines[:3] + lines[6:9]))
    (tmp_path / "modelnet40_test.txt").write_text("\r\n".join(lines[4:6] + lines[9:]))
    (tmp_path / "modelnet10_train.txt").write_text("bed_0000\n")
    (tmp_path / "modelnet10_test.txt").write_text("bed_0005\n")
    (tmp_path / "modelnet40_shape_names.txt").write_text("bed\nchair\n")
    unnamed = "1 file that modelnet40_train.txt and modelnet40_test.txt do not name, the first 'bed/bed_0003.off'"
    with pytest.warns(UserWarning, match=unnamed):
        listing = list_folder(tmp_path)
    assert listing.rule == "lists modelnet40_train.txt and modelnet40_test.txt"
    assert [shape.path.stem for shape in listing.of("train")] == [name for _, name in shapes[:3] + shapes[6:9]]
    (tmp_path / "modelnet40_test.txt").write_text("\n".join(lines))
    with pytest.raises(PointsetError, match=r"_train.txt and modelnet40_test.txt both name 'bed/bed_0000.off'"):
        names(tmp_path, "test")


@pytest.mark.parametrize(
    ("classes", "order"),
    [
        (["1", "10", "11", "2", "-1"], ["-1", "1", "2", "10", "11"]),
        (["0.25", "0.5", "1.5"], ["0.25", "0.5", "1.5"]),
        (["grade 10", "grade 9", "grade 1b"], ["grade 1b", "grade 9", "grade 10"]),
        (["b", "A", "a10", "a9"], ["A", "a9", "a10", "b"]),
    ],
)
def test_classes_are_in_natural_order(classes, order, tmp_path):
    touch(tmp_path, *(f"{name}/x.off" for name in classes))
    listing = list_folder(tmp_path)
    assert listing.classes == order
    assert [shape.label for shape in listing.of("train")] == [*range(len(order))]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (["0.h5", "1.h5"], r"2 files of the format .h5, which is not read.*ModelNet40's release, with shape_names.txt"),
        (["walk/0.swc", "walk/1.swc"], r"'walk' of .* holds no mesh and no .*; 2 files of the format .swc, .*\.ply"),
        (["0.vtp", "1.vtk", "2.ptx", "3.igs", "4.e57", "5.bin"], "1 file of the format .vtp, .* 1 file of .* .bin,"),
        (["0.ply", "1.ply"], "found 2 mesh or cloud files in no folder; .* a table of files and labels with --labels"),
    ],
)
def test_formats_that_are_not_read_are_counted_by_suffix(files, words, tmp_path):
    touch(tmp_path, *files)
    with pytest.raises(PointsetError, match=words):
        list_folder(tmp_path)


def test_names_in_any_script_are_composed_and_sorted(tmp_path):
    decomposed = "cafe\u0301 table"
    touch(tmp_path, f"train/{decomposed}/1.off", "test/caf\u00e9 table/2.off", "train/\u6905\u5b50/3 (copy).stl")
    touch(tmp_path, "train/\u0441\u0442\u0443\u043b/o\u0308.stl", "test/lamp post/5.glb")
    listing = list_folder(tmp_path)
    train = listing.of("train")
    assert listing.classes == ["caf\u00e9 table", "lamp post", "\u0441\u0442\u0443\u043b", "\u6905\u5b50"]
    assert [shape.label for shape in train] == [0, 2, 3]
    assert train[0].name == "train/caf\u00e9 table/1.off"
    assert train[0].path == tmp_path / "train" / decomposed / "1.off"
    assert all(shape.path.is_file() for shape in train)
    assert listing.of("test")[0].label == 0


def test_links_are_followed_and_loops_are_not(tmp_path):
    touch(tmp_path / "store", "a.npy", "b.npy")
    parts = tmp_path / "parts"
    touch(parts, "bed/train/1.npy", "bed/test/2.npy", "chair/test/3.npy")
    links = {
        "chair/train": tmp_path / "store",
        "chair/up": parts,
        "chair/self": parts / "chair",
        "bed/train/gone.npy": tmp_path / "nowhere.npy",
        "bed/train/ring.npy": parts / "bed/train/ring.npy",
        "bed/train/linked.npy": tmp_path / "store/a.npy",
        "bed/train/zero.xyz": Path("/dev/zero"),
    }
    for name, target in links.items():
        (parts / name).symlink_to(target)
    os.mkfifo(parts / "bed/train/pipe.npy")
    listing = list_folder(parts)
    assert listing.classes == ["bed", "chair"]
    # Links that lead nowhere, pipes and devices are files that cannot be read: they are not left out in silence.
    names = ("1.npy", "gone.npy", "linked.npy", "pipe.npy", "ring.npy", "zero.xyz")
    bed = [f"bed/train/{name}" for name in names]
    assert [shape.name for shape in listing.of("train")] == [*bed, "chair/train/a.npy", "chair/train/b.npy"]


@pytest.mark.parametrize(
    ("files", "faces", "kind", "shapes"),
    [
        (["a.off", "b.txt", "C.TXT"], 0, "meshes", ["a.off"]),
        (["a.off", "b.ply"], 1, "meshes", ["a.off", "b.ply"]),
        (["a.xyz", "b.npy", "README.txt"], 0, "clouds", ["a.xyz", "b.npy"]),
        (["A.PLY", "b.PLY"], 1, "meshes", ["A.PLY", "b.PLY"]),
        (["a.ply", "b.txt"], 0, "clouds", ["a.ply"]),
        (["a.csv", "b.txt"], 0, "clouds", ["a.csv", "b.txt"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*of text beside shapes of other formats")
def test_files_are_all_meshes_or_all_clouds(files, faces, kind, shapes, tmp_path):
    touch(tmp_path, *(f"chair/train/{name}" for name in files))
    for name in files[faces and len(files) - 1 :]:  # the first of several PLY files may be damaged
        (tmp_path / "chair/train" / name).write_text(PLY.format(faces) + faces * "3 0 1 2\n")
    listing = list_folder(tmp_path)
    assert (listing.kind, [shape.path.name for shape in listing.of("train")]) == (kind, shapes)
    assert [shape.path.name for shape in list_shapes(tmp_path / "chair" / "train")] == shapes


@pytest.mark.filterwarnings("ignore:.*files that are skipped")
def test_any_folder_gives_its_shapes_with_the_classes_that_it_says(tmp_path):
    touch(tmp_path / "a", "Train/chair/1.off", "Train/chair/notes.txt", "Test/bed/2.npy", "names.txt", "labels.npy")
    touch(tmp_path / "b", "2.npy", "1.ply", ".3.npy", "readme.txt")
    touch(tmp_path / "c", "clouds/1.txt")
    listed = {folder: [(shape.name, shape.true_class) for shape in list_shapes(tmp_path / folder)] for folder in "abc"}
    assert listed["a"] == [("Test/bed/2.npy", "bed"), ("Train/chair/1.off", "chair")]
    assert listed["b"] == [("1.ply", ""), ("2.npy", "")]
    assert listed["c"] == [("clouds/1.txt", "clouds")]
    touch(tmp_path / "d", "x.doc")
    with pytest.raises(PointsetError, match="d holds no mesh and no point cloud"):
        list_shapes(tmp_path / "d")


SKIPPED = {
    "too deep": (
        [f"parts/bed/train/{name}" for name in ("1.stl", "a/z.stl", "a/b/w.ply", "a/.z.stl", "log/history.jsonl")],
        r"3 files more than two folders deep \(move them up\), the first 'bed/train/a/.z.stl'",
    ),
    "clouds beside folders": (
        ["parts/bed/train/1.npy", "parts/cloud.npy", "parts/list.txt", "parts/labels.npy", "parts/table.csv"],
        r"4 files beside folders of shapes \(move clouds into a folder.*\), the first 'cloud.npy'",
    ),
    "other formats": (
        [f"parts/bed/train/{name}" for name in ("1.off", "2.off", "2.fbx", "2.OFF.gz", "1.mtl", "3.off.gz", "4.STEP")],
        r"2 files of the format .gz, which is not read \(unpack or convert them\), the first 'bed/train/2.OFF.gz'; "
        r"1 file of the format .fbx, which .*'bed/train/2.fbx'; 1 file of the format .step, which .*'bed/train/4.STEP'",
    ),
}


@pytest.mark.parametrize(("files", "words"), SKIPPED.values(), ids=SKIPPED)
def test_shapes_that_are_skipped_are_named_in_one_warning(files, words, tmp_path):
    touch(tmp_path, *files)
    for list_them in (list_shapes, list_folder):
        with pytest.warns(UserWarning, match=f"parts has files that are skipped: {words}$") as warned:
            list_them(tmp_path / "parts")
        assert len(warned) == 1


def test_the_real_folders(real_data):
    for name, classes, train, test in (("modelnet9_obj", 9, 144, 36), ("labeled_db", 19, 19 * 16, 19 * 4)):
        listing = list_folder(real_data / name)
        assert [len(listing.of(split)) for split in ("train", "test")] == [train, test]
        assert len(listing.classes) == classes
