"""`pointset data check`: planted faults are found, and no others."""

import shutil

import numpy as np
import pytest
import trimesh
from command_line import asked, succeed
from toy import bumpy, save, turn, write_furniture

import pointset
from pointset.checking.check import ORDER, overview
from pointset.checking.labels import given_and_other, suspicious_labels
from pointset.checking.oddities import odd_counts, odd_sizes
from pointset.data.axes import rotate_up
from pointset.data.shapes10.build import make_shape
from pointset.runs.spreadsheets import read_csv

CLASSES = {"ball": (1, 1, 1), "plate": (1, 1, 0.2), "rod": (0.3, 0.3, 1.2)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parts")
    for label, (name, scales) in enumerate(CLASSES.items()):
        for number in range(20):
            split = "train" if number < 15 else "test"
            save(folder / split / name / f"{number}.npy", bumpy(100 * label + number, 800, scales=scales))
    shutil.copy(folder / "train" / "ball" / "0.npy", folder / "test" / "ball" / "copy.npy")
    rod = CLASSES["rod"]
    np.save(folder / "train" / "rod" / "turned.npy", bumpy(205, 800, 1, rod) @ turn(0))
    np.save(folder / "train" / "rod" / "rescaled.npy", 3 * bumpy(204, 800, 1, rod))
    np.save(folder / "train" / "rod" / "inches.npy", 25.4 * bumpy(299, 800, scales=rod))
    np.save(folder / "train" / "plate" / "wrong.npy", bumpy(98, 800, scales=CLASSES["ball"]))
    (folder / "train" / "plate" / "broken.npy").write_bytes(b"broken")
    return folder


@pytest.fixture(scope="module")
def found(folder):
    return pointset.check_data(folder, progress=False)


@pytest.mark.parametrize(
    ("file", "kind", "where", "twin"),
    [
        ("test/ball/copy.npy", "identical bytes", "split", "train/ball/0.npy"),
        ("train/rod/turned.npy", "turned", "class", "train/rod/5.npy"),
        ("train/rod/rescaled.npy", "rescaled", "class", "train/rod/4.npy"),
        ("train/plate/wrong.npy", "label", "label", ""),
        ("train/rod/inches.npy", "size", "odd", ""),
        ("train/plate/broken.npy", "unreadable", "odd", ""),
    ],
)
def test_planted_faults(found, file, kind, where, twin):
    suspect = next(each for each in found.suspects if each.file == file and each.kind == kind)
    assert suspect.where == where
    assert twin in ("", suspect.twin)


def test_it_is_said_how_good_the_judge_of_labels_is(found):
    assert 0.8 < found.agreed < 1.0  # one label is wrong
    assert f"{found.agreed:.0%} of them" in found.doubt


@pytest.mark.slow
def test_one_geometry_in_other_files(tmp_path):
    """In single precision, with five digits, and in another order; a mesh that is sampled anew is not the same."""
    write_furniture(tmp_path, 6)
    made = [make_shape("chair", "train", number) for number in range(4)]
    chairs = [trimesh.Trimesh(mesh.vertices, mesh.faces, process=False) for mesh in made]
    chairs[0].export(tmp_path / "chair" / "float.stl")
    chairs[1].export(tmp_path / "chair" / "digits.off", digits=5)
    order = np.random.default_rng(0).permutation(len(chairs[2].faces))
    trimesh.Trimesh(chairs[2].vertices, chairs[2].faces[order], process=True).export(tmp_path / "chair" / "order.ply")
    chairs[3].subdivide().export(tmp_path / "chair" / "finer.off")
    twins = {each.file: (each.kind, each.twin) for each in pointset.check_data(tmp_path, progress=False).suspects}
    same = {"float.stl": "0.off", "digits.off": "1.off", "order.ply": "2.off"}
    pairs = {frozenset((f"chair/{one}", f"chair/{other}")) for one, other in same.items()}
    assert pairs == {frozenset((file, twin)) for file, (kind, twin) in twins.items() if kind == "identical geometry"}
    assert any({file, twin} == {"chair/finer.off", "chair/3.off"} for file, (_, twin) in twins.items())


@pytest.mark.slow
def test_one_cloud_of_many_points_in_other_files(tmp_path):
    """In another order, with four digits, and as PLY; a cloud that is sampled anew is not the same."""
    for name, scales in CLASSES.items():
        for number in range(6):
            save(tmp_path / name / f"{number}.npy", bumpy(number, 2500, scales=scales))
    first, second, third = (bumpy(number, 2500, scales=CLASSES["rod"]) for number in range(3))
    np.save(tmp_path / "rod" / "order.npy", first[np.random.default_rng(0).permutation(len(first))])
    np.savetxt(tmp_path / "rod" / "digits.xyz", second, fmt="%.4f")
    trimesh.PointCloud(third).export(tmp_path / "rod" / "format.ply")
    np.save(tmp_path / "rod" / "anew.npy", bumpy(3, 2500, 1, CLASSES["rod"]))
    kinds = {
        frozenset((each.file[4:], each.twin[4:])): each.kind
        for each in pointset.check_data(tmp_path, progress=False).suspects
        if each.twin and each.kind != "label"
    }
    same = {"0.npy": "order.npy", "1.npy": "digits.xyz", "2.npy": "format.ply"}
    identical = {pair for pair, kind in kinds.items() if kind == "identical geometry"}
    assert identical == {frozenset(pair) for pair in same.items()}
    assert kinds[frozenset(("3.npy", "anew.npy"))] in ("re-sampled", "rescaled")


@pytest.mark.slow
def test_obj_files_beside_others_are_the_same_with_y_up_and_others_are_named(tmp_path):
    write_furniture(tmp_path, 8)
    chairs = [make_shape("chair", "train", number) for number in range(2)]
    upright = trimesh.Trimesh(rotate_up(chairs[0].vertices, "z", "y"), chairs[0].faces, process=False)
    upright.export(tmp_path / "chair" / "y.obj")
    trimesh.Trimesh(chairs[1].vertices, chairs[1].faces, process=False).export(tmp_path / "chair" / "z.obj")
    found = pointset.check_data(tmp_path, progress=False)
    twins = {frozenset((each.file, each.twin)): each for each in found.suspects if each.twin and each.kind != "label"}
    usual, unusual = (twins[frozenset(two)] for two in (("chair/y.obj", "chair/0.off"), ("chair/z.obj", "chair/1.off")))
    assert usual.kind == unusual.kind == "identical geometry"
    assert unusual.note.endswith("with another axis up")
    assert not usual.note.endswith("with another axis up")
    said = "\n".join(overview(found.shapes))
    assert ".obj files, which usually have Y up: beside others, they are turned to Z up" in said
    odd = [each for each in found.suspects if each.kind == "upward axis" and each.file.endswith(".obj")]
    assert all(".obj files are read with Y up" in each.note for each in odd)


def test_few_others(found):
    planted = ("copy", "turned", "rescaled", "wrong", "inches", "broken")
    assert len({each.file for each in found.suspects if not each.file.split("/")[-1].startswith(planted)}) <= 3
    assert found.leaks == 1
    assert not found.grouping
    assert [ORDER.index(each.where) for each in found.suspects] == sorted(ORDER.index(s.where) for s in found.suspects)


def test_command_writes_a_page_and_a_table(capsys, folder, tmp_path):
    page, table = tmp_path / "check.html", tmp_path / "check.csv"
    assert "1 of 16 test shapes" in succeed(capsys, "data", "check", folder, "-o", page)
    assert "train/rod/turned.npy" in page.read_text()
    assert "1 file cannot be read" in page.read_text()
    told = asked(capsys, "data", "check", folder, "-o", table, "--json")
    assert told["leaks"] == 1
    assert f"saved in {table}" in told["sentences"][-1]
    assert {"test/ball/copy.npy", "train/plate/wrong.npy"} <= {row["file"] for row in read_csv(table)}


def test_one_class_and_the_splits_are_called_what_they_are(capsys, tmp_path):
    for number in range(3):
        for split in ("train", "dev"):
            save(tmp_path / split / "ball" / f"{number}.npy", bumpy(number, 100))
    said = succeed(capsys, "data", "check", tmp_path)
    assert "6 shapes of 1 class; 3 train, 3 validation" in said
    assert "3 of 3 validation shapes are in another split" in said


def test_labels_off_the_confident_diagonal():
    probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9], [0.05, 0.95], [0.6, 0.4]])
    labels = np.array([0, 0, 1, 1, 0, 1])
    given, instead = given_and_other(probabilities, labels)
    assert instead.tolist() == [1, 1, 0, 0, 1, 0]
    assert given.tolist() == [0.9, 0.8, 0.8, 0.9, 0.05, 0.4]
    # Thresholds are the means 0.583 and 0.7: the last shape reaches that of class 0 alone.
    assert suspicious_labels(probabilities, labels).tolist() == [False, False, False, False, True, True]
    # Of class 1 the mean is 0.45, which its second shape does not reach for either class; class 0 is likelier.
    confused = np.array([[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.3, 0.6, 0.1]])
    assert suspicious_labels(confused, np.array([0, 1, 1])).tolist() == [False, True, False]
    # A class that looks wrong throughout makes no other shape doubtful.
    wrong = np.array([[0.8, 0.2, 0.0], [0.8, 0.0, 0.2], [0.1, 0.8, 0.1], [0.9, 0.1, 0.0]])
    assert suspicious_labels(wrong, np.array([0, 0, 1, 2])).tolist() == [False, False, False, True]


def test_sizes_and_counts_are_compared_within_a_class():
    labels = np.array([0] * 5 + [1] * 5)
    sizes = np.array([1, 1.2, 0.9, 1, 30, 100, 110, 90, 100, 5.0])
    assert [row for row, _, _ in odd_sizes(sizes, labels)] == [4, 9]
    assert [row for row, _, _ in odd_counts((sizes * 100).astype(int), labels)] == [4, 9]
