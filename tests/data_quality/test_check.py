"""`pointset data check`: planted faults are found, and no others."""

import re
import shutil

import numpy as np
import pytest
import trimesh
from command_line import asked, succeed
from toy import bumpy, save, write_furniture

import pointset
from pointset.data.axes import rotate_up
from pointset.data.shapes10.build import make_shape
from pointset.data_quality.report import TITLES
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
    np.save(folder / "train" / "rod" / "resampled.npy", bumpy(205, 800, 1, rod))
    np.save(folder / "train" / "rod" / "rescaled.npy", 3 * bumpy(204, 800, 1, rod))
    np.save(folder / "train" / "plate" / "wrong.npy", bumpy(98, 800, scales=CLASSES["ball"]))
    (folder / "train" / "plate" / "broken.npy").write_bytes(b"broken")
    return folder


@pytest.fixture(scope="module")
def report(folder):
    return pointset.data_quality.check_data(folder, progress=False)


@pytest.mark.parametrize(
    ("file", "kind", "place", "other"),
    [
        ("test/ball/copy.npy", "identical bytes", "leakage", "train/ball/0.npy"),
        ("train/rod/resampled.npy", "near-duplicate", "class", "train/rod/5.npy"),
        ("train/rod/rescaled.npy", "near-duplicate", "class", "train/rod/4.npy"),
        ("train/plate/wrong.npy", "label", "label", ""),
        ("train/plate/broken.npy", "unreadable", "unreadable", ""),
    ],
)
def test_planted_faults(report, file, kind, place, other):
    pairs = {frozenset((one.file, one.other)): one for one in report.findings if one.kind == kind}
    assert pairs[frozenset((file, other))].place == place


def test_few_others(report):
    planted = ("copy", "resampled", "rescaled", "wrong", "broken")
    others = {finding.file for finding in report.findings if not finding.file.split("/")[-1].startswith(planted)}
    assert len(others) <= 3
    assert report.leaks == 1
    places = [[*TITLES].index(finding.place) for finding in report.findings]
    assert places == sorted(places)
    assert re.fullmatch(r"labels are checked with \S+ of (8|9)\d% out-of-fold accuracy", report.labels.note)


@pytest.mark.slow
def test_one_geometry_in_other_files(tmp_path):
    """In single precision, with five digits, in another order, with another axis up; and with other triangles."""
    write_furniture(tmp_path, 6)
    made = [make_shape("chair", "train", number) for number in range(5)]
    chairs = [trimesh.Trimesh(mesh.vertices, mesh.faces, process=False) for mesh in made]
    chairs[0].export(tmp_path / "chair" / "float.stl")
    chairs[1].export(tmp_path / "chair" / "digits.off", digits=5)
    order = np.random.default_rng(0).permutation(len(chairs[2].faces))
    trimesh.Trimesh(chairs[2].vertices, chairs[2].faces[order], process=True).export(tmp_path / "chair" / "order.ply")
    chairs[3].subdivide().export(tmp_path / "chair" / "finer.off")
    upright = trimesh.Trimesh(rotate_up(chairs[4].vertices, "z", "y"), chairs[4].faces, process=False)
    upright.export(tmp_path / "chair" / "y.obj")
    report = pointset.data_quality.check_data(tmp_path, progress=False)
    kinds = {frozenset((one.file, one.other)): one.kind for one in report.findings if one.other}
    same = {"float.stl": "0.off", "digits.off": "1.off", "order.ply": "2.off", "y.obj": "4.off"}
    pairs = {frozenset((f"chair/{one}", f"chair/{other}")) for one, other in same.items()}
    assert pairs == {pair for pair, kind in kinds.items() if kind == "identical points"}
    assert kinds[frozenset(("chair/finer.off", "chair/3.off"))] == "near-duplicate"


