"""Warnings about files in a folder that are shapes but are not used."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

from pointset.cli import main
from pointset.data.catalogue.file_tree import may_hold_cloud
from pointset.data.catalogue.folders import list_folder, list_shapes
from pointset.errors import PointsetError

LINES = "# x y z\n\n0 0 0\n1 0 0\n"


def put(folder: Path, *names: str) -> None:
    """Clouds in text and arrays, and empty files of other kinds."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npy":
            np.save(path, np.eye(3))
        else:
            path.write_text(LINES if path.suffix == ".txt" else "")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        *[("a.txt", b"0 0 0\n", True), ("a.txt", b"// made by hand\n1;2;3;4;5;6\n", True), ("a.TXT", b"1,2,3,", True)],
        *[("a.txt", b"", False), ("a.txt", b"chair\nbed\n", False), ("a.txt", b"0\n1\n2\n", False)],
        *[("a.txt", b"chair 1 2\n", False), ("a.npy", b"", False), ("a.npz", b"PK", False)],
    ],
)
def test_a_list_is_told_from_a_cloud(name: str, content: bytes, expected: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert may_hold_cloud(tmp_path / name) == expected


def test_arrays_of_labels_and_what_is_no_file_are_not_clouds(tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.arange(5))
    np.save(tmp_path / "cloud.npy", np.eye(3))
    os.mkfifo(tmp_path / "pipe.txt")
    assert [may_hold_cloud(tmp_path / name) for name in ("labels.npy", "cloud.npy", "pipe.txt")] == [False, True, False]


def test_a_warning_names_shapes_in_too_deep_folders(tmp_path: Path) -> None:
    put(tmp_path / "scans", "2024/x.stl", "2024/site/y.stl", "2024/site/a/z.stl", "2024/site/a/b/w.ply")
    put(tmp_path / "scans", "2024/site/a/readme.txt", "2024/site/a/.z.stl", "2024/site/a/.git/z.stl", "2024/site/b/z")
    with pytest.warns(UserWarning, match="skipped") as said:
        assert [shape.name for shape in list_shapes(tmp_path / "scans")] == ["2024/site/y.stl", "2024/x.stl"]
    words = "2 files more than two folders deep, the first '2024/site/a/z.stl' (move them up)"
    assert [str(one.message) for one in said] == [f"{tmp_path}/scans has files of shapes that are skipped: {words}"]
    put(tmp_path / "parts", "chair/train/1.ply", "chair/train/sub/2.ply", "chair/test/3.ply")
    with pytest.warns(UserWarning, match="1 file more than two folders deep, the first 'chair/train/sub/2.ply'"):
        assert len(list_folder(tmp_path / "parts", "train").shapes) == 1


def test_clouds_at_the_top_of_folders_of_shapes_are_said_and_lists_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a1.npy", "t1.txt", "README.txt", "sub/b.npy", "sub/c.npy")
    (tmp_path / "names.txt").write_text("sub\n")
    np.save(tmp_path / "labels.npy", np.zeros(7))
    words = r"skipped: 2 files beside folders of shapes, the first 'a1.npy' \(move them into a folder\)$"
    with pytest.warns(UserWarning, match=words):
        assert [shape.name for shape in list_shapes(tmp_path)] == ["sub/b.npy", "sub/c.npy"]
    with pytest.warns(UserWarning, match=words):
        list_folder(tmp_path, "train")
    for name in ("a1.npy", "t1.txt"):
        (tmp_path / name).unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list_folder(tmp_path, "train")


@pytest.mark.parametrize("layout", ["parts/bed/{}", "parts/train/bed/{}", "parts/bed/train/{}"])
def test_shapes_of_formats_that_are_not_read_are_said(layout: str, tmp_path: Path) -> None:
    put(tmp_path, *(layout.format(name) for name in ("1.off", "2.off", "2.fbx", "2.OFF.gz", "1.mtl", "1.png", "a.gz")))
    put(tmp_path, "parts/metadata.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list_folder(tmp_path / "parts", "train")
    put(tmp_path, layout.format("3.off.gz"), layout.format("4.STEP"))
    first = layout.format("3.off.gz").removeprefix("parts/")
    words = rf"skipped: 2 files of formats that are not read, the first '{first}' \(unpack or convert them\)$"
    with pytest.warns(UserWarning, match=words):
        list_folder(tmp_path / "parts", "train")
    with pytest.warns(UserWarning, match=words):
        assert len(list_shapes(tmp_path / "parts")) == 2


def test_a_command_says_it_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / "parts", *(f"{split}/bed/{number}.txt" for split in ("train", "test") for number in range(2)))
    put(tmp_path / "parts", "train/bed/more/5.txt")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        main(["data", "show", str(tmp_path / "parts"), "-o", str(tmp_path / "x.svg")])
    assert capsys.readouterr().err.count("skipped: 1 file more") == 1


@pytest.mark.parametrize(("layout", "match"), [("{0}/train/{1}", "/bed holds"), ("train/{0}/{1}", "class 'bed' of")])
def test_a_class_whose_shapes_all_lie_too_deep_is_told_so(layout: str, match: str, tmp_path: Path) -> None:
    put(tmp_path, layout.format("chair", "1.ply"), layout.format("bed", "sub/2.ply"))
    with pytest.raises(PointsetError, match=rf"{match}.* too deeply nested .*/bed/.*2.ply': move them up; expected"):
        list_folder(tmp_path, "train")
