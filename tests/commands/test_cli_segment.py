"""Labels per point from the command line: train, evaluate, segment to PLY, CSV and a page; mistakes in one line."""

import json
import re

import numpy as np
import pytest
from command_line import asked, succeed
from toy import write_labelled, write_ply

from pointset.data.readers.reading import read_cloud

FAST = ("--points", 24, "--dim", 16, "--epochs", 6, "--batch-size", 2, "--learning-rate", 0.01)


def test_train_and_evaluate_print_points_and_their_iou(rooms, tmp_path, capsys):
    run = tmp_path / "run"
    said = succeed(capsys, "train", "rff-max", "--data", rooms, "--labels", "label", *FAST, "--run", run)
    assert "saved in" in said
    said = succeed(capsys, "evaluate", "--model", run)
    assert "mean IoU" in said
    result = asked(capsys, "evaluate", "--model", run)
    confusion = np.array(result["confusion"])
    assert confusion.sum() == result["points"]
    assert result["accuracy"] == pytest.approx(confusion.trace() / confusion.sum())
    assert set(result["iou"]) == {"2", "6"}


@pytest.mark.parametrize("suffix", ["ply", "csv"])
def test_every_point_of_a_file_is_written_with_its_label(points_run, tmp_path, capsys, suffix):
    points = np.random.default_rng(5).uniform(-1, 1, (300, 3)) + 1000
    write_ply(tmp_path / "room.ply", points, np.where(points[:, 2] > 1000, 6, 2))
    out = tmp_path / f"out.{suffix}"
    answer = asked(capsys, "segment", tmp_path / "room.ply", "--model", points_run, "-o", out, "--labels", "label")
    cloud = read_cloud(out, features=["label", "probability"])
    table = np.hstack([cloud.points + cloud.corner, cloud.features])
    np.testing.assert_allclose(table[:, :3], points, rtol=1e-6)
    assert {*table[:, 3]} <= {2, 6}
    assert (table[:, 4] >= 0.5 - 1e-4).all()
    assert answer["accuracy"] > 0.8
    assert answer["accuracy"] == pytest.approx((table[:, 3] == np.where(points[:, 2] > 1000, 6, 2)).mean())
    assert sum(answer["points"].values()) == 300
    assert read_cloud(out, labels="label").labels.tolist() == table[:, 3].tolist()


def test_a_packed_run_and_its_export_label_points_too(points_run, rooms, tmp_path, capsys):
    succeed(capsys, "pack", points_run, "-o", tmp_path / "rooms.pointset")
    file = next((rooms / "room" / "test").iterdir())
    said = succeed(capsys, "segment", file, "--model", tmp_path / "rooms.pointset")
    assert said == succeed(capsys, "segment", file, "--model", points_run)
    assert "saved in" in succeed(capsys, "export", "--model", points_run, "-o", tmp_path / "rooms.pt2")


def test_a_page_shows_truth_error_and_entropy(points_run, rooms, tmp_path, capsys):
    file = next((rooms / "room" / "test").iterdir())
    succeed(capsys, "segment", file, "--model", points_run, "-o", tmp_path / "page.html", "--labels", "label")
    page = (tmp_path / "page.html").read_text()
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1])
    assert [view["name"] for view in data["layers"][0]["views"]] == [
        "label",
        "truth",
        "error",
        "entropy",
        "probability",
    ]
    assert data["points"] == len(read_cloud(file).points)
    assert page.count(", truth ") == 2  # a line of the legend for each class


def test_a_mesh_is_sampled(points_run, tmp_path, capsys):
    mesh = tmp_path / "mesh.off"
    mesh.write_text("OFF\n4 4 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n")
    assert "24 points" in succeed(capsys, "segment", mesh, "--model", points_run)


def test_a_folder_is_labelled_file_by_file(points_run, rooms, tmp_path, capsys):
    said = succeed(
        capsys, "segment", rooms / "room" / "test", "--model", points_run, "-o", tmp_path / "out", "--labels", "label"
    )
    assert "4 files: 200 points" in said
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"{number}.ply.ply" for number in range(4)]


def test_clouds_need_no_folders_of_classes(tmp_path, capsys):
    write_labelled(tmp_path, sizes=(40, 60))
    run = tmp_path / "run"
    succeed(capsys, "train", "rff-max", "--data", tmp_path / "room", "--labels", "label", *FAST, "--run", run)
    assert "of 4 test shapes" in succeed(capsys, "evaluate", "--model", run)