@pytest.mark.slow
def test_one_cloud_of_many_points_in_other_files(tmp_path):
    """In another order, with four digits, and as PLY; a cloud that is sampled anew is a near-duplicate."""
    for name, scales in CLASSES.items():
        for number in range(6):
            save(tmp_path / name / f"{number}.npy", bumpy(number, 2500, scales=scales))
    first, second, third = (bumpy(number, 2500, scales=CLASSES["rod"]) for number in range(3))
    np.save(tmp_path / "rod" / "order.npy", first[np.random.default_rng(0).permutation(len(first))])
    np.savetxt(tmp_path / "rod" / "digits.xyz", second, fmt="%.4f")
    trimesh.PointCloud(third).export(tmp_path / "rod" / "format.ply")
    np.save(tmp_path / "rod" / "anew.npy", bumpy(3, 2500, 1, CLASSES["rod"]))
    kinds = {
        frozenset((finding.file[4:], finding.other[4:])): finding.kind
        for finding in pointset.data_quality.check_data(tmp_path, progress=False).findings
        if finding.other
    }
    same = {"0.npy": "order.npy", "1.npy": "digits.xyz", "2.npy": "format.ply"}
    identical = {pair for pair, kind in kinds.items() if kind == "identical points"}
    assert identical == {frozenset(pair) for pair in same.items()}
    assert kinds[frozenset(("3.npy", "anew.npy"))] == "near-duplicate"


def test_command_writes_a_table(capsys, folder, report, tmp_path, monkeypatch):
    monkeypatch.setattr("pointset.data_quality.report.check_data", lambda *_, **__: report)
    table = tmp_path / "check.csv"
    printed = asked(capsys, "data", "check", folder, "-o", table, "--json")
    assert printed["leaks"] == 1
    assert any("1 of 16 test shapes are duplicates" in line for line in printed["sentences"])
    assert f"saved in {table}" in printed["sentences"][-1]
    assert {"test/ball/copy.npy", "train/plate/wrong.npy"} <= {row["file"] for row in read_csv(table)}


def test_one_class_and_the_splits_are_called_what_they_are(capsys, tmp_path):
    for number in range(3):
        for split in ("train", "dev"):
            save(tmp_path / split / "ball" / f"{number}.npy", bumpy(number, 100))
    said = succeed(capsys, "data", "check", tmp_path)
    assert "6 shapes of 1 class; 3 train, 3 validation" in said
    assert "3 of 3 validation shapes are duplicates" in said


def test_labels_are_not_checked_where_one_class_is_readable_or_accuracy_is_at_chance(capsys, tmp_path):
    for number in range(12):
        save(tmp_path / "one" / "ball" / f"{number}.npy", bumpy(number, 100))
        save(tmp_path / "two" / "ab"[number % 2] / f"{number}.npy", bumpy(number, 100))
    (tmp_path / "one" / "rod").mkdir()
    (tmp_path / "one" / "rod" / "0.npy").write_bytes(b"broken")
    said = succeed(capsys, "data", "check", tmp_path / "one")
    assert "labels cannot be checked: fewer than two classes have two shapes that can be read" in said
    printed = asked(capsys, "data", "check", tmp_path / "two")
    assert any("is at chance" in line for line in printed["sentences"])
    assert not [finding for finding in printed["findings"] if finding["kind"] == "label"]


def test_labels_are_checked_where_duplicates_join_all_groups_of_a_class(capsys, tmp_path):
    for label, group, view in np.ndindex(2, 4, 3):
        shape = bumpy(100 * label + (3 * group + view) // 2, 300, view, (1, 1, 0.3 + label))
        save(tmp_path / ("cup", "rod")[label] / f"{'cr'[label]}_{group}_{view}.npy", shape)
    assert "labels are checked" in succeed(capsys, "data", "check", tmp_path)


def test_clouds_padded_by_repeated_points_are_compared_by_their_places(capsys, tmp_path):
    for number in range(4):
        cloud = bumpy(number, 90)
        padded = np.concatenate([cloud, np.repeat(cloud[-1:], 160, axis=0)])
        for name, points in (("whole", cloud), ("padded", padded)):
            save(tmp_path / "ab"[number % 2] / f"{name}{number}.npy", points)
    findings = asked(capsys, "data", "check", tmp_path)["findings"]
    pairs = {frozenset((one["file"][2:], one["other"][2:])): one["kind"] for one in findings if one["other"]}
    assert pairs == {frozenset((f"whole{row}.npy", f"padded{row}.npy")): "identical points" for row in range(4)}
